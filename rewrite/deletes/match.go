package deletes

import (
	"context"
	"fmt"
	"sync"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// maxMatched bounds the spellings whose data file is remembered.
const maxMatched = 1 << 16

// matcher finds the data file that a spelling in a position delete file means.
// Deletes and manifests may spell a file differently.
type matcher struct {
	reader     filer.Reader
	candidates func(string) ([]filer.Path, error)
	byName     map[string]int
	byPath     map[filer.Path]int

	mu    sync.Mutex
	known map[string]int
}

func newMatcher(q *Request) (*matcher, error) {
	m := &matcher{reader: q.Reader, candidates: q.Candidates, byName: map[string]int{}, byPath: map[filer.Path]int{}, known: map[string]int{}}
	for i := range q.Data {
		d := &q.Data[i]
		if _, twice := m.byName[d.Location]; twice {
			return nil, fault.New(fault.Halt, fmt.Sprintf("data file %s is asked for twice", d.Location))
		}
		m.byName[d.Location] = i
		if d.At == "" {
			continue
		}
		if _, twice := m.byPath[d.At]; twice {
			return nil, fault.New(fault.Halt, fmt.Sprintf("data file %s is asked for twice", d.At))
		}
		m.byPath[d.At] = i
	}
	return m, nil
}

// match is the index of the data file, or -1 for one that was not asked for.
func (m *matcher) match(ctx context.Context, spelling string) (int, error) {
	if n, ok := m.byName[spelling]; ok {
		return n, nil
	}
	if m.candidates == nil {
		return -1, nil
	}
	m.mu.Lock()
	n, ok := m.known[spelling]
	m.mu.Unlock()
	if ok {
		return n, nil
	}
	n, err := m.look(ctx, spelling)
	if err != nil {
		return 0, fault.In(fmt.Sprintf("find the data file %q", spelling), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.known) >= maxMatched {
		clear(m.known)
	}
	m.known[spelling] = n
	return n, nil
}

func (m *matcher) look(ctx context.Context, spelling string) (int, error) {
	all, err := m.candidates(spelling)
	if err != nil {
		return 0, err
	}
	for i, p := range all {
		n, ok := m.byPath[p]
		if !ok {
			continue
		}
		// It is this one unless a likelier candidate is a file: the first that
		// exists is what is meant.
		for _, before := range all[:i] {
			_, err := m.reader.Stat(ctx, before)
			if err == nil {
				return -1, nil
			}
			if !filer.NotFound(err) {
				return 0, err
			}
		}
		return n, nil
	}
	return -1, nil
}
