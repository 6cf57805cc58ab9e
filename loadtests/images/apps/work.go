package main

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// A job is the work of one request; what it returns is the answer.
type job func(context.Context) (string, error)

func number(name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < 0 {
		fmt.Fprintf(os.Stderr, "%s: %q is not a whole number of at least 0\n", name, text)
		os.Exit(2)
	}
	return value
}

func spin(iterations int) uint64 {
	x := uint64(88172645463325252)
	for range iterations {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// filled makes the answers longer, so that they use the node's link.
func filled(work job, bytes int) job {
	filling := strings.Repeat("x", bytes)
	return func(ctx context.Context) (string, error) {
		text, err := work(ctx)
		return text + filling, err
	}
}

// STABLE's web app: a number of arithmetic iterations per request, each app its own.
func iterate(iterations int) job {
	return func(context.Context) (string, error) { return strconv.FormatUint(spin(iterations), 16), nil }
}

// KSE's CPU app: two nested counter loops.
func count(context.Context) (string, error) {
	outer, inner := number("OUTER", 10_000), number("INNER", 500)
	total := uint64(0)
	for i := range outer {
		for j := range inner {
			total += uint64(i ^ j)
		}
	}
	return strconv.FormatUint(total, 10), nil
}

// KSE's memory app: md5 strings appended to a list that lives as long as its request.
func hashes(context.Context) (string, error) {
	wanted := number("HASHES", 100_000)
	list := make([]string, 0)
	for i := range wanted {
		sum := md5.Sum([]byte(strconv.Itoa(i)))
		list = append(list, hex.EncodeToString(sum[:]))
	}
	return list[len(list)-1], nil
}

// A connection per query: a client that keeps connections repeats what the full pool refused, and hides it.
var database = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// KSE's realistic app: a page is made of queries to a database that all apps share, and of some work of its own.
// The bound is the database's: its workers and its backlog.
func page(ctx context.Context) (string, error) {
	for range number("QUERIES", 5) {
		if err := query(ctx); err != nil {
			return "", err
		}
	}
	return iterate(number("ITERATIONS", 1_000_000))(ctx)
}

func query(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv("DATABASE"), nil)
	if err != nil {
		return err
	}
	answer, err := database.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the database answered %d", answer.StatusCode)
	}
	return nil
}
