package format

import (
	"fmt"
	"unsafe"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/thrift"
)

func ptr[T any](v T) *T { return &v }

func missing(of, field string) error {
	return fault.New(fault.Corrupt, fmt.Sprintf("%s has no %s", of, field))
}

func maybe32(w *thrift.Writer, id int16, v *int32) {
	if v != nil {
		w.Int32(id, *v)
	}
}

func maybe64(w *thrift.Writer, id int16, v *int64) {
	if v != nil {
		w.Int64(id, *v)
	}
}

func maybeBool(w *thrift.Writer, id int16, v *bool) {
	if v != nil {
		w.Bool(id, *v)
	}
}

func maybeBytes(w *thrift.Writer, id int16, b []byte) {
	if b != nil {
		w.Bytes(id, b)
	}
}

// parseInts reads a list of integers.
func parseInts(r *thrift.Reader, k thrift.Kind) []int64 {
	kind, n := r.List(k, 8)
	out := make([]int64, n)
	for i := range out {
		out[i] = r.Int64(kind)
	}
	return out
}

func maybeInts(w *thrift.Writer, id int16, v []int64) {
	if v == nil {
		return
	}
	w.List(id, thrift.I64, len(v))
	for _, n := range v {
		w.Int(n)
	}
}

func parseStatistics(r *thrift.Reader, k thrift.Kind) *Statistics {
	r.Charge(int64(unsafe.Sizeof(Statistics{})))
	r.Struct(k)
	if r.Err() != nil {
		return nil
	}
	s := new(Statistics)
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			s.LegacyMax = r.Bytes(f.Kind)
		case 2:
			s.LegacyMin = r.Bytes(f.Kind)
		case 3:
			s.NullCount = ptr(r.Int64(f.Kind))
		case 4:
			s.DistinctCount = ptr(r.Int64(f.Kind))
		case 5:
			s.Max = r.Bytes(f.Kind)
		case 6:
			s.Min = r.Bytes(f.Kind)
		case 7:
			s.MaxExact = ptr(r.Bool(f.Kind))
		case 8:
			s.MinExact = ptr(r.Bool(f.Kind))
		case 9:
			s.NaNCount = ptr(r.Int64(f.Kind))
		default:
			r.Skip(f.Kind)
		}
	}
	return s
}

// write appends the fields that are there. Legacy bounds are not written.
func (s *Statistics) write(w *thrift.Writer, id int16) {
	if s == nil {
		return
	}
	w.Struct(id)
	maybe64(w, 3, s.NullCount)
	maybe64(w, 4, s.DistinctCount)
	maybeBytes(w, 5, s.Max)
	maybeBytes(w, 6, s.Min)
	maybeBool(w, 7, s.MaxExact)
	maybeBool(w, 8, s.MinExact)
	maybe64(w, 9, s.NaNCount)
	w.End()
}

func parseSizes(r *thrift.Reader, k thrift.Kind) *SizeStatistics {
	s := new(SizeStatistics)
	r.Struct(k)
	for f := (thrift.Field{}); r.Next(&f); {
		switch f.ID {
		case 1:
			s.UnencodedBytes = ptr(r.Int64(f.Kind))
		case 2:
			s.RepHistogram = parseInts(r, f.Kind)
		case 3:
			s.DefHistogram = parseInts(r, f.Kind)
		default:
			r.Skip(f.Kind)
		}
	}
	return s
}

func (s *SizeStatistics) write(w *thrift.Writer, id int16) {
	if s == nil {
		return
	}
	w.Struct(id)
	maybe64(w, 1, s.UnencodedBytes)
	maybeInts(w, 2, s.RepHistogram)
	maybeInts(w, 3, s.DefHistogram)
	w.End()
}
