package filertest

// tree is an ordered map from strings that is cheap to copy: a treap whose
// copies share every node until one of them changes it. The priorities are
// hashes of the keys, so the shape depends on the content alone.
type tree[V any] struct {
	root *node[V]
	own  *owner
	size int
}

// owner marks the nodes that one tree alone can reach and may change in place.
type owner struct{ _ byte }

type node[V any] struct {
	key         string
	val         V
	prio        uint64
	own         *owner
	left, right *node[V]
}

// clone returns an independent copy. Both copies give up their ownership of the
// nodes they now share.
func (t *tree[V]) clone() tree[V] {
	if t.own != nil {
		t.own = nil
	}
	return tree[V]{root: t.root, size: t.size}
}

func (t *tree[V]) get(key string) (V, bool) {
	for n := t.root; n != nil; {
		switch {
		case key < n.key:
			n = n.left
		case key > n.key:
			n = n.right
		default:
			return n.val, true
		}
	}
	var none V
	return none, false
}

func (t *tree[V]) set(key string, val V) {
	t.root = t.insert(t.root, key, val)
}

func (t *tree[V]) remove(key string) {
	if _, ok := t.get(key); ok {
		t.root = t.without(t.root, key)
		t.size--
	}
}

// ascend calls yield for every key from `from` on, in order, until yield
// returns false. The tree must not change meanwhile.
func (t *tree[V]) ascend(from string, yield func(key string, val V) bool) {
	t.root.ascend(from, yield)
}

func (n *node[V]) ascend(from string, yield func(key string, val V) bool) bool {
	if n == nil {
		return true
	}
	if n.key >= from {
		if !n.left.ascend(from, yield) || !yield(n.key, n.val) {
			return false
		}
	}
	return n.right.ascend(from, yield)
}

func (t *tree[V]) insert(n *node[V], key string, val V) *node[V] {
	if n == nil {
		t.size++
		return &node[V]{key: key, val: val, prio: priority(key), own: t.token()}
	}
	n = t.mutable(n)
	switch {
	case key < n.key:
		n.left = t.insert(n.left, key, val)
		if l := n.left; l.prio > n.prio {
			n.left, l.right = l.right, n
			return l
		}
	case key > n.key:
		n.right = t.insert(n.right, key, val)
		if r := n.right; r.prio > n.prio {
			n.right, r.left = r.left, n
			return r
		}
	default:
		n.val = val
	}
	return n
}

// without returns n without key, which it holds.
func (t *tree[V]) without(n *node[V], key string) *node[V] {
	switch {
	case key < n.key:
		n = t.mutable(n)
		n.left = t.without(n.left, key)
		return n
	case key > n.key:
		n = t.mutable(n)
		n.right = t.without(n.right, key)
		return n
	}
	return t.join(n.left, n.right)
}

// join makes one treap of two, all of whose keys are in order.
func (t *tree[V]) join(a, b *node[V]) *node[V] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.prio > b.prio:
		a = t.mutable(a)
		a.right = t.join(a.right, b)
		return a
	}
	b = t.mutable(b)
	b.left = t.join(a, b.left)
	return b
}

func (t *tree[V]) mutable(n *node[V]) *node[V] {
	if n.own == t.token() {
		return n
	}
	c := *n
	c.own = t.own
	return &c
}

func (t *tree[V]) token() *owner {
	if t.own == nil {
		t.own = new(owner)
	}
	return t.own
}

// priority is FNV-1a with a final mix.
func priority(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	return h
}
