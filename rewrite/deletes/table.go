package deletes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
)

// key is one equality key. A key of one column of at most 8 bytes is its value in
// at, exactly, and null is told apart. Any other is 128 bits of a SHA-256 over a
// secret and the key's unambiguous form. That no two keys met in a run collide is
// as good as proved: with 2^40 keys on either side the chance is below 2^-48, and
// the secret, drawn for each run, leaves nobody a way to look for two that do.
// Where such a key belongs is a hash that is quick, and that nothing hangs on: most
// keys of data files are not deleted, and are told by it alone.
type key struct {
	at     uint64
	lo, hi uint64 // of hashes
	null   bool   // of exact keys
	absent bool   // known not to be in the table
}

// secret makes hashes and places in tables unpredictable.
type secret struct {
	mac  [16]byte
	a, b uint64
	seed maphash.Seed
}

func newSecret() secret {
	s := secret{seed: maphash.MakeSeed()}
	var raw [16]byte
	_, _ = rand.Read(s.mac[:]) // never fails
	_, _ = rand.Read(raw[:])
	s.a, s.b = binary.LittleEndian.Uint64(raw[:])|1, binary.LittleEndian.Uint64(raw[8:])
	return s
}

// quick is where the key with an unambiguous form belongs; never 0. The first 16
// bytes of the form are not part of it.
func (s *secret) quick(form []byte) uint64 { return max(maphash.Bytes(s.seed, form[len(s.mac):]), 1) }

// hash is the key with the form, whose first 16 bytes are free for the secret.
func (s *secret) hash(form []byte, quick uint64) key {
	copy(form, s.mac[:])
	sum := sha256.Sum256(form)
	return key{at: quick, lo: binary.LittleEndian.Uint64(sum[:]), hi: binary.LittleEndian.Uint64(sum[8:])}
}

// rank says how far a key reaches: see chain. 0 is nowhere.
type rank uint16

const maxRank = 1<<16 - 1

// table is a set of keys, each with the greatest rank it was added with: open
// addressing in a fixed number of slots, as full as fill says at most.
type table struct {
	secret secret
	wide   bool     // keys are hashes
	slots  []uint64 // a word for an exact key, three for a hash; 0 is free
	ranks  []rank   // nil where all keys have rank 1
	size   uint64   // slots
	used   int
	limit  int

	zero, null rank // of the exact keys 0 and null, which have no slot
}

// wideWords are those of a hash: at, lo, hi.
const wideWords = 3

// At 70 % a key that is not there is told after about six slots, next to each
// other.
const fillPercent = 70

// slotBytes is what a slot takes.
func slotBytes(wide, ranked bool) int64 {
	n := int64(8)
	if wide {
		n = 8 * wideWords
	}
	if ranked {
		n += 2
	}
	return n
}

// tableBytes is what a table for so many keys takes.
func tableBytes(keys int64, wide, ranked bool) int64 {
	if keys > math.MaxInt64/10_000 {
		return math.MaxInt64 // more than anybody has
	}
	return (keys*100/fillPercent + 2) * slotBytes(wide, ranked)
}

// newTable makes a table of so many bytes, in memory that was another's if there is
// enough of it.
func newTable(s secret, size int64, wide, ranked bool, old *table) *table {
	n := max(size/slotBytes(wide, ranked), 16)
	t := &table{secret: s, wide: wide, size: uint64(n), limit: int(n * fillPercent / 100)}
	words := n
	if wide {
		words *= wideWords
	}
	if old == nil {
		old = &table{}
	}
	t.slots = cleared(old.slots, words)
	if ranked {
		t.ranks = cleared(old.ranks, n)
	}
	return t
}

// cleared is n zeros, in old's memory if there is enough of it.
func cleared[T any](old []T, n int64) []T {
	if int64(cap(old)) < n {
		return make([]T, n)
	}
	old = old[:n]
	clear(old)
	return old
}

// full reports whether the table must be emptied before the next add.
func (t *table) full() bool { return t.used >= t.limit }

// empty reports whether there are no keys.
func (t *table) empty() bool { return t.used == 0 && t.zero == 0 && t.null == 0 }

func (t *table) reset() {
	clear(t.slots)
	clear(t.ranks)
	t.used, t.zero, t.null = 0, 0, 0
}

// place is the slot where the search for a key begins. Values are mixed twice:
// the high bits decide, and those that follow each other differ in the low ones.
func (t *table) place(x uint64) uint64 {
	if !t.wide {
		hi, lo := bits.Mul64(x^t.secret.b, t.secret.a)
		hi, lo = bits.Mul64(hi^lo, 0x9e3779b97f4a7c15)
		x = hi ^ lo
	}
	at, _ := bits.Mul64(x, t.size)
	return at
}

// mayHave reports whether there is a hash with the place.
func (t *table) mayHave(quick uint64) bool {
	for at := t.place(quick); ; {
		switch t.slots[wideWords*at] {
		case quick:
			return true
		case 0:
			return false
		}
		if at++; at == t.size {
			at = 0
		}
	}
}

// find is the slot of a key, or the free one where it belongs.
func (t *table) find(k key) (at uint64, found bool) {
	at = t.place(k.at)
	if t.wide {
		for {
			s := t.slots[wideWords*at:][:wideWords]
			if s[0] == k.at && s[1] == k.lo && s[2] == k.hi {
				return at, true
			}
			if s[0] == 0 {
				return at, false
			}
			if at++; at == t.size {
				at = 0
			}
		}
	}
	for {
		switch t.slots[at] {
		case k.at:
			return at, true
		case 0:
			return at, false
		}
		if at++; at == t.size {
			at = 0
		}
	}
}

// special is where the rank of a key without a slot is, or nil.
func (t *table) special(k key) *rank {
	switch {
	case k.null:
		return &t.null
	case k.at == 0:
		return &t.zero
	}
	return nil
}

// add adds a key. The table must not be full.
func (t *table) add(k key, r rank) {
	if s := t.special(k); s != nil {
		*s = max(*s, r)
		return
	}
	at, found := t.find(k)
	if !found {
		t.used++
		if t.wide {
			copy(t.slots[wideWords*at:], []uint64{k.at, k.lo, k.hi})
		} else {
			t.slots[at] = k.at
		}
	}
	if t.ranks != nil {
		t.ranks[at] = max(t.ranks[at], r)
	}
}

// rankOf is the rank of a key, 0 if it is not there.
func (t *table) rankOf(k key) rank {
	if k.absent {
		return 0
	}
	if s := t.special(k); s != nil {
		return *s
	}
	at, found := t.find(k)
	switch {
	case !found:
		return 0
	case t.ranks == nil:
		return 1
	}
	return t.ranks[at]
}
