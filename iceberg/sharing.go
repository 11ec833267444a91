package iceberg

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg/rawjson"
)

// Sharing knows which directories which catalog records claim, over all of
// them, so that nothing is removed below a directory that two share. It takes a
// few hundred bytes per record. It is safe for concurrent use.
type Sharing struct {
	mu         sync.Mutex
	claims     []claim
	unsorted   bool
	incomplete []TableID
}

// claim says that the record in owner holds root.
type claim struct{ root, owner filer.Path }

// Add takes in a record: its own directory, where the catalog takes its files to
// be, where an unfinished move puts them, and, if the metadata is kept inside
// the record, the locations that names. Views and other formats claim as well.
func (s *Sharing) Add(f Found) {
	s.AddPath(f.Path, f.Path)
	complete := f.Record != nil && s.addRecord(f, f.Record)
	if f.Record != nil && f.Record.Moving != nil {
		complete = s.addRecord(f, f.Record.Moving) && complete
	}
	if !complete {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.incomplete = append(s.incomplete, f.ID)
	}
}

// AddPath takes in one more directory of the record in owner.
func (s *Sharing) AddPath(owner, root filer.Path) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims = append(s.claims, claim{root: root, owner: owner})
	s.unsorted = true
}

// Incomplete names the records whose locations are not known in full, because
// the record cannot be read or keeps its metadata in a file. Who wants to remove
// something loads those and adds their Roots.
func (s *Sharing) Incomplete() []TableID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.incomplete)
}

// Overlap returns a record other than owner that claims root, a directory above
// it, or something below it.
func (s *Sharing) Overlap(owner, root filer.Path) (filer.Path, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsorted {
		slices.SortFunc(s.claims, func(a, b claim) int {
			return cmp.Or(cmp.Compare(a.root, b.root), cmp.Compare(a.owner, b.owner))
		})
		s.claims, s.unsorted = slices.Compact(s.claims), false
	}
	for p := root; p != p.Dir(); p = p.Dir() {
		if other, ok := s.other(owner, p, func(r filer.Path) bool { return r == p }); ok {
			return other, true
		}
	}
	below := root + "/"
	if root == "/" {
		below = root
	}
	return s.other(owner, below, func(r filer.Path) bool { return strings.HasPrefix(string(r), string(below)) })
}

// other looks from the claim on p on, as long as in holds.
func (s *Sharing) other(owner, p filer.Path, in func(filer.Path) bool) (filer.Path, bool) {
	i := sort.Search(len(s.claims), func(i int) bool { return s.claims[i].root >= p })
	for ; i < len(s.claims) && in(s.claims[i].root); i++ {
		if s.claims[i].owner != owner {
			return s.claims[i].owner, true
		}
	}
	return "", false
}

// addRecord reports whether all locations of the record are known.
func (s *Sharing) addRecord(f Found, r *Record) bool {
	l, err := NewLocator(f.ID, r, nil)
	if err != nil {
		return false
	}
	for _, root := range l.Roots() {
		s.AddPath(f.Path, root.Path)
	}
	if f.State == StateForeign {
		return true // what such a format keeps says nothing to us
	}
	if r.FullMetadata == nil {
		return r.MetadataLocation == "" || f.State == StateView
	}
	m, err := locations(r.FullMetadata)
	if err != nil {
		return false
	}
	if l, err = NewLocator(f.ID, r, m); err != nil {
		return false
	}
	for _, root := range l.Roots() {
		s.AddPath(f.Path, root.Path)
	}
	return true
}

// locations reads the little of the metadata that says where files are.
func locations(raw []byte) (*Metadata, error) {
	p := parser{m: &Metadata{Properties: map[string]string{}}, fields: map[string][]byte{}}
	err := rawjson.EachMember(raw, func(key, value []byte) error {
		switch string(key) {
		case "location", "properties":
			if !rawjson.IsNull(value) {
				p.fields[string(key)] = value
			}
		}
		return nil
	})
	return p.m, firstError(err, p.text("location", true, &p.m.Location), p.properties())
}
