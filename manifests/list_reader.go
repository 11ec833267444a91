package manifests

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/manifests/avro"
)

// ReadList yields the manifests of the list read from in; name is its file's.
// They may be kept. The sequence ends after the first error.
//
// The format version follows from the fields of the writer's schema, because
// some writers leave it out of the header; a header that contradicts the
// fields is Corrupt (F081). Fields without ids are known by their names, those
// of Java before 1.4 included (F083).
func ReadList(ctx context.Context, in io.Reader, name string) iter.Seq2[*ManifestFile, error] {
	return func(yield func(*ManifestFile, error) bool) {
		a, err := avro.NewReader(in, name, avro.Limits{})
		if err != nil {
			yield(nil, err)
			return
		}
		defer a.Close()
		l, err := newListLayout(a)
		if err != nil {
			yield(nil, err)
			return
		}
		for {
			if ctx.Err() != nil {
				yield(nil, fault.Wrap(fault.Canceled, "read "+name, context.Cause(ctx)))
				return
			}
			data, count, err := a.Next()
			if err == io.EOF { //nolint:errorlint // the bare value marks the end, a wrapped one a failure
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			c := cursor{b: data}
			for ; count > 0; count-- {
				m, err := l.next(&c)
				if err != nil {
					yield(nil, err)
					return
				}
				if !yield(m, nil) {
					return
				}
			}
			if c.p != len(data) {
				yield(nil, corrupt(name, fmt.Sprintf("%d bytes behind the last manifest of a block", len(data)-c.p)))
				return
			}
		}
	}
}

// listLayout is what a list's schema says about where its fields are.
type listLayout struct {
	name    string
	version int
	steps   []listStep
	summary []listStep
}

type listStep struct {
	id    int
	name  string
	node  *avro.Node
	field *avro.Field
}

func newListLayout(a *avro.Reader) (*listLayout, error) {
	l := &listLayout{name: a.Name(), version: 1}
	seen := map[int]bool{}
	for i := range a.Schema().Fields {
		f := &a.Schema().Fields[i]
		s := listStep{id: fieldID(f, listNames), name: f.Name, node: f.Type, field: f}
		if s.id != avro.NoID && seen[s.id] {
			return nil, corrupt(l.name, fmt.Sprintf("field id %d is used twice", s.id))
		}
		seen[s.id] = true
		if err := l.check(s); err != nil {
			return nil, err
		}
		l.steps = append(l.steps, s)
	}
	if seen[idListContent] || seen[idSeq] || seen[idMinSeq] {
		l.version = 2
	}
	if seen[idListFirstRowID] {
		l.version = 3
	}
	if err := l.agree(a.Meta("format-version")); err != nil {
		return nil, err
	}
	need := []int{idManifestPath, idManifestLength, idSpecID}
	if l.version >= 2 {
		need = append(need, idListContent, idSeq)
	}
	for _, id := range need {
		if !seen[id] {
			return nil, corrupt(l.name, fmt.Sprintf("the schema of version %d lacks field id %d", l.version, id))
		}
	}
	return l, nil
}

// agree takes the header's version where it does not contradict the fields. A
// v3 header over the fields of v2 is fine: what v3 adds is optional.
func (l *listLayout) agree(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	v, err := strconv.Atoi(string(raw))
	switch {
	case err != nil || v < 1:
		return corrupt(l.name, fmt.Sprintf("format-version %.20q", raw))
	case v > 3:
		return fault.New(fault.Unsupported, fmt.Sprintf("%s: format version %d", l.name, v))
	case v < l.version:
		return corrupt(l.name, fmt.Sprintf("the header says format version %d, the schema has fields of version %d", v, l.version))
	case l.version == 1 && v > 1:
		return corrupt(l.name, fmt.Sprintf("the header says format version %d, the schema lacks its fields", v))
	}
	l.version = v
	return nil
}

func (l *listLayout) check(s listStep) error {
	ok := true
	switch s.id {
	case idManifestPath:
		ok = fits(s.node, isText)
	case idListKey:
		ok = fits(s.node, isBlob)
	case idPartitions:
		return l.summaries(s)
	case idManifestLength, idSpecID, idAddedSnapshot, idAddedFiles, idExistingFiles, idDeletedFiles,
		idAddedRows, idExistingRows, idDeletedRows, idSeq, idMinSeq, idListContent, idListFirstRowID:
		ok = fits(s.node, isNumber)
	}
	if !ok {
		return wrongType(l.name, s.name, s.node)
	}
	return nil
}

func (l *listLayout) summaries(s listStep) error {
	array, ok := only(s.node)
	if !ok && s.node.Kind == avro.Null {
		return nil
	}
	if !ok || array.Kind != avro.Array {
		return wrongType(l.name, s.name, s.node)
	}
	rec, ok := only(array.Items)
	if !ok || rec.Kind != avro.Record {
		return wrongType(l.name, s.name, s.node)
	}
	for i := range rec.Fields {
		f := &rec.Fields[i]
		t := listStep{id: fieldID(f, summaryNames), name: f.Name, node: f.Type, field: f}
		switch t.id {
		case idContainsNull, idContainsNaN:
			ok = fits(f.Type, isBool)
		case idSummaryLower, idSummaryUpper:
			ok = fits(f.Type, isBlob)
		}
		if !ok {
			return wrongType(l.name, f.Name, f.Type)
		}
		l.summary = append(l.summary, t)
	}
	return nil
}

func (l *listLayout) next(c *cursor) (*ManifestFile, error) {
	m := &ManifestFile{}
	for i := range l.steps {
		s := &l.steps[i]
		l.step(c, s, m)
		if c.p < 0 {
			c.bad(s.name)
			return nil, corrupt(l.name, "a manifest cannot be decoded at field "+c.what)
		}
	}
	return m, l.complete(m)
}

func (l *listLayout) step(c *cursor, s *listStep, m *ManifestFile) {
	start := c.p
	switch s.id {
	case idManifestPath:
		m.Path = string(c.optBytes(s.node))
	case idManifestLength:
		m.Length = c.natural(s.node)
	case idSpecID:
		if o := c.optLong(s.node); o.Known() && o.Value >= 0 {
			m.SpecID = iceberg.SpecID(c.int32(s.name, o.Value))
		} else {
			c.bad(s.name)
		}
	case idListContent:
		m.Content = ManifestContent(c.small(s.node))
	case idSeq:
		m.Seq = asOpt[iceberg.SeqNum](c.optLong(s.node))
	case idMinSeq:
		m.MinSeq = asOpt[iceberg.SeqNum](c.optLong(s.node))
	case idAddedSnapshot:
		m.SnapshotID = asOpt[iceberg.SnapshotID](c.optLong(s.node))
	case idAddedFiles:
		m.AddedFiles = c.count(s.node)
	case idExistingFiles:
		m.ExistingFiles = c.count(s.node)
	case idDeletedFiles:
		m.DeletedFiles = c.count(s.node)
	case idAddedRows:
		m.AddedRows = c.count(s.node)
	case idExistingRows:
		m.ExistingRows = c.count(s.node)
	case idDeletedRows:
		m.DeletedRows = c.count(s.node)
	case idListKey:
		m.KeyMetadata = clone(c.optBytes(s.node))
	case idListFirstRowID:
		m.FirstRowID = c.optLong(s.node)
	case idPartitions:
		m.Partitions = l.partitions(c, s.node)
	default:
		if c.skip(s.node); c.p >= 0 {
			m.extra = append(m.extra, extraValue{field: s.field, raw: clone(c.b[start:c.p])})
		}
	}
}

// count decodes a number of files or rows. Null, and the -1 that some writers
// put there, is unknown (F077).
func (c *cursor) count(n *avro.Node) Opt[int64] {
	o := c.optLong(n)
	switch {
	case o.Value == -1:
		return Opt[int64]{}
	case o.Value < -1:
		c.p = -1
	}
	return o
}

func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

func (l *listLayout) partitions(c *cursor, n *avro.Node) []FieldSummary {
	if n = c.value(n); n == nil {
		return nil
	}
	out := []FieldSummary{}
	c.each(n, func() {
		var f FieldSummary
		if c.value(n.Items) == nil {
			c.p = -1
			return
		}
		for i := range l.summary {
			switch s := &l.summary[i]; s.id {
			case idContainsNull:
				f.ContainsNull = c.optBool(s.node).Or(true)
			case idContainsNaN:
				f.ContainsNaN = c.optBool(s.node)
			case idSummaryLower:
				f.Lower = clone(c.optBytes(s.node))
			case idSummaryUpper:
				f.Upper = clone(c.optBytes(s.node))
			default:
				c.skip(s.node)
			}
			if c.p < 0 {
				c.bad(l.summary[i].name)
				return
			}
		}
		out = append(out, f)
	})
	return out
}

func (l *listLayout) complete(m *ManifestFile) error {
	if m.Path == "" {
		return corrupt(l.name, "a manifest has no path")
	}
	if m.Content > DeleteManifest {
		return corrupt(l.name, fmt.Sprintf("%s has content %d", m.Path, m.Content))
	}
	if l.version == 1 {
		// Everything v1 wrote has sequence number 0.
		m.Seq, m.MinSeq = Opt[iceberg.SeqNum]{From: Inherited}, Opt[iceberg.SeqNum]{From: Inherited}
	}
	if !m.Seq.Known() || m.Seq.Value < 0 {
		return corrupt(l.name, m.Path+" has no sequence number")
	}
	if m.FirstRowID.Known() && m.FirstRowID.Value < 0 {
		return corrupt(l.name, fmt.Sprintf("%s has first row id %d", m.Path, m.FirstRowID.Value))
	}
	return nil
}
