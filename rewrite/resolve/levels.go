package resolve

import (
	"fmt"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/format"
)

// refused is the level of what must not occur: null where the table requires a
// value.
const refused int8 = -1

// dropped is the level of entries of a deeper repetition than is asked for.
const dropped int8 = -1

// defLevels maps the definition levels of a file's leaf to those of the target.
// required names the column that a refused level would leave without a value.
func defLevels(steps []step, greatest int) (out []int8, required string) {
	out = make([]int8, greatest+1)
	for d := range out {
		file, target := 0, 0
		for _, s := range steps {
			if s.file {
				if file == d {
					if !s.target {
						target, required = int(refused), s.column
					}
					break
				}
				file++
			}
			if s.target {
				target++
			}
		}
		out[d] = int8(target)
	}
	return out, required
}

func identity(m []int8, greatest int) bool {
	for i, l := range m {
		if int(l) != i {
			return false
		}
	}
	return len(m) == greatest+1
}

// sameRepetitions reports whether two leaves and all that encloses them repeat
// alike. Equal greatest levels are not enough: a required field of an optional
// group is not an optional field of a required one.
func sameRepetitions(a, b *format.Node) bool {
	for a.Parent != nil && b.Parent != nil {
		if a.Repetition != b.Repetition {
			return false
		}
		a, b = a.Parent, b.Parent
	}
	return a.Parent == nil && b.Parent == nil
}

// level is where the levels of absent columns come from: a leaf of the file
// below the nearest enclosing column that is present, or none.
type level struct {
	leaf int
	// def maps the definition levels of that leaf; a level equal to base means
	// that the enclosing column is there.
	def, rep []int8
	base     int
	required string
}

// levelsOf takes the levels of a present struct from a leaf below it, the one
// with the fewest repetitions, whatever column it is.
func levelsOf(f *field, n *format.Node, steps []step) (level, error) {
	var leaf *format.Node
	eachLeaf(n, func(c *format.Node) {
		if leaf == nil || c.MaxRep < leaf.MaxRep {
			leaf = c
		}
	})
	if leaf == nil {
		return level{}, f.unsupported("is a group without leaves in the file")
	}
	l := level{leaf: leaf.Leaf}
	own := 0
	for _, s := range steps {
		if s.file {
			own++
		}
		if s.target {
			l.base++
		}
	}
	if own != n.MaxDef {
		return level{}, fault.New(fault.Corrupt, fmt.Sprintf("column %s has %d definition levels in the file, its path tells %d", f.name, n.MaxDef, own))
	}
	upTo, required := defLevels(steps, own)
	l.required = required
	l.def = make([]int8, leaf.MaxDef+1)
	for d := range l.def {
		l.def[d] = upTo[min(d, own)]
	}
	if leaf.MaxRep > 0 {
		l.rep = make([]int8, leaf.MaxRep+1)
		for r := range l.rep {
			l.rep[r] = int8(r)
			if r > n.MaxRep {
				l.rep[r] = dropped
			}
		}
		if identity(l.rep, n.MaxRep) {
			l.rep = nil
		}
	}
	return l, nil
}
