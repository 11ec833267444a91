package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/seaice/seaice/fault"
)

// terminal reports whether f, a reader or writer, is a device a person sits at.
// The null device is a character device too.
func terminal(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	st, err := file.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(st, null)
}

// somebody refuses, before anything is looked at, a command that would have to
// ask when nobody can answer.
func (c *cli) somebody(yes bool, instead string) error {
	if yes || c.attended && !c.json {
		return nil
	}
	return usage(fault.WithHint("add --yes to go ahead, or use "+instead+" to look",
		fault.New(fault.Unsupported, "there is nobody to ask: standard input is no terminal, or --json was given")))
}

// ask returns nil only for a clear yes. It does not outlive ctx.
func (c *cli) ask(ctx context.Context, question string) error {
	c.bar.clear()
	fmt.Fprintf(c.errOut, "%s [y/N] ", question)
	if c.answers == nil {
		c.answers = bufio.NewReader(c.in)
	}
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		line, err := c.answers.ReadString('\n')
		got <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		// The read is left behind; the process ends.
		fmt.Fprintln(c.errOut)
		return fault.Wrap(fault.Canceled, "wait for an answer", context.Cause(ctx))
	case a := <-got:
		if a.err != nil && !errors.Is(a.err, io.EOF) {
			return fault.Wrap(fault.Canceled, "read the answer", a.err)
		}
		switch strings.ToLower(strings.TrimSpace(a.line)) {
		case "y", "yes":
			return nil
		}
		return fault.New(fault.Canceled, "not executed: the answer was not yes")
	}
}

// bar is the progress that a person sees on a terminal: one line, which is
// replaced. It implements ops.Progress.
type bar struct {
	// w is nil when nobody watches.
	w io.Writer

	mu    sync.Mutex
	shown bool
}

// Step implements ops.Progress.
func (b *bar) Step(what string, done, total int64) {
	b.Note(fmt.Sprintf("%d of %d %s", done, total, what))
}

// Note implements ops.Progress.
func (b *bar) Note(text string) {
	if b.w == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown = true
	fmt.Fprintf(b.w, "\r\x1b[K%s", text)
}

// clear takes the line away, so that other output begins on a clean one.
func (b *bar) clear() {
	if b.w == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown {
		b.shown = false
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
