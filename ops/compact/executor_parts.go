package compact

import (
	"fmt"

	"github.com/seaice/seaice/ops"
)

const (
	// mostParts is how many commits one plan becomes at most: each is a snapshot
	// that others have to read past.
	mostParts = 10
	// leastPart is the size of inputs, in bytes, below which a part is not worth
	// a commit of its own.
	leastPart = 4 << 30
)

// Parts implements ops.Parted: the plan cut into parts that are executed and
// committed one after the other, so that the first units do not wait for the
// last, and a crash or a conflict costs one part.
func (p *Plan) Parts() []ops.Plan {
	var total int64
	for i := range p.units {
		total += p.units[i].Bytes()
	}
	least := int64(leastPart)
	if p.leastPart > 0 {
		least = p.leastPart
	}
	return p.cut(max(least, (total+mostParts-1)/mostParts))
}

// cut makes parts of at least so many bytes, but for the last.
func (p *Plan) cut(least int64) []ops.Plan {
	var out []ops.Plan
	begin, bytes := 0, int64(0)
	for i := range p.units {
		bytes += p.units[i].Bytes()
		if bytes >= least || i == len(p.units)-1 {
			out = append(out, p.part(len(out)+1, begin, i+1))
			begin, bytes = i+1, 0
		}
	}
	if len(out) == 1 {
		return []ops.Plan{p}
	}
	return out
}

// part are some of the units. They refer to the manifests and deletes of the
// whole.
func (p *Plan) part(n, begin, end int) *Plan {
	h := p.header
	h.Digest = fmt.Sprintf("%s-%d", p.header.Digest, n)
	h.Reasons = nil
	return &Plan{header: h, options: p.options, manifests: p.manifests, deletes: p.deletes, units: p.units[begin:end], whole: p}
}
