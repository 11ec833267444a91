package manifests

import (
	"errors"
	"io"

	"github.com/seaice/seaice/fault"
)

// Sink takes what becomes of entries. Writer and Splitter are sinks.
type Sink interface {
	// Carry writes a live entry on, see Writer.Carry.
	Carry(e *Entry) error
	// Delete writes a live entry as removed now, see Writer.Delete.
	Delete(e *Entry) error
	// Add writes a new file, see Writer.Add.
	Add(e *Entry) error
}

// Verdict is what becomes of a live entry.
type Verdict uint8

const (
	// Keep carries the entry.
	Keep Verdict = iota
	// Remove writes the entry as DELETED by the committing snapshot.
	Remove
)

// FilterResult counts what Filter did.
type FilterResult struct {
	// Kept and Removed are live entries by verdict.
	Kept, Removed int64
	// Forgotten are the DELETED entries of earlier snapshots, which are not
	// repeated (F025).
	Forgotten int64
}

// Filter writes the live entries of r's manifest to the sink, carried or
// removed as decide says; with a nil decide all are carried. When nothing was
// written, a Writer's Close gives ErrEmpty, and the manifest has no successor.
func Filter(r *Reader, to Sink, decide func(e *Entry) (Verdict, error)) (FilterResult, error) {
	var res FilterResult
	for e, err := range r.Entries() {
		if err != nil {
			return res, err
		}
		if !e.Live() {
			res.Forgotten++
			continue
		}
		verdict := Keep
		if decide != nil {
			if verdict, err = decide(e); err != nil {
				return res, err
			}
		}
		if verdict == Remove {
			err = to.Delete(e)
			res.Removed++
		} else {
			err = to.Carry(e)
			res.Kept++
		}
		if err != nil {
			return res, fault.In("rewrite "+r.m.Path, err)
		}
	}
	return res, nil
}

// SplitterOptions describe the manifests a Splitter writes.
type SplitterOptions struct {
	// Writer describes each manifest; its Path is not used.
	Writer WriterOptions
	// TargetBytes is the size of the file, as it is stored, at which a manifest
	// is ended. It is passed by less than one block.
	TargetBytes int64
	// Create makes the file of manifest number n, counted from 0, and says at
	// which location it will be. Close of the file must make it durable.
	Create func(n int) (out io.WriteCloser, location string, err error)
}

// Splitter writes entries to manifests of a target size, one after another.
// After an error it must not be used further; the file at hand is not closed,
// and it is for whoever made it to drop it.
type Splitter struct {
	o    SplitterOptions
	w    *Writer
	out  io.WriteCloser
	n    int
	done []*ManifestFile
}

// NewSplitter prepares manifests. No file is made before the first entry.
func NewSplitter(o SplitterOptions) (*Splitter, error) {
	if o.TargetBytes <= 0 || o.Create == nil {
		return nil, fault.New(fault.Halt, "split manifests without a target size or a place to put them")
	}
	_, err := NewWriter(io.Discard, o.Writer)
	return &Splitter{o: o}, err
}

// Carry writes a live entry on, see Writer.Carry.
func (s *Splitter) Carry(e *Entry) error { return s.write(e, (*Writer).Carry) }

// Delete writes a live entry as removed now, see Writer.Delete.
func (s *Splitter) Delete(e *Entry) error { return s.write(e, (*Writer).Delete) }

// Add writes a new file, see Writer.Add.
func (s *Splitter) Add(e *Entry) error { return s.write(e, (*Writer).Add) }

func (s *Splitter) write(e *Entry, how func(*Writer, *Entry) error) error {
	if err := s.next(); err != nil {
		return err
	}
	err := how(s.w, e)
	if errors.Is(err, ErrMisfit) && s.w.Entries() > 0 {
		// Its fields of unknown meaning need a manifest of another schema.
		if err = s.Cut(); err == nil {
			if err = s.next(); err == nil {
				err = how(s.w, e)
			}
		}
	}
	if err == nil && s.w.Size() >= s.o.TargetBytes {
		err = s.Cut()
	}
	return err
}

func (s *Splitter) next() error {
	if s.w != nil {
		return nil
	}
	out, location, err := s.o.Create(s.n)
	if err != nil {
		return fault.In("create manifest", err)
	}
	o := s.o.Writer
	o.Path = location
	s.n++
	s.out = out
	s.w, err = NewWriter(out, o)
	return err
}

// Cut ends the manifest at hand, if there is one, so that the next entry
// begins a new one.
func (s *Splitter) Cut() error {
	if s.w == nil {
		return nil
	}
	m, err := s.w.Close()
	if err != nil {
		return err
	}
	if err := s.out.Close(); err != nil {
		return fault.In("close manifest "+m.Path, err)
	}
	s.done = append(s.done, m)
	s.w, s.out = nil, nil
	return nil
}

// Size is the number of bytes of the manifest at hand.
func (s *Splitter) Size() int64 {
	if s.w == nil {
		return 0
	}
	return s.w.Size()
}

// Close ends the last manifest and returns all, in order; none if there were
// no entries.
func (s *Splitter) Close() ([]*ManifestFile, error) {
	if err := s.Cut(); err != nil {
		return nil, err
	}
	return s.done, nil
}
