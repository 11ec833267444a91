package commit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
	"github.com/seaice/seaice/journal"
)

// Staged is a file that was written and is referenced by nothing yet.
type Staged struct {
	Path filer.Path
	// Location is empty for a movement map, which no table names.
	Location string
	Size     int64
	Identity filer.Identity
}

// Stage writes the files of one run. Every name holds the run's token and is
// journalled before its file is created, so that whatever happens somebody can
// find it. It is safe for concurrent use.
type Stage struct {
	fl   filer.Filer
	clk  clock.Clock
	draw func() uint64
	run  *journal.Run
	loc  *iceberg.Locator

	mu    sync.Mutex
	files map[filer.Path]Staged
	// spare are metadata names that were journalled ahead, so that a run that
	// writes a hundred manifests does not write a hundred journal segments.
	spare []filer.Path
	next  int
	// used are the files that the last rebuild refers to; nil means all.
	used map[filer.Path]bool
	// snapshot is the id that the run's snapshot has in every attempt, so that
	// manifests which do not depend on the head serve the next attempt too; 0
	// before the first.
	snapshot iceberg.SnapshotID
	// inherited are units that earlier runs had finished.
	inherited []journal.Unit
}

// spareNames is how many metadata names are journalled at once.
const spareNames = 16

func newStage(fl filer.Filer, clk clock.Clock, draw func() uint64, run *journal.Run, v *iceberg.View) *Stage {
	return &Stage{fl: fl, clk: clk, draw: draw, run: run, loc: v.Locations, files: map[filer.Path]Staged{}}
}

// Run is the journal of the run.
func (s *Stage) Run() *journal.Run { return s.run }

// Reader reads table files.
func (s *Stage) Reader() filer.Reader { return s.fl }

// Locations resolves the paths of the table.
func (s *Stage) Locations() *iceberg.Locator { return s.loc }

// Metadata journals and returns a fresh name for an Avro file in the table's
// metadata directory.
func (s *Stage) Metadata(ctx context.Context) (filer.Path, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spare) == 0 {
		for range spareNames {
			s.next++
			s.spare = append(s.spare, s.loc.Metadata().Join(fmt.Sprintf("%s-m%d.avro", s.run.Token(), s.next)))
		}
		if err := s.run.Record(ctx, s.spare...); err != nil {
			s.spare = nil
			return "", err
		}
	}
	p := s.spare[0]
	s.spare = s.spare[1:]
	return p, nil
}

// Name returns a name with the run's token in it, in the directory dir: what a
// caller journals with Record before it creates the file.
func (s *Stage) Name(dir filer.Path, prefix, suffix string) filer.Path {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return dir.Join(fmt.Sprintf("%s%s-%d%s", prefix, s.run.Token(), s.next, suffix))
}

// Record journals names before their files are created.
func (s *Stage) Record(ctx context.Context, names ...filer.Path) error {
	return s.run.Record(ctx, names...)
}

// File is a staged file that is being written.
type File struct {
	filer.Upload
	s    *Stage
	path filer.Path
}

// Create starts a file under a journalled name. It is exclusive: a file that is
// there already is somebody else's.
func (s *Stage) Create(ctx context.Context, p filer.Path) (*File, error) {
	if !strings.Contains(p.Name(), s.run.Token()) {
		return nil, fault.New(fault.Halt, fmt.Sprintf("stage %s: the name does not hold the run's token", p))
	}
	up, err := s.fl.Create(ctx, p, filer.CreateOptions{Mime: mimeOf(p)})
	if err != nil {
		return nil, fault.In("stage "+p.String(), err)
	}
	return &File{Upload: up, s: s, path: p}, nil
}

// Path is the file's name.
func (f *File) Path() filer.Path { return f.path }

// Location is the file's name as table metadata spells it.
func (f *File) Location() string { return f.s.loc.Spelling(f.path) }

// Done makes the file visible and remembers it.
func (f *File) Done(ctx context.Context) (Staged, error) {
	e, err := f.Commit(ctx)
	if err != nil {
		e, err = f.s.claim(ctx, f.path, err)
	}
	if err != nil {
		return Staged{}, fault.In("stage "+f.path.String(), err)
	}
	return f.s.remember(e), nil
}

// Put stages a small file under a journalled name.
func (s *Stage) Put(ctx context.Context, p filer.Path, content []byte) (Staged, error) {
	e, err := s.fl.Put(ctx, p, content, filer.CreateOptions{Mime: mimeOf(p)})
	if err != nil {
		e, err = s.claim(ctx, p, err)
	}
	if err != nil {
		return Staged{}, fault.In("stage "+p.String(), err)
	}
	return s.remember(e), nil
}

// claim looks whether a creation whose answer was lost took effect. The name
// holds the run's token and is used once, so a file there is ours. Its size is
// compared with what is expected by whoever reads it: the fence compares
// identities from here on.
func (s *Stage) claim(ctx context.Context, p filer.Path, cause error) (*filer.Entry, error) {
	if !fault.Is(cause, fault.Unknown) {
		return nil, cause
	}
	e, err := s.fl.Stat(ctx, p)
	if err != nil {
		return nil, fault.Wrap(fault.Transient, "look for a file whose creation was not answered", cause)
	}
	return e, nil
}

func (s *Stage) remember(e *filer.Entry) Staged {
	f := Staged{Path: e.Path, Size: e.Size, Identity: e.Identity()}
	if e.Path.Bucket() != "" {
		f.Location = s.loc.Spelling(e.Path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[e.Path] = f
	return f
}

// Adopt remembers a file that an earlier run staged and this one took over.
func (s *Stage) Adopt(e *filer.Entry) Staged { return s.remember(e) }

// Pause waits before something that failed for now is tried again; n counts the
// failures from 1 on.
func (s *Stage) Pause(ctx context.Context, n int) error {
	s.mu.Lock()
	r := s.draw()
	s.mu.Unlock()
	return s.clk.Sleep(ctx, backoffFor(n, r))
}

// Inherit takes in units that an earlier run, which this one adopted, had
// finished.
func (s *Stage) Inherit(units ...journal.Unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inherited = append(s.inherited, units...)
}

// Inherited are the units taken in by Inherit.
func (s *Stage) Inherited() []journal.Unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.inherited)
}

// Files are all staged files, in order of their paths.
func (s *Stage) Files() []Staged {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Staged, 0, len(s.files))
	for _, f := range s.files {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Staged) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return out
}

// holds reports whether the run staged a file at p.
func (s *Stage) holds(p filer.Path) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.files[p]
	return ok
}

// Use tells the stage which of its files the rebuilt change refers to. What a
// lost attempt left behind is then known to be superfluous once a commit has
// succeeded.
func (s *Stage) Use(paths ...filer.Path) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil {
		s.used = map[filer.Path]bool{}
	}
	for _, p := range paths {
		s.used[p] = true
	}
}

// restart forgets what the last attempt used.
func (s *Stage) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = nil
}

// usage is what the last rebuild refers to.
func (s *Stage) usage() map[filer.Path]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.used)
}

// stands takes back what was used when the attempt was made that is in the
// table, which need not be the last one.
func (s *Stage) stands(used map[filer.Path]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = used
}

// superfluous are the files that the committed attempt does not use.
func (s *Stage) superfluous() []Staged {
	var out []Staged
	for _, f := range s.Files() {
		s.mu.Lock()
		unused := s.used != nil && !s.used[f.Path]
		s.mu.Unlock()
		if unused {
			out = append(out, f)
		}
	}
	return out
}

// verify is the second half of the fence: every staged file is still there and
// still the one that was written.
func (s *Stage) verify(ctx context.Context) error {
	for _, f := range s.Files() {
		s.mu.Lock()
		skip := s.used != nil && !s.used[f.Path]
		s.mu.Unlock()
		if skip {
			continue
		}
		e, err := s.fl.Stat(ctx, f.Path)
		switch {
		case filer.NotFound(err):
			return fault.Wrap(fault.Stale, "staged file "+f.Path.String()+" is gone; the run was taken for abandoned", err)
		case err != nil:
			return fault.In("look at staged file "+f.Path.String(), err)
		case e.Identity() != f.Identity:
			return fault.New(fault.Halt, "staged file "+f.Path.String()+" was replaced by another")
		}
	}
	return nil
}

func mimeOf(p filer.Path) string {
	switch name := p.Name(); {
	case strings.HasSuffix(name, ".json"):
		return "application/json"
	case strings.HasSuffix(name, ".avro"):
		return "application/avro"
	case strings.HasSuffix(name, ".parquet"):
		return "application/vnd.apache.parquet"
	}
	return "application/octet-stream"
}
