package deletes

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// chain are deletes whose sets of data files each contain the one before, as
// those of one partition do by their sequence numbers. One table serves a chain:
// a key has the greatest rank of the deletes it is in, and deletes the rows of
// every data file whose level is not above. So thousands of small deletes, each
// with its own sequence number, are one pass.
type chain struct {
	members []member
	// level is the rank from which on a delete applies to a data file.
	level map[int]rank
	ranks rank
}

type member struct {
	delete int
	rank   rank
}

// scope are the deletes with one set of data files.
type scope struct {
	files   []int // in order
	deletes []int
}

// chains sorts deletes into as few chains as a greedy search finds. applies are
// the data files of each delete, in any order; those without any are left out.
func chains(deletes []int, applies func(delete int) []int) []*chain {
	var out []*chain
	var last [][]int // the greatest set of each chain
	for _, s := range scopes(deletes, applies) {
		i := 0
		for i < len(out) && (out[i].ranks == maxRank || !contains(s.files, last[i])) {
			i++
		}
		if i == len(out) {
			out = append(out, &chain{level: map[int]rank{}})
			last = append(last, nil)
		}
		c := out[i]
		c.ranks++
		for _, d := range s.deletes {
			c.members = append(c.members, member{delete: d, rank: c.ranks})
		}
		for _, f := range s.files {
			if c.level[f] == 0 {
				c.level[f] = c.ranks
			}
		}
		last[i] = s.files
	}
	return out
}

// scopes are the sets of data files, the smallest first.
func scopes(deletes []int, applies func(int) []int) []*scope {
	byFiles := map[string]*scope{}
	var out []*scope
	for _, d := range deletes {
		files := slices.Compact(slices.Sorted(slices.Values(applies(d))))
		if len(files) == 0 {
			continue
		}
		var id []byte
		for _, f := range files {
			id = binary.AppendUvarint(id, uint64(f))
		}
		s := byFiles[string(id)]
		if s == nil {
			s = &scope{files: files}
			byFiles[string(id)] = s
			out = append(out, s)
		}
		s.deletes = append(s.deletes, d)
	}
	slices.SortStableFunc(out, func(a, b *scope) int { return cmp.Compare(len(a.files), len(b.files)) })
	return out
}

// contains reports whether all of some are in all. Both are in order.
func contains(all, some []int) bool {
	for _, f := range some {
		for len(all) > 0 && all[0] < f {
			all = all[1:]
		}
		if len(all) == 0 || all[0] != f {
			return false
		}
	}
	return true
}
