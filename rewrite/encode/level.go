package encode

import (
	"encoding/binary"

	"github.com/seaice/seaice/rewrite/codec"
	"github.com/seaice/seaice/rewrite/format"
)

// zstdWay is a way to compress a page with zstd. They are in the order of the time
// they take.
type zstdWay uint8

const (
	// strided takes PLAIN values of one length for what they are (codec.AppendStrided).
	strided zstdWay = iota
	quick
	usual
	zstdWays
)

const (
	// trialEvery is how many pages one decides about the way of. It has at least
	// trialLeast bytes, of which about trialMost are tried, and trialEntries of a
	// dictionary: its entries are distinct, and it is the only one of its chunk.
	trialEvery   = 64
	trialLeast   = 16 << 10
	trialMost    = 128 << 10
	trialEntries = 32 << 10
	// A page may be longer for being made in a quicker way: by one part in quickShare
	// of its shortest form or in quickPlain of its content, but never by more than one
	// in quickMost of the shortest.
	quickShare = 50
	quickPlain = 100
	quickMost  = 10
)

// zstdChoice picks the way of the pages of a chunk whose level nobody has set, by
// what each way does to some of them. Values and codes are judged apart.
type zstdChoice struct {
	// head, stride and side say where the values of the page at hand are; stride is 0
	// if they have no common length. most is how much of the page is tried.
	head, stride, most int
	side               codec.Side

	values, others trials
	trial          []byte
}

// trials are what is known of one kind of pages.
type trials struct {
	way  zstdWay // that of the last trial
	left int     // pages until the next
}

// reset forgets the trials of another chunk.
func (z *zstdChoice) reset() {
	z.most = trialMost
	z.values, z.others = trials{way: usual}, trials{way: usual}
}

// compress appends the compressed form of src to dst.
func (z *zstdChoice) compress(dst, src []byte) ([]byte, error) {
	t := &z.others
	if z.stride > 0 {
		t = &z.values
	}
	if t.left--; t.left < 0 && len(src) >= trialLeast {
		if err := z.try(t, src); err != nil {
			return nil, err
		}
	}
	out, done, err := z.by(t.way, dst, src)
	if !done && err == nil {
		out, _, err = z.by(quick, dst, src)
	}
	return out, err
}

// try finds the quickest way that is not much longer than the shortest.
func (z *zstdChoice) try(t *trials, src []byte) error {
	t.left = trialEvery
	if most := z.head + z.most; len(src) > most {
		if src = src[:most]; z.stride > 0 {
			src = src[:most-z.most%z.stride]
		}
	}
	var sizes [zstdWays]int
	least := 0
	for w := range zstdWays {
		var done bool
		var err error
		if z.trial, done, err = z.by(w, z.trial[:0], src); err != nil {
			return err
		}
		if !done {
			continue
		}
		if sizes[w] = len(z.trial); least == 0 || sizes[w] < least {
			least = sizes[w]
		}
	}
	least += min(max(least/quickShare, len(src)/quickPlain), least/quickMost)
	for t.way = strided; t.way < usual && (sizes[t.way] == 0 || sizes[t.way] > least); {
		t.way++
	}
	return nil
}

// by compresses in one way. done is false, and nothing is appended, if that way is
// not for this page.
func (z *zstdChoice) by(w zstdWay, dst, src []byte) (out []byte, done bool, err error) {
	level := codec.DefaultLevel
	switch w {
	case strided:
		if z.stride == 0 {
			return dst, false, nil
		}
		return codec.AppendStrided(dst, src, z.head, z.stride, z.side)
	case quick:
		level = codec.QuickLevel
	}
	out, err = codec.Compress(dst, src, format.Zstd, level)
	return out, true, err
}

// strideOf is the length of each of the values, as a PLAIN page has them, and where
// they are like the ones before; 0 if their lengths differ.
func strideOf(leaf *format.Node, values []byte) (stride int, side codec.Side) {
	switch leaf.Type {
	case format.Int32, format.Float:
		stride, side = 4, codec.Trailing
	case format.Int64, format.Double:
		stride, side = 8, codec.Trailing
	case format.FixedLenByteArray:
		stride = int(leaf.TypeLength)
	case format.ByteArray:
		if len(values) < 4 {
			return 0, 0
		}
		n := binary.LittleEndian.Uint32(values)
		if n > codec.MaxStride-4 {
			return 0, 0
		}
		stride = 4 + int(n)
		if len(values)%stride != 0 {
			return 0, 0
		}
		for at := 0; at < len(values); at += stride {
			if binary.LittleEndian.Uint32(values[at:]) != n {
				return 0, 0
			}
		}
	default:
		return 0, 0
	}
	if stride == 0 || len(values)%stride != 0 {
		return 0, 0
	}
	return stride, side
}
