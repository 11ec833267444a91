package filer

import (
	"bytes"
	"container/list"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"

	"github.com/seaice/seaice/fault"
)

const (
	// Encrypted chunks are AES-256-GCM: a nonce, the ciphertext, a tag.
	cipherKeyBytes = 32
	nonceBytes     = 12
	tagBytes       = 16
	cipherOverhead = nonceBytes + tagBytes
	// maxWholeBytes bounds a chunk that can only be read whole; volume servers
	// take chunks of 256 MiB at most by default.
	maxWholeBytes = 256 << 20
	// gzipSlack is how much longer than its content a compressed chunk may be.
	gzipSlack = 64 << 10
)

var errCipherShort = errors.New("ciphertext is shorter than a nonce and a tag")

func gcm(key []byte) (cipher.AEAD, error) {
	if len(key) != cipherKeyBytes {
		return nil, fmt.Errorf("cipher key has %d bytes, not %d", len(key), cipherKeyBytes)
	}
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(b)
}

// open decrypts sealed in place.
func openSealed(sealed, key []byte) ([]byte, error) {
	if len(sealed) < cipherOverhead {
		return nil, errCipherShort
	}
	a, err := gcm(key)
	if err != nil {
		return nil, err
	}
	text := sealed[nonceBytes:]
	return a.Open(text[:0], sealed[:nonceBytes], text, nil)
}

// seal encrypts the bytes of buf behind the room for the nonce in place and
// returns what is to be stored and the key. buf has room for the tag.
func seal(buf []byte) (sealed, key []byte, err error) {
	key = make([]byte, cipherKeyBytes)
	_, _ = rand.Read(key)
	_, _ = rand.Read(buf[:nonceBytes])
	a, err := gcm(key)
	if err != nil {
		return nil, nil, err
	}
	text := buf[nonceBytes:]
	out := a.Seal(text[:0], buf[:nonceBytes], text, nil)
	return buf[:nonceBytes+len(out)], key, nil
}

// stored reports whether the chunk's bytes on the volume server are those of
// the file, so that ranges of them can be read.
func stored(c *filer_pb.FileChunk) bool { return len(c.GetCipherKey()) == 0 && !c.GetIsCompressed() }

// wholeChunk reads and decodes one chunk of at most limit bytes of content.
func (c *Client) wholeChunk(ctx context.Context, p Path, ch *filer_pb.FileChunk, limit int64) ([]byte, error) {
	data, err := c.volumes.readWhole(ctx, ch.GetFileIdString(), limit+gzipSlack)
	if err != nil {
		return nil, err
	}
	doing := "decode chunk " + ch.GetFileIdString() + " of " + p.String()
	if key := ch.GetCipherKey(); len(key) > 0 {
		if data, err = openSealed(data, key); err != nil {
			return nil, fault.Wrap(fault.Corrupt, doing, err)
		}
	}
	// The volume server unpacks what it holds compressed; within encryption it
	// cannot.
	if ch.GetIsCompressed() && len(ch.GetCipherKey()) > 0 {
		if data, err = gunzip(data, limit); err != nil {
			return nil, fault.Wrap(fault.Corrupt, doing, err)
		}
	}
	return data, nil
}

func gunzip(data []byte, limit int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(out)) > limit {
		return nil, fmt.Errorf("unpacks to more than %d bytes", limit)
	}
	return out, nil
}

// decoded returns the content of a chunk that must be read whole, from the
// cache if it is there. Concurrent callers of one chunk read it once.
func (c *Client) decoded(ctx context.Context, p Path, ch *filer_pb.FileChunk) ([]byte, error) {
	fid, size := ch.GetFileIdString(), int64(ch.GetSize())
	if size > maxWholeBytes {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("chunk %s of %s has %d bytes and must be read whole; the limit is %d", fid, p, size, int64(maxWholeBytes)))
	}
	turn := c.cache.turn(fid)
	defer c.cache.leave(fid, turn)
	select {
	case turn.lock <- struct{}{}:
		defer func() { <-turn.lock }()
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Canceled, "read chunk "+fid, context.Cause(ctx))
	}
	if data := c.cache.get(fid); data != nil {
		return data, nil
	}
	data, err := c.wholeChunk(ctx, p, ch, size)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != size {
		return nil, fault.New(fault.Corrupt, fmt.Sprintf("chunk %s of %s holds %d bytes, its entry says %d", fid, p, len(data), size))
	}
	c.cache.put(fid, data)
	return data, nil
}

// chunkCache keeps decoded chunks, the least recently used going first.
type chunkCache struct {
	limit int64

	mu    sync.Mutex
	bytes int64
	used  *list.List // of *cachedChunk, most recent first
	byFid map[string]*list.Element
	turns map[string]*turn
}

type cachedChunk struct {
	fid  string
	data []byte
}

// turn lets one reader of a chunk in at a time.
type turn struct {
	lock    chan struct{}
	waiting int
}

func newChunkCache(limit int64) *chunkCache {
	return &chunkCache{limit: limit, used: list.New(), byFid: map[string]*list.Element{}, turns: map[string]*turn{}}
}

func (k *chunkCache) turn(fid string) *turn {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.turns[fid]
	if t == nil {
		t = &turn{lock: make(chan struct{}, 1)}
		k.turns[fid] = t
	}
	t.waiting++
	return t
}

func (k *chunkCache) leave(fid string, t *turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.waiting--; t.waiting == 0 {
		delete(k.turns, fid)
	}
}

func (k *chunkCache) get(fid string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.byFid[fid]
	if e == nil {
		return nil
	}
	k.used.MoveToFront(e)
	return e.Value.(*cachedChunk).data
}

func (k *chunkCache) put(fid string, data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if int64(len(data)) > k.limit || len(data) == 0 || k.byFid[fid] != nil {
		return
	}
	k.byFid[fid] = k.used.PushFront(&cachedChunk{fid, data})
	for k.bytes += int64(len(data)); k.bytes > k.limit; {
		old := k.used.Remove(k.used.Back()).(*cachedChunk)
		delete(k.byFid, old.fid)
		k.bytes -= int64(len(old.data))
	}
}
