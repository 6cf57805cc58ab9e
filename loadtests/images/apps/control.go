package main

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

var held [][]byte

// control lets a test change the app from outside: break it, mend it, let it burn CPU or hold memory.
func (s *server) control(w http.ResponseWriter, r *http.Request) {
	switch what := r.PathValue("what"); what {
	case "break", "mend":
		s.broken.Store(what == "break")
	case "burn":
		burn(wanted(r, "threads"), time.Duration(wanted(r, "seconds"))*time.Second)
	case "hold":
		hold(wanted(r, "mib"))
	default:
		http.NotFound(w, r)
		return
	}
	fmt.Fprintln(w, "ok")
}

func wanted(r *http.Request, name string) int {
	value, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return 1
	}
	return value
}

func burn(threads int, duration time.Duration) {
	end := time.Now().Add(duration)
	for range threads {
		go func() {
			for time.Now().Before(end) {
				spin(1_000_000)
			}
		}()
	}
}

// hold writes to every page, so that the memory is really there. It does not wait for the last page: the kubelet may
// evict the pod before that, and whoever asked gets an answer.
func hold(mib int) {
	block := make([]byte, mib<<20)
	held = append(held, block)
	go func() {
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
	}()
}
