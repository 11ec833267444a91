package rewrite

import (
	"math"

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

const (
	// layoutSpare is the part of a target that makes no file of its own: files
	// share it.
	layoutSpare = 0.1
	// layoutFull and layoutOver are the parts of its goal between which a file
	// may end where a block does, so that the block stays whole.
	layoutFull = 0.95
	layoutOver = 1.1
	// layoutLeast is the part of the target that files which follow have at
	// least in the mean, whatever a file takes above its goal.
	layoutLeast = 0.85
	// layoutEven is the part of the target above which all files have the same.
	// With less, the last one has less alone, but no less than layoutRest: better
	// one file that is too small than several that are a little too small.
	layoutEven = 1 / layoutOver
	layoutRest = 0.5
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

// files is how many files so many bytes and live rows become: as few as the
// target and the greatest number of rows allow.
func (l *layout) files(bytes float64, rows int64) int64 {
	n := int64(1)
	if most := float64(l.target); bytes > most*(1+layoutSpare) {
		n = int64(math.Ceil(bytes/most - layoutSpare))
	}
	if l.maxRows > 0 {
		n = max(n, (rows-1)/l.maxRows+1)
	}
	return n
}

// end is where a file ends that others follow.
type end struct {
	// bytes is where it should end. Where a block ends between short and most it
	// may; it takes no further row group from least on.
	bytes, least, short, most float64
	// rows is the least number of rows; with fewer, more files would follow.
	rows int64
}

// end says where a file ends that has so many bytes and rows; last reports that it
// takes all that is left.
func (l *layout) end(bytes, rows int64) (e end, last bool) {
	rest, live := l.rest()
	all := float64(bytes) + rest*l.ratio()
	rows += live
	n := l.files(all, rows)
	if n == 1 {
		return end{bytes: all}, true
	}
	others, target := float64(n-1), float64(l.target)
	e.bytes = all / float64(n)
	if l.maxRows > 0 {
		e.rows = rows - (n-1)*l.maxRows
	}
	if float64(n) < all/target+1 { // else rows say how many, and bytes are shared evenly
		e.bytes = max(e.bytes, min(target*layoutEven, all-others*layoutRest*target))
	}
	e.least = max(e.bytes*layoutFull, min(e.bytes, all-(others+layoutSpare)*target))
	e.short = max(e.least, min(e.bytes, target*layoutEven))
	e.most = max(e.bytes, min(e.bytes*layoutOver, all-others*layoutLeast*target))
	return e, false
}

// full reports that a file with so many bytes and rows takes no further row
// group.
func (l *layout) full(bytes, rows int64) bool {
	if l.empty() || l.maxRows > 0 && rows >= l.maxRows {
		return true
	}
	e, last := l.end(bytes, rows)
	return !last && rows > 0 && float64(bytes) >= e.least && rows >= e.rows
}

// next gives the spans of the next row group of a file that has so many bytes
// and rows, and what they are estimated to be.
func (l *layout) next(bytes, rows int64) (spans []span, estimated float64) {
	g := l.goal(bytes, rows)
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
	// over is how far bytes may be passed to keep a block whole.
	over float64
	// ends reports that the row group ends its file and others follow: it has
	// from least to most bytes, and at least so many rows.
	ends        bool
	least, most float64
	leastRows   int64
}

func (l *layout) goal(bytes, rows int64) goal {
	ratio := l.ratio()
	e, last := l.end(bytes, rows)
	room := e.bytes - float64(bytes)
	half := !last && !l.exact && l.estimated == 0
	if half {
		// Nothing is known yet: half of the file shows what the rest will be.
		room /= 2
	}
	// The room is shared out evenly, so that no row group is a small rest.
	groups := max(1, int64(max(room, 1)/float64(l.groupBytes)+0.999))
	g := goal{bytes: max(room, 1) / float64(groups) / ratio, rows: l.groupRows, over: 1.5}
	if groups == 1 {
		g.all, g.ends, g.over = last, !last && !half, layoutOver
		g.least, g.most = (e.short-float64(bytes))/ratio, (e.most-float64(bytes))/ratio
		g.leastRows = e.rows - rows
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
	part := min(max(int64(float64(b.live)*(g.bytes-estimated)/b.bytes), 1), n)
	switch whole := n == b.live; {
	case g.all, after <= g.bytes:
		return n
	case g.ends:
		// At the end of a block if one is near: the nearer one.
		before := taken > 0 && taken >= g.leastRows && estimated >= g.least
		switch {
		case whole && after <= g.most && (!before || after-g.bytes <= g.bytes-estimated):
			return n
		case before:
			return 0
		}
		return min(max(part, g.leastRows-taken), n)
	case whole && (estimated+after)/2 <= g.bytes && after <= g.bytes*g.over:
		return n
	case estimated >= g.bytes/2:
		return 0
	case after <= g.bytes*g.over:
		return n
	}
	return part
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
