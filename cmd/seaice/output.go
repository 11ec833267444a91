package main

import (
	"encoding/json"
	"io"

	"github.com/seaice/seaice/fault"
)

// emit writes the result of a command: doc as the one JSON document under
// --json, else what text prints. text need not look at the errors of w, which
// keeps the first one for emit.
func (c *cli) emit(doc any, text func(w io.Writer)) error {
	c.bar.clear()
	w := &stickyWriter{to: c.out}
	if c.json {
		c.emitted = true
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return local(enc.Encode(doc))
	}
	text(w)
	return local(w.err)
}

// stickyWriter drops everything after the first error, which it keeps.
type stickyWriter struct {
	to  io.Writer
	err error
}

func (w *stickyWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	var n int
	n, w.err = w.to.Write(b)
	return n, w.err
}

// failure is the JSON document of a command that ends with an error and had
// written nothing.
type failure struct {
	Error    string     `json:"error"`
	Kind     fault.Kind `json:"kind"`
	Hints    []string   `json:"hints,omitempty"`
	ExitCode int        `json:"exit-code"`
}
