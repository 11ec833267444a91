package filer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/security"
	"google.golang.org/grpc"

	"github.com/seaice/seaice/fault"
)

const (
	// locationsFor is how long the servers of a volume are remembered.
	locationsFor = 10 * time.Minute
	// maxVolumes bounds how many volumes are remembered.
	maxVolumes = 16 << 10
	// slowest is the rate in bytes per second below which a transfer is broken
	// off and tried elsewhere.
	slowest = 512 << 10
)

// volumes reads chunks from, and writes them to, volume servers. It remembers
// where volumes are.
type volumes struct {
	c  *Client
	mu sync.Mutex
	at map[string]located
}

type located struct {
	servers []string
	until   time.Time
}

func newVolumes(c *Client) *volumes { return &volumes{c: c, at: map[string]located{}} }

// parseFid checks a file id, "volume,hex", and returns its volume.
func parseFid(fid string) (volume string, id *filer_pb.FileId, err error) {
	volume, rest, ok := strings.Cut(fid, ",")
	if _, nerr := strconv.ParseUint(volume, 10, 32); !ok || nerr != nil || len(rest) <= 8 || len(rest) > 24 {
		return "", nil, fmt.Errorf("file id %q is not volume,hex", fid)
	}
	if id, err = filer_pb.ToFileIdObject(fid); err != nil {
		return "", nil, fmt.Errorf("file id %q: %w", fid, err)
	}
	return volume, id, nil
}

// servers are the addresses of the servers that hold the volume, in the order
// to try them.
func (v *volumes) servers(ctx context.Context, volume string) ([]string, error) {
	v.mu.Lock()
	l, ok := v.at[volume]
	v.mu.Unlock()
	if ok && v.c.clk.Now().Before(l.until) {
		return l.servers, nil
	}
	doing := "find the servers of volume " + volume
	var found []string
	err := v.c.read(ctx, doing, func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
		r, err := n.LookupVolume(ctx, &filer_pb.LookupVolumeRequest{VolumeIds: []string{volume}}, opts...)
		if err != nil {
			return err
		}
		found = order(r.GetLocationsMap()[volume].GetLocations())
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fault.New(fault.Transient, doing+": none is known; its server may be down")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.at) >= maxVolumes {
		clear(v.at)
	}
	v.at[volume] = located{found, v.c.clk.Now().Add(locationsFor)}
	return found, nil
}

// order shuffles the servers, those that keep the data elsewhere last.
func order(locations []*filer_pb.Location) []string {
	var near, far []string
	for _, l := range locations {
		switch {
		case l.GetUrl() == "":
		case l.GetDataInRemote():
			far = append(far, l.GetUrl())
		default:
			near = append(near, l.GetUrl())
		}
	}
	rand.Shuffle(len(near), func(i, j int) { near[i], near[j] = near[j], near[i] })
	return append(near, far...)
}

// prefer moves the server that answered before those that did not.
func (v *volumes) prefer(volume string, servers []string, i int) {
	better := slices.Concat(servers[i:i+1], servers[:i], servers[i+1:])
	v.mu.Lock()
	defer v.mu.Unlock()
	if l, ok := v.at[volume]; ok {
		v.at[volume] = located{better, l.until}
	}
}

// forget drops what is remembered of the volume.
func (v *volumes) forget(volume string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.at, volume)
}

// get runs read on the answer of a server that holds the chunk, on one server
// after the other until one answer is read to the end. length is about how much
// is read. A chunk that no server has is ErrNotFound.
func (v *volumes) get(ctx context.Context, fid, ranged string, length int64, read func(*http.Response) error) error {
	volume, _, err := parseFid(fid)
	if err != nil {
		return fault.Wrap(fault.Corrupt, "", err)
	}
	b := v.c.backoff(v.c.cfg.RetryFor)
	fresh := false
	for {
		servers, err := v.servers(ctx, volume)
		if err != nil && fault.Of(err) != fault.Transient {
			return err
		}
		absent := err == nil
		for i, s := range servers {
			err = v.getFrom(ctx, s, fid, ranged, length, read)
			if err == nil && i > 0 {
				v.prefer(volume, servers, i)
			}
			if k := fault.Of(err); k != fault.Transient && !NotFound(err) {
				return err
			}
			absent = absent && NotFound(err)
		}
		if absent && fresh {
			return err
		}
		// What was remembered may be old: a volume moves.
		v.forget(volume)
		fresh = true
		if absent {
			continue
		}
		if !b.again(ctx) {
			return gaveUp(ctx, err)
		}
	}
}

func (v *volumes) getFrom(ctx context.Context, server, fid, ranged string, length int64, read func(*http.Response) error) error {
	doing := "read chunk " + fid + " from " + server
	ctx2, cancel := context.WithTimeout(ctx, transferTime(length))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx2, http.MethodGet, v.url(server, fid), http.NoBody)
	if err != nil {
		return fault.Wrap(fault.Corrupt, doing, err)
	}
	if ranged != "" {
		req.Header.Set("Range", ranged)
	}
	if len(v.c.sec.readKey) > 0 {
		bearer(req, string(security.GenJwtForVolumeServer(v.c.sec.readKey, jwtSeconds, fid)))
	}
	resp, err := v.c.sec.http.Do(req)
	if err != nil {
		return requested(ctx, doing, err)
	}
	defer closeBody(resp)
	if err := served(doing, resp.StatusCode, says(resp)); err != nil {
		return err
	}
	if err := read(resp); err != nil {
		var own *fault.Error
		if errors.As(err, &own) {
			return fault.In(doing, err)
		}
		return requested(ctx, doing, err)
	}
	return nil
}

func (v *volumes) url(server, fid string) string { return v.c.sec.scheme + "://" + server + "/" + fid }

func transferTime(length int64) time.Duration {
	return headerTimeout + time.Duration(length/slowest)*time.Second
}

func bearer(req *http.Request, token string) {
	if token != "" {
		req.Header.Set("Authorization", security.BearerPrefix+token)
	}
}

// says is the beginning of the text of an answer that is not a success.
func says(resp *http.Response) string {
	if resp.StatusCode < 300 {
		return ""
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	return strings.TrimSpace(string(b))
}

// closeBody reads a short rest so that the connection can be used again.
func closeBody(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}

// readRange fills buf with the bytes of a plain chunk from offset on. total is
// the chunk's length.
func (v *volumes) readRange(ctx context.Context, fid string, offset, total int64, buf []byte) error {
	ranged := fmt.Sprintf("bytes=%d-%d", offset, offset+int64(len(buf))-1)
	if offset == 0 && int64(len(buf)) == total {
		ranged = ""
	}
	return v.get(ctx, fid, ranged, int64(len(buf)), func(resp *http.Response) error {
		if ranged != "" && resp.StatusCode == http.StatusPartialContent {
			if want := fmt.Sprintf("bytes %d-%d/", offset, offset+int64(len(buf))-1); !strings.HasPrefix(resp.Header.Get("Content-Range"), want) {
				return fault.New(fault.Corrupt, fmt.Sprintf("asked for %s, the server sent %q", ranged, resp.Header.Get("Content-Range")))
			}
		} else if n := resp.ContentLength; n >= 0 && n < offset+int64(len(buf)) {
			return fault.New(fault.Corrupt, fmt.Sprintf("the chunk has %d bytes, its entry says %d", n, total))
		} else if _, err := io.CopyN(io.Discard, resp.Body, offset); err != nil {
			return short(err)
		}
		if _, err := io.ReadFull(resp.Body, buf); err != nil {
			return short(err)
		}
		return nil
	})
}

// short names the failure of a body that ends early: the connection broke, or
// the chunk is shorter than its entry says. Another attempt tells.
func short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Wrap(fault.Transient, "the answer ends early", io.ErrUnexpectedEOF)
	}
	return err
}

// readWhole returns the stored bytes of a chunk, at most limit.
func (v *volumes) readWhole(ctx context.Context, fid string, limit int64) ([]byte, error) {
	var out []byte
	err := v.get(ctx, fid, "", limit, func(resp *http.Response) error {
		n := resp.ContentLength
		if n > limit {
			return fault.New(fault.Corrupt, fmt.Sprintf("the chunk is stored in %d bytes, at most %d were expected", n, limit))
		}
		var err error
		if n >= 0 {
			out = make([]byte, n)
			_, err = io.ReadFull(resp.Body, out)
		} else {
			out, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
		}
		if err != nil {
			return short(err)
		}
		if int64(len(out)) > limit {
			return fault.New(fault.Corrupt, fmt.Sprintf("the chunk is stored in more than the %d bytes expected", limit))
		}
		return nil
	})
	return out, err
}
