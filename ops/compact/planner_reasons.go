package compact

import (
	"cmp"
	"math"
	"slices"

	"github.com/seaice/seaice/ops"
)

// left is a reason for which something was left alone, apart from how often.
type left struct{ code, subject, text, setting string }

// reasons counts what was left alone. Their number is that of the rules and the
// specs of a table, not that of its files.
type reasons struct{ n map[left]int64 }

func (r *reasons) add(l left, n int64) {
	if n == 0 {
		return
	}
	if r.n == nil {
		r.n = map[left]int64{}
	}
	r.n[l] = add(r.n[l], n)
}

// all are the reasons in an order that does not depend on anything but them.
func (r *reasons) all() []ops.Reason {
	var out []ops.Reason
	for l, n := range r.n {
		out = append(out, ops.Reason{Code: l.code, Subject: l.subject, Count: n, Text: l.text, Setting: l.setting})
	}
	slices.SortFunc(out, func(a, b ops.Reason) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Text, b.Text))
	})
	return out
}

// add sums sizes and counts, which are never negative, without overflow:
// manifests can claim anything.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
