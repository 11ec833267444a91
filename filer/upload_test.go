package filer

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seaice/seaice/fault"
)

func uploaded(t *testing.T, c *Client, content []byte, o CreateOptions) (*Entry, error) {
	t.Helper()
	u, err := c.Create(t.Context(), testFile, o)
	require.NoError(t, err)
	defer u.Abort(t.Context())
	for at := 0; at < len(content); at += 777 {
		if _, err := u.Write(content[at:min(at+777, len(content))]); err != nil {
			return nil, err
		}
	}
	return u.Commit(t.Context())
}

func TestUploadsAreReadBackAsWritten(t *testing.T) {
	for name, cipher := range map[string]bool{"plain": false, "encrypted": true} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			w.cipher = cipher
			c := dialWire(t, Config{ChunkBytes: 1000, Parallel: 3}, w)
			for _, size := range []int{0, 1, 999, 1000, 1001, 25_000} {
				want := pattern(size)
				e, err := uploaded(t, c, want, CreateOptions{Replace: true, Mime: "a/b", Extended: map[string][]byte{"k": []byte("v")}})
				require.NoError(t, err)
				require.EqualValues(t, size, e.Size)
				require.Len(t, e.PB.Chunks, (size+999)/1000)
				at := int64(0)
				for _, ch := range e.PB.Chunks {
					require.Equal(t, at, ch.Offset)
					at = end(ch)
					require.Equal(t, cipher, len(ch.CipherKey) == 32)
					tag, err := base64.StdEncoding.DecodeString(ch.ETag)
					require.NoError(t, err)
					if sum := md5.Sum(want[ch.Offset:end(ch)]); ch.Offset == 0 {
						require.Equal(t, sum[:], tag, "of a file with one chunk it is the object's")
					} else {
						require.Len(t, tag, 20, "nobody may take it for an MD5")
					}
					if cipher && ch.Size > 100 {
						require.NotContains(t, string(w.needles[ch.FileId]), string(want[ch.Offset:end(ch)]))
					}
				}
				require.Equal(t, want, readFile(t, c))
			}
			require.LessOrEqual(t, len(c.buffers.get()), 1000+cipherOverhead)
		})
	}
}

// TestUploadMemoryIsBounded: Write waits while all buffers are on their way.
func TestUploadMemoryIsBounded(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{ChunkBytes: 100, Parallel: 4}, w)
	var mu sync.Mutex
	busy, most := 0, 0
	gate := make(chan struct{})
	w.http = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		mu.Lock()
		busy++
		most = max(most, busy)
		mu.Unlock()
		<-gate
		mu.Lock()
		busy--
		mu.Unlock()
		return false
	}
	go func() {
		for range 100 {
			gate <- struct{}{}
		}
	}()
	_, err := uploaded(t, c, pattern(10_000), CreateOptions{})
	require.NoError(t, err)
	require.LessOrEqual(t, most, 4)
	require.Greater(t, most, 1, "chunks go out at the same time")
}

// TestUploadProof: a chunk that the server stored otherwise is stored again
// elsewhere, and what is wrong is released.
func TestUploadProof(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{ChunkBytes: 1000}, w)
	puts := 0
	w.http = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		puts++
		if r.Header.Get("Content-MD5") == "" || r.Header.Get("Content-Type") != octetStream ||
			r.Header.Get("Authorization") != "Bearer write-"+strings.TrimPrefix(r.URL.Path, "/") {
			t.Errorf("chunk comes with the headers %v", r.Header)
		}
		switch puts {
		case 1:
			http.Error(rw, "Content-MD5 did not match", http.StatusBadRequest)
		case 2: // flipped a bit on its way to the disk
			rw.Header().Set("ETag", `"00000000"`)
			rw.WriteHeader(http.StatusCreated)
			_, _ = rw.Write([]byte(`{"size":1000}`))
		case 3:
			rw.Header().Set("ETag", `"`+crcHex(pattern(1000))+`"`)
			rw.WriteHeader(http.StatusCreated)
			_, _ = rw.Write([]byte(`{"size":999}`))
		case 4:
			rw.Header().Set("ETag", `"`+crcHex(pattern(1000))+`"`)
			rw.Header().Set("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")
			rw.WriteHeader(http.StatusCreated)
			_, _ = rw.Write([]byte(`{"size":1000}`))
		case 5:
			http.Error(rw, "volume is full", http.StatusConflict)
		default:
			return false
		}
		return true
	}
	e, err := uploaded(t, c, pattern(1000), CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, 6, puts)
	require.Len(t, w.deleted, 5, "what the failed attempts left is released")
	require.NotContains(t, w.deleted, e.PB.Chunks[0].FileId)
	require.Equal(t, pattern(1000), readFile(t, c))
}

// TestUploadProofOfLaterChunks: they have no MD5, and are proved by their checksum.
func TestUploadProofOfLaterChunks(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{ChunkBytes: 1000}, w)
	damaged := ""
	w.http = func(rw http.ResponseWriter, r *http.Request) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.Method != http.MethodPut || r.Header.Get("Content-MD5") != "" || damaged != "" {
			return false
		}
		damaged = strings.TrimPrefix(r.URL.Path, "/")
		rw.Header().Set("ETag", `"00000000"`)
		rw.WriteHeader(http.StatusCreated)
		_, _ = rw.Write([]byte(`{"size":1000}`))
		return true
	}
	e, err := uploaded(t, c, pattern(3000), CreateOptions{})
	require.NoError(t, err)
	require.Len(t, e.PB.GetChunks(), 3)
	require.Equal(t, []string{damaged}, w.deleted)
	require.Equal(t, pattern(3000), readFile(t, c))
}

func crcHex(b []byte) string {
	const digits = "0123456789abcdef"
	crc := proofOf(b, false).crc
	var out [8]byte
	for i := range out {
		out[7-i] = digits[crc>>(4*i)&15]
	}
	return string(out[:])
}

// TestUploadReadBack: an encrypted chunk that does not decrypt to what was
// written is not committed.
func TestUploadReadBack(t *testing.T) {
	w := newWire(t)
	w.cipher = true
	c := dialWire(t, Config{ChunkBytes: 1000}, w)
	w.http = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			w.mu.Lock()
			defer w.mu.Unlock()
			b := bytes.Clone(w.needles[r.URL.Path[1:]])
			b[len(b)/2] ^= 1
			w.needles[r.URL.Path[1:]] = b
		}
		return false
	}
	_, err := uploaded(t, c, pattern(1000), CreateOptions{})
	require.Equal(t, fault.Corrupt, fault.Of(err), "%v", err)
	require.Nil(t, w.get(testFile))
	require.Empty(t, w.needles)
}

func TestUploadFailures(t *testing.T) {
	t.Run("aborted", func(t *testing.T) {
		w := newWire(t)
		c := dialWire(t, Config{ChunkBytes: 100}, w)
		u, err := c.Create(t.Context(), testFile, CreateOptions{})
		require.NoError(t, err)
		_, err = u.Write(pattern(950))
		require.NoError(t, err)
		u.Abort(t.Context())
		w.mu.Lock()
		defer w.mu.Unlock()
		// A chunk on its way may arrive after it was given up.
		require.LessOrEqual(t, len(w.needles), c.cfg.Parallel)
		_, err = u.Write([]byte("x"))
		require.Error(t, err)
		_, err = u.Commit(t.Context())
		require.Error(t, err)
		require.Zero(t, w.calls["CreateEntry"])
	})
	t.Run("taken", func(t *testing.T) {
		w := newWire(t)
		c := dialWire(t, Config{ChunkBytes: 100}, w)
		w.put(testFile, &filer_pb.Entry{Content: []byte("mine")})
		_, err := uploaded(t, c, pattern(950), CreateOptions{})
		verdict(t, err, fault.Stale, ErrExists)
		require.Empty(t, w.needles, "nothing refers to the chunks")
	})
	t.Run("answer lost", func(t *testing.T) {
		w := newWire(t)
		c := dialWire(t, Config{ChunkBytes: 100}, w)
		w.lose = func(m string) bool { return m == "CreateEntry" }
		_, err := uploaded(t, c, pattern(950), CreateOptions{})
		verdict(t, err, fault.Unknown, nil)
		require.Equal(t, 1, w.count("CreateEntry"), "never sent twice")
		require.Len(t, w.needles, 10, "the entry may refer to the chunks")
		require.Equal(t, pattern(950), readFile(t, c))
	})
	t.Run("no room", func(t *testing.T) {
		w := newWire(t)
		c := dialWire(t, Config{ChunkBytes: 100}, w)
		w.hook = func(m string) error {
			if m == "AssignVolume" {
				return status.Error(codes.Unknown, "no free volumes left")
			}
			return nil
		}
		_, err := uploaded(t, c, pattern(950), CreateOptions{})
		verdict(t, err, fault.Transient, nil)
		require.Greater(t, w.count("AssignVolume"), 3)
		require.Zero(t, w.count("CreateEntry"))
	})
	t.Run("canceled", func(t *testing.T) {
		w := newWire(t)
		c := dialWire(t, Config{ChunkBytes: 100}, w)
		ctx, cancel := context.WithCancel(t.Context())
		u, err := c.Create(ctx, testFile, CreateOptions{})
		require.NoError(t, err)
		_, err = u.Write(pattern(250))
		require.NoError(t, err)
		cancel()
		_, err = u.Commit(t.Context())
		verdict(t, err, fault.Canceled, nil)
		u.Abort(t.Context())
		require.Zero(t, w.count("CreateEntry"))
	})
	t.Run("server refuses", func(t *testing.T) {
		w := newWire(t)
		c := dialWire(t, Config{ChunkBytes: 100}, w)
		w.http = func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				rw.WriteHeader(http.StatusUnauthorized)
			}
			return r.Method == http.MethodPut
		}
		_, err := uploaded(t, c, pattern(5000), CreateOptions{})
		verdict(t, err, fault.Unsupported, nil)
		require.Zero(t, w.count("CreateEntry"))
	})
}

func TestPutKeepsSmallFilesInTheEntry(t *testing.T) {
	w := newWire(t)
	c := dialWire(t, Config{}, w)
	content := pattern(InlineLimit)
	e, err := c.Put(t.Context(), testFile, content, CreateOptions{})
	require.NoError(t, err)
	require.Empty(t, e.PB.Chunks)
	content[0]++
	require.Equal(t, pattern(InlineLimit), readFile(t, c))
	e, err = c.Put(t.Context(), testFile, pattern(InlineLimit+1), CreateOptions{Replace: true})
	require.NoError(t, err)
	require.Len(t, e.PB.Chunks, 1)
	_, err = c.Put(t.Context(), "/", nil, CreateOptions{})
	verdict(t, err, fault.Unsupported, nil)
	_, err = c.Put(t.Context(), "/a/../b", nil, CreateOptions{})
	verdict(t, err, fault.Unsupported, nil)
}
