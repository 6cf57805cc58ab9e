// The oracle says what a real cluster would do with an object and a pod: the API server's own defaulting and validation,
// and kube-scheduler's own filter plugins in the default profile.
//
// It reads one JSON document per line and answers each with one line:
//
//	{"load": [objects]}    -> {"stored": [objects as the API server keeps them], "invalid": [{"object", "message"}]}
//	{"judge": [questions]} -> {"answers": [{"fits", "plugin", "message"}]}, in the order of the questions
//
// A question is {"pod": UID, "node": name}: would kube-scheduler put this pod there now, or, if it runs already, its
// replacement? With "move": true the pod is on that node for the questions after it; without a node it is evicted, and
// its replacement waits. Pods with their UID in "decided" hold no room on the node they are nominated to: whoever asks
// decides about them. Each "judge" starts from the loaded state. A request that makes no sense is answered with
// {"error": "..."}.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

type request struct {
	Load    []json.RawMessage `json:"load"`
	Judge   []question        `json:"judge"`
	Decided []string          `json:"decided"`
}

type answer struct {
	Stored  []json.RawMessage `json:"stored,omitempty"`
	Invalid []invalid         `json:"invalid,omitempty"`
	Answers []verdict         `json:"answers,omitempty"`
	Error   string            `json:"error,omitempty"`
}

func main() {
	silenceLogs()
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	lines, writer := bufio.NewReaderSize(in, 1<<20), bufio.NewWriter(out)
	encoder := json.NewEncoder(writer)
	var loaded *cluster
	defer func() { loaded.close() }()
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var reply answer
		reply, loaded = respond(line, loaded)
		if err := encoder.Encode(reply); err != nil {
			return err
		}
		if err := writer.Flush(); err != nil {
			return err
		}
	}
}

// respond never ends the program: one strange request concerns that request.
func respond(line []byte, before *cluster) (reply answer, loaded *cluster) {
	loaded = before
	defer func() {
		if found := recover(); found != nil {
			reply = answer{Error: fmt.Sprintf("panic: %v", found)}
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: fmt.Sprintf("not a request: %v", err)}, before
	}
	switch {
	case asked.Load != nil && asked.Judge != nil:
		return answer{Error: `a request has either "load" or "judge"`}, before
	case asked.Load != nil:
		before.close()
		return load(asked.Load)
	case asked.Judge != nil && before == nil:
		return answer{Error: `"judge" before "load"`}, before
	case asked.Judge != nil:
		verdicts, err := before.judge(asked.Judge, asked.Decided)
		if err != nil {
			return answer{Error: err.Error()}, before
		}
		return answer{Answers: verdicts}, before
	}
	return answer{Error: `a request needs "load" or "judge"`}, before
}

func load(documents []json.RawMessage) (answer, *cluster) {
	var reply answer
	accepted := objects{}
	for _, document := range documents {
		stored, refused := admit(document)
		if refused != nil {
			reply.Invalid = append(reply.Invalid, *refused)
			continue
		}
		text, err := json.Marshal(stored)
		if err != nil {
			return answer{Error: err.Error()}, nil
		}
		reply.Stored = append(reply.Stored, text)
		accepted.add(stored)
	}
	made, err := newCluster(accepted)
	if err != nil {
		return answer{Error: err.Error()}, nil
	}
	return reply, made
}
