package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// server answers requests with a bounded number of workers and a bounded backlog. The probes go the same way as
// everything else, as in most real web servers: an app that drowns answers them late or not at all.
type server struct {
	work     job
	probe    job
	workers  chan struct{}
	places   chan struct{}
	broken   atomic.Bool
	draining atomic.Bool
}

func serve(work job) {
	workers, backlog := number("WORKERS", 8), number("BACKLOG", 32)
	s := &server{
		work:    filled(work, number("BODY_BYTES", 0)),
		probe:   iterate(number("PROBE_ITERATIONS", 100_000)),
		workers: make(chan struct{}, workers),
		places:  make(chan struct{}, workers+backlog),
	}
	spin(number("STARTUP_ITERATIONS", 0))
	if after := number("BREAK_AFTER_MS", 0); after > 0 {
		time.AfterFunc(time.Duration(after)*time.Millisecond, func() { s.broken.Store(true) })
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", s.bounded(s.answer))
	mux.HandleFunc("/healthz", s.bounded(s.healthy))
	mux.HandleFunc("/readyz", s.bounded(s.ready))
	mux.HandleFunc("POST /control/{what}", s.control)
	web := &http.Server{Addr: fmt.Sprintf(":%d", number("PORT", 8080)), Handler: mux, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go s.drain(web, ended)
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	<-ended
}

// drain waits for the signal to end, says so by its readiness while routes learn of it, then finishes what is open.
// With a DRAIN_MS below 0 it ends at once, whatever is open.
func (s *server) drain(web *http.Server, ended chan<- struct{}) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	if number("DRAIN_MS", 300) < 0 {
		os.Exit(0)
	}
	s.draining.Store(true)
	time.Sleep(time.Duration(number("DRAIN_MS", 300)) * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		log.Print("ended with requests open: ", err)
	}
	close(ended)
}

func (s *server) bounded(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.places <- struct{}{}:
			defer func() { <-s.places }()
		default:
			panic(http.ErrAbortHandler) // closes the connection, as a full backlog does
		}
		select {
		case s.workers <- struct{}{}:
			defer func() { <-s.workers }()
			handle(w, r)
		case <-r.Context().Done():
		}
	}
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	tell(w, r, s.work)
}

func (s *server) healthy(w http.ResponseWriter, r *http.Request) {
	if s.broken.Load() {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	tell(w, r, s.probe)
}

func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		http.Error(w, "ending", http.StatusServiceUnavailable)
		return
	}
	s.healthy(w, r)
}

func tell(w http.ResponseWriter, r *http.Request, work job) {
	text, err := work(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	fmt.Fprintln(w, text)
}
