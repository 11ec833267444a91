package rewrite

const (
	// fewValues is how many values the pages of a chunk have on average, of which there
	// are manyPages at least, that are worth being moved. A page takes as long to be
	// moved as fewer values take to be encoded anew, which makes some large pages of
	// them: shorter ones, and with less for readers to look at.
	fewValues = 128
	manyPages = 64
)

// few gives copying up where the pages that would be copied have few values each.
func (m *mover) few(parts []part) {
	if m.e.q.Copying != CopyWhereAllowed {
		return
	}
	values, pages := int64(0), int64(0)
	for i := range parts {
		if p := &parts[i]; p.copied {
			values += p.chunk.Values
			pages += p.pageCount()
		}
	}
	if pages < manyPages || values >= fewValues*pages {
		return
	}
	for i := range parts {
		parts[i].copied = false
	}
}
