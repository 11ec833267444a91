package rewrite

import (
	"context"
	"slices"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/metrics"
	"github.com/seaice/seaice/rewrite/resolve"
)

// mover makes the chunk of one leaf of one row group: it takes the same spans as
// every other leaf, each by the cheapest way, and gives pages to its lane.
type mover struct {
	e     *engine
	ctx   context.Context //nolint:containedctx // of one call of move
	index int
	leaf  *resolve.Leaf
	spans []span
	lane  *lane
	enc   *encode.Encoder
	// union is the merged dictionary of the parts that are copied, nil without;
	// remapper makes pages with its codes.
	union    *encode.Dictionary
	remapper *encode.Remapper
	// joiner decodes the dictionaries that are merged.
	joiner *column.Decoder
	bloom  *encode.Bloom
	// measure says what is counted of the leaf, stated what is known of the parts.
	measure *metrics.Column
	stated  []statement
	// levels is the number of levels read that must come out.
	levels int64
	// mapped is what the codes of all parts take, in bytes.
	mapped int64
	// inserting reports that a page comes from copy, and lent is the memory it lies in
	// if that need not be used again before the page is written.
	inserting bool
	lent      *column.Memory

	// trail is where the rows came from.
	trail trail
	// proof is about what was decoded and encoded anew.
	proof proof
	// header is that of a page that is written anew.
	header []byte
	// bytes is the hash of the pages as they were read or encoded, which the
	// file must have been given.
	bytes streamHash
}

// chunk is what is known of a finished chunk.
type chunk struct {
	trail, rows uint64
	bytes       uint64
	// levels is how many the chunk must have.
	levels  int64
	content uint64
	// bloom is filled, or nil.
	bloom  *encode.Bloom
	stated []statement
}

// move makes the chunk of a leaf from the spans.
func (e *engine) move(ctx context.Context, index int, spans []span, l *lane) (err error) {
	m := &mover{e: e, ctx: ctx, index: index, leaf: &e.target.Leaves[index], spans: spans, lane: l, measure: e.measures[index]}
	defer func() {
		if p := recover(); p != nil {
			err = recovered(p, "merge column "+m.leaf.Name)
		}
	}()
	if err := m.chunk(); err != nil {
		return fault.In("merge column "+m.leaf.Name, err)
	}
	return nil
}

// chunk moves all spans.
func (m *mover) chunk() error {
	m.proof.begin(m.leaf.Node, m.e.codec, m.e.q.Verify != VerifyCounts)
	defer m.close()
	parts, err := m.plan()
	defer func() {
		for i := range parts {
			parts[i].close()
		}
	}()
	if err != nil {
		return err
	}
	if err := m.begin(parts); err != nil {
		return err
	}
	for i := range parts {
		m.ahead(parts[i+1:], (*part).any)
		move := m.encode
		if parts[i].copied {
			move = m.copy
		}
		if err := move(&parts[i]); err != nil {
			return fault.In("move rows of "+parts[i].src.Location, err)
		}
	}
	if err := m.enc.Close(); err != nil {
		return err
	}
	if err := m.proof.end(); err != nil {
		return err
	}
	m.lane.chunk = m.finished()
	return nil
}

// close leaves what others can use.
func (m *mover) close() {
	m.proof.close()
	if m.joiner != nil {
		m.joiner.Close()
	}
	if m.enc != nil {
		m.e.encoders.Put(m.enc)
	}
	for _, r := range []*encode.Remapper{m.remapper, m.proof.opener} {
		if r != nil {
			m.e.remappers.Put(r)
		}
	}
}

// remapper makes a remapper, or takes one that is not used any more.
func (e *engine) remapper(leaf *format.Node, o encode.Options) *encode.Remapper {
	r, ok := e.remappers.Get().(*encode.Remapper)
	if !ok {
		return encode.NewRemapper(leaf, o)
	}
	r.Reset(leaf, o)
	return r
}

// begin makes the encoder. Where pages are copied it has the merged dictionary,
// or none.
func (m *mover) begin(parts []part) error {
	o, err := m.options()
	if err != nil {
		return err
	}
	m.bloom = o.Bloom
	if slices.ContainsFunc(parts, func(p part) bool { return p.copied }) {
		o.DictionaryBytes, o.Dictionary = -1, m.union
		m.remapper = m.e.remapper(m.leaf.Node, o)
	}
	m.enc, _ = m.e.encoders.Get().(*encode.Encoder)
	if m.enc == nil {
		m.enc = new(encode.Encoder)
	}
	if err = m.enc.Reset(m.leaf.Node, o, m); err != nil || m.union == nil {
		return err
	}
	page, err := m.union.Page(o)
	if err != nil {
		return err
	}
	if err := m.Dictionary(page); err != nil {
		return err
	}
	if m.bloom != nil {
		m.bloom.AddValues(m.union.Values(), 0, m.union.Len())
	}
	return m.proof.merged(m.union)
}

func (m *mover) finished() chunk {
	m.e.counts.proved.Add(m.proof.written.values)
	c := chunk{bytes: m.bytes.sum(), levels: m.levels, content: m.proof.written.total, bloom: m.bloom, stated: m.stated}
	c.trail, c.rows = m.trail.end()
	return c
}

// options are those of encoding a leaf anew.
func (m *mover) options() (encode.Options, error) {
	s := &m.e.settings
	o := encode.Options{
		Codec: m.e.codec, Level: s.level, Version: 1, PageBytes: int(s.pageBytes), PageRows: int(s.pageRows),
		DictionaryBytes: int(s.dictBytes), Encoding: format.Plain, CRC: true,
		HoldBytes: int(min(m.e.memory()/16, encode.DefaultHoldBytes)),
	}
	if s.pageV2 {
		o.Version = 2
	}
	if s.dictBytes == 0 {
		o.DictionaryBytes = -1
	}
	if m.leaf.Lineage != resolve.NoLineage {
		// Ids ascend and sequence numbers repeat: differences take no space.
		o.Encoding, o.DictionaryBytes = format.DeltaBinaryPacked, -1
	}
	var err error
	if fpp, ok := s.blooms[m.leaf.Name]; ok && encode.CanBloom(m.leaf.Node) && s.bloomBytes >= 32 {
		o.Bloom, err = encode.NewBloom(int(s.bloomBytes), fpp)
	}
	return o, err
}

// encode decodes a span and encodes it anew.
func (m *mover) encode(s *part) error {
	counted := m.measure.Collect()
	err := m.feed(s.source).rows(s.first, s.span.rows, func(b *column.Batch) error {
		m.proof.read(b)
		m.levels += int64(b.Levels)
		counted.Add(b)
		return m.enc.Write(b)
	})
	m.state(s, counted, nil)
	return err
}

// Dictionary hands the dictionary page over.
func (m *mover) Dictionary(p encode.Page) error {
	m.e.fault(faultMade, p.Body)
	if err := m.proof.dictionary(&p); err != nil {
		return err
	}
	m.e.counts.encoded.Add(int64(len(p.Body)))
	return m.emit(p, itemDictionary)
}

// Page hands a data page over: one that was encoded anew, or one that copy
// inserts.
func (m *mover) Page(p encode.Page) error {
	if !m.inserting {
		m.e.fault(faultMade, p.Body)
		if err := m.proof.page(&p); err != nil {
			return err
		}
		m.e.counts.encoded.Add(int64(len(p.Body)))
	}
	return m.emit(p, itemPage)
}

// emit hands a page to the file: a copy of it, or the page itself in lent memory.
// The hash is that of the page as it is here: read from the source, or proved.
func (m *mover) emit(p encode.Page, kind itemKind) error {
	it := item{kind: kind, page: p, memory: m.lent}
	if it.memory != nil {
		it.memory.Hold()
	} else {
		if p.Raw == nil {
			m.header = format.AppendPageHeader(m.header[:0], &p.Header)
			p.Raw = m.header
		}
		it.memory = column.NewMemory(len(p.Raw) + len(p.Body))
		all := append(append(it.memory.Bytes()[:0], p.Raw...), p.Body...)
		header := len(p.Raw)
		it.page.Raw, it.page.Body = all[:header:header], all[header:]
	}
	m.bytes.write(p.Raw)
	m.bytes.write(p.Body)
	m.e.fault(faultHeld, it.page.Body)
	return m.lane.put(m.ctx, it)
}

// moved notes that the next rows of the chunk are those of a source.
func (m *mover) moved(s *source, from, rows int64) { m.trail.add(s.index, from, rows) }
