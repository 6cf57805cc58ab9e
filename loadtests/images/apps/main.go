// The apps of the real-node lab: one static binary, one image, the first argument says which app it is.
package main

import (
	"fmt"
	"os"
)

func main() {
	apps := map[string]func(){
		"pause":     pause,
		"web":       func() { serve(iterate(number("ITERATIONS", 1_000_000))) },
		"counter":   func() { serve(count) },
		"memory":    func() { serve(hashes) },
		"wordpress": func() { serve(page) },
		"database":  func() { serve(iterate(number("ITERATIONS", 200_000))) },
	}
	if len(os.Args) == 2 {
		if app, known := apps[os.Args[1]]; known {
			app()
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: apps pause|web|counter|memory|wordpress|database")
	os.Exit(2)
}
