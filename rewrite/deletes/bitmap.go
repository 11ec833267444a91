package deletes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	mathbits "math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/seaice/seaice/fault"
)

// Numbers of the portable form of roaring bitmaps (RoaringFormatSpec).
const (
	cookieRuns    = 12347 // low half; the number of containers less one is above
	cookieNoRuns  = 12346
	offsetsFrom   = 4    // containers, from which on a form with runs has offsets
	maxArray      = 4096 // values of an array container
	bitmapBytes   = 8192 // of a bitmap container
	maxContainers = 1 << 16
)

// scan goes over one bitmap at the begin of b and says how long it is and how
// many positions it has, without making anything. The library's own check takes
// time with the square of the runs, and refuses runs that touch.
type scan struct {
	bytes   int
	count   int64
	touches bool // runs that touch: correct, and not what the library expects
}

func scanBitmap(b []byte) (scan, error) {
	var s scan
	cut := fault.New(fault.Corrupt, "a bitmap is cut")
	if len(b) < 4 {
		return s, cut
	}
	cookie := binary.LittleEndian.Uint32(b)
	at, n := 4, 0
	var isRun []byte
	switch {
	case cookie&0xffff == cookieRuns:
		n = int(cookie>>16) + 1
		at += (n + 7) / 8
		if len(b) < at {
			return s, cut
		}
		isRun = b[4:at]
	case cookie == cookieNoRuns:
		if len(b) < 8 {
			return s, cut
		}
		at = 8
		count := binary.LittleEndian.Uint32(b[4:])
		if count > maxContainers {
			return s, fault.New(fault.Corrupt, fmt.Sprintf("a bitmap of %d containers", count))
		}
		n = int(count)
	default:
		return s, fault.New(fault.Corrupt, fmt.Sprintf("a bitmap begins with %d", cookie))
	}
	head := at
	at += 4 * n
	if isRun == nil || n >= offsetsFrom {
		at += 4 * n
	}
	before := -1
	for i := range n {
		if len(b) < at {
			return s, cut
		}
		key := int(binary.LittleEndian.Uint16(b[head+4*i:]))
		size := int(binary.LittleEndian.Uint16(b[head+4*i+2:])) + 1
		if key <= before {
			return s, fault.New(fault.Corrupt, fmt.Sprintf("container %d of a bitmap follows %d", key, before))
		}
		before = key
		length, err := 0, error(nil)
		switch {
		case isRun != nil && isRun[i/8]&(1<<(i%8)) != 0:
			length, size, err = s.scanRuns(b[at:])
		case size > maxArray:
			length, err = scanDense(b[at:], size)
		default:
			length, err = scanArray(b[at:], size)
		}
		if err != nil {
			return s, err
		}
		at += length
		s.count += int64(size)
	}
	if len(b) < at {
		return s, cut
	}
	s.bytes = at
	return s, nil
}

func (s *scan) scanRuns(b []byte) (length, size int, err error) {
	if len(b) < 2 {
		return 0, 0, fault.New(fault.Corrupt, "a run container is cut")
	}
	n := int(binary.LittleEndian.Uint16(b))
	if n == 0 || len(b) < 2+4*n {
		return 0, 0, fault.New(fault.Corrupt, fmt.Sprintf("a run container has %d runs in %d bytes", n, len(b)))
	}
	end := -1 // behind the last run
	for i := range n {
		first := int(binary.LittleEndian.Uint16(b[2+4*i:]))
		last := first + int(binary.LittleEndian.Uint16(b[2+4*i+2:]))
		if first < end || last > math.MaxUint16 {
			return 0, 0, fault.New(fault.Corrupt, fmt.Sprintf("a run from %d to %d follows one to %d", first, last, end-1))
		}
		s.touches = s.touches || first == end
		end = last + 1
		size += last - first + 1
	}
	return 2 + 4*n, size, nil
}

func scanArray(b []byte, size int) (int, error) {
	if len(b) < 2*size {
		return 0, fault.New(fault.Corrupt, "an array container is cut")
	}
	before := -1
	for i := range size {
		v := int(binary.LittleEndian.Uint16(b[2*i:]))
		if v <= before {
			return 0, fault.New(fault.Corrupt, fmt.Sprintf("value %d of an array container follows %d", v, before))
		}
		before = v
	}
	return 2 * size, nil
}

func scanDense(b []byte, size int) (int, error) {
	if len(b) < bitmapBytes {
		return 0, fault.New(fault.Corrupt, "a bitmap container is cut")
	}
	n := 0
	for i := 0; i < bitmapBytes; i += 8 {
		n += mathbits.OnesCount64(binary.LittleEndian.Uint64(b[i:]))
	}
	if n != size {
		return 0, fault.New(fault.Corrupt, fmt.Sprintf("a bitmap container says %d values and has %d", size, n))
	}
	return bitmapBytes, nil
}

// parseBitmap reads the bitmap at the begin of b, which is not kept.
func parseBitmap(b []byte) (*roaring.Bitmap, scan, error) {
	s, err := scanBitmap(b)
	if err != nil {
		return nil, s, err
	}
	if s.count == 0 {
		return nil, s, nil
	}
	bits := roaring.New()
	if _, err := bits.ReadFrom(bytes.NewReader(b[:s.bytes])); err != nil {
		return nil, s, fault.Wrap(fault.Corrupt, "read a bitmap", err)
	}
	if s.touches {
		clean := roaring.New()
		for begin, end := range bits.Ranges() {
			clean.AddRange(uint64(begin), end)
		}
		bits = clean
	}
	if n := int64(bits.GetCardinality()); n != s.count {
		return nil, s, fault.New(fault.Corrupt, fmt.Sprintf("a bitmap says %d values and has %d", s.count, n))
	}
	return bits, s, nil
}
