package rewrite

import (
	"github.com/seaice/seaice/rewrite/deletes"
)

// span is a run of rows of one source, inside one of its row groups.
type span struct {
	source, group int
	// first is the row of the file it begins with, rows how many, those deleted
	// included; live is without them.
	first, rows, live int64
}

// block is a span that has not been given to an output yet.
type block struct {
	span
	// bytes is what its live rows are thought to become in an output.
	bytes float64
}

// layout cuts the rows of a unit into row groups and files. It is asked for one
// row group after the other, because what a row group became says how much the
// next one may hold.
type layout struct {
	// target is the size of a file, groupBytes and groupRows are the greatest
	// size of a row group, maxRows is the greatest number of rows of a file or 0.
	target, groupBytes, groupRows, maxRows int64
	// exact says that estimates are known to hold, because pages are moved as
	// they are.
	exact   bool
	blocks  []block
	deleted []*deletes.Positions
	// ratio is bytes written by bytes estimated, 1 before anything was written.
	written, estimated float64
}

// Fractions of a file's target.
const (
	// A rest up to this much above the target joins the file instead of making
	// another one.
	layoutOver = 1.1
	// A file this full is ended.
	layoutFull = 0.95
)

// empty reports that all rows were given out.
func (l *layout) empty() bool { return len(l.blocks) == 0 }

func (l *layout) ratio() float64 {
	if l.estimated <= 0 || l.written <= 0 {
		return 1
	}
	return min(max(l.written/l.estimated, 1.0/64), 64)
}

// wrote says what became of the row group given out last.
func (l *layout) wrote(estimated float64, bytes int64) {
	l.estimated += estimated
	l.written += float64(bytes)
}

func (l *layout) rest() (bytes float64, rows int64) {
	for i := range l.blocks {
		bytes += l.blocks[i].bytes
		rows += l.blocks[i].live
	}
	return bytes, rows
}

// full reports that a file with so many bytes and rows takes no further row
// group.
func (l *layout) full(bytes, rows int64) bool {
	if l.empty() || l.maxRows > 0 && rows >= l.maxRows {
		return true
	}
	if rows == 0 {
		return false
	}
	rest, _ := l.rest()
	if float64(bytes)+rest*l.ratio() <= float64(l.target)*layoutOver {
		return false
	}
	return float64(bytes) >= float64(l.target)*layoutFull
}

// next gives the spans of the next row group of a file that has so many bytes
// and rows, and what they are estimated to be.
func (l *layout) next(bytes, rows int64) (spans []span, estimated float64) {
	rest, _ := l.rest()
	g := l.goal(bytes, rows, rest)
	taken := int64(0)
	for len(l.blocks) > 0 {
		b := l.blocks[0]
		n := g.take(b, taken, estimated)
		if n == 0 {
			break
		}
		if n < b.live {
			b = l.cut(n)
			return append(spans, b.span), estimated + b.bytes
		}
		spans = append(spans, b.span)
		taken += b.live
		estimated += b.bytes
		l.blocks = l.blocks[1:]
	}
	return spans, estimated
}

// goal is what a row group should hold.
type goal struct {
	// bytes is in estimated bytes; rows is a limit, and hard if it is the
	// file's.
	bytes float64
	rows  int64
	hard  bool
	// all reports that everything that is left should be taken.
	all bool
	// over is how far bytes may be passed to keep a block whole: less where the
	// row group ends the file.
	over float64
}

func (l *layout) goal(bytes, rows int64, rest float64) goal {
	ratio := l.ratio()
	rest *= ratio
	room := float64(l.target) - float64(bytes)
	last := float64(bytes)+rest <= float64(l.target)*layoutOver
	switch {
	case last:
		room = rest
	case !l.exact && l.estimated == 0:
		// Nothing is known yet: half of the file shows what the rest will be.
		room /= 2
	}
	// The room is shared out evenly, so that no row group is a small rest.
	groups := max(1, int64(max(room, 1)/float64(l.groupBytes)+0.999))
	g := goal{bytes: max(room, 1) / float64(groups) / ratio, rows: l.groupRows, all: last && groups == 1, over: 1.5}
	if groups == 1 {
		g.over = layoutOver
	}
	if l.maxRows > 0 && l.maxRows-rows <= g.rows {
		g.rows, g.hard = l.maxRows-rows, true
	}
	return g
}

// take says how many live rows of b a row group takes that has so much already:
// all where that comes near the goal, none where it is near already, and else a
// part. A row group always takes something.
func (g goal) take(b block, taken int64, estimated float64) int64 {
	room := g.rows - taken
	if room <= 0 {
		return 0
	}
	if b.live > room && !g.hard {
		switch {
		case taken >= g.rows/2 && b.live <= g.rows:
			return 0
		case taken == 0:
			parts := (b.live + g.rows - 1) / g.rows
			room = (b.live + parts - 1) / parts
		}
	}
	n := min(b.live, room)
	after := estimated + b.bytes*float64(n)/float64(b.live)
	switch {
	case g.all, after <= g.bytes, n == b.live && (estimated+after)/2 <= g.bytes && after <= g.bytes*g.over:
		return n
	case estimated >= g.bytes/2:
		return 0
	case after <= g.bytes*g.over:
		return n
	}
	part := int64(float64(b.live) * (g.bytes - estimated) / b.bytes)
	return min(max(part, 1), n)
}

// cut takes the first live rows off the first block; deleted rows behind them go
// with the rest.
func (l *layout) cut(live int64) block {
	b := &l.blocks[0]
	head := *b
	head.rows = l.reach(b.span, live)
	head.live = live
	head.bytes = b.bytes * float64(live) / float64(b.live)
	b.first += head.rows
	b.rows -= head.rows
	b.live -= live
	b.bytes -= head.bytes
	return head
}

// reach is the least number of rows of s that hold so many live ones.
func (l *layout) reach(s span, live int64) int64 {
	d := l.deleted[s.source]
	if s.live == s.rows {
		return live
	}
	low, high := live, s.rows
	for low < high {
		mid := low + (high-low)/2
		if mid-d.Count(s.first, s.first+mid) >= live {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
