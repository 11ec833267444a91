package rewrite

const (
	// partsAhead is how many parts of a column are begun to be read before their
	// turn: as many as hide what a store takes to answer.
	partsAhead = 16
	// aheadShare is the share of the memory that one column reads ahead at most.
	aheadShare = 16
)

// ahead begins to read those of the parts that come next which are wanted, as far as
// there is room.
func (m *mover) ahead(next []part, wanted func(*part) bool) {
	room := m.e.memory() / aheadShare
	for i := range next[:min(partsAhead, len(next))] {
		p := &next[i]
		if !p.copied || !p.whole || !wanted(p) {
			continue
		}
		if room -= p.begun(); room < 0 || p.pages == nil && !m.e.roomy() {
			return
		}
		p.ahead()
	}
}

// any is every part.
func (*part) any() bool { return true }

// begun is what the begin of a part takes of the memory while it is open: its windows.
func (p *part) begun() int64 { return min(2*p.chunk.CompressedSize, openBytes) }

// roomy reports that more than half of what there is for reading, beside what the
// files keep, is left. Who reads ahead, or keeps open what is used later, leaves the
// other half to what all columns read and decode at the moment, which fails without.
func (e *engine) roomy() bool { return e.reading.Left() > e.room/2 }

// ahead begins to read a part that is moved soon. Where that cannot be, it is read
// in its turn.
func (p *part) ahead() {
	if p.pages != nil {
		return
	}
	pages, err := p.src.file.Pages(p.group, p.from.Leaf)
	if err != nil {
		return
	}
	if pages.Start() != nil {
		pages.Close()
		return
	}
	p.pages = pages
}
