package filer

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/security"
	"github.com/zeebo/xxh3"
	"google.golang.org/grpc"

	"github.com/seaice/seaice/fault"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// assigned is a place for one chunk.
type assigned struct {
	fid    string
	id     *filer_pb.FileId
	server string
	token  string
	fsync  bool
}

// assign asks for a place for a chunk of the file at p. Because the path is
// named, the filer's rules for it apply: collection, replication, disk type.
// Nothing refers to a place before an entry does, so asking again is safe.
func (c *Client) assign(ctx context.Context, p Path, bytes int) (assigned, error) {
	doing := "assign a volume for " + p.String()
	var a assigned
	err := c.read(ctx, doing, func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
		r, err := n.AssignVolume(ctx, &filer_pb.AssignVolumeRequest{Count: 1, Path: p.String(), ExpectedDataSize: uint64(bytes)}, opts...)
		if err != nil {
			return err
		}
		if code := r.GetErrorCode(); code != filer_pb.FilerError_OK {
			return replied(doing, code, r.GetError())
		}
		if r.GetError() != "" {
			return fault.WithHint("weed shell: volume.list; a cluster without free volumes needs more room or -volume.max=0",
				fault.New(fault.Transient, doing+": "+r.GetError()))
		}
		a = assigned{fid: r.GetFileId(), server: r.GetLocation().GetUrl(), token: r.GetAuth(), fsync: r.GetFsync()}
		if _, a.id, err = parseFid(a.fid); err != nil || a.server == "" {
			return fault.New(fault.Corrupt, fmt.Sprintf("%s: the filer answered with file id %q at %q", doing, a.fid, a.server))
		}
		return nil
	})
	return a, err
}

// proof is what a volume server's answer about stored bytes is compared with.
type proof struct {
	crc uint32
	md5 string // base64, empty if it is not sent
	// etag is what the chunk is known by, in base64: the MD5 if there is one.
	etag string
}

// proofOf takes the checksums of a chunk. An MD5 takes about a second for a GB, more than
// the others together. Without it the etag is longer than an MD5, for which the S3 gateway
// takes any of 16 bytes.
func proofOf(b []byte, withMD5 bool) proof {
	p := proof{crc: crc32.Checksum(b, castagnoli)}
	if withMD5 {
		sum := md5.Sum(b)
		p.md5 = base64.StdEncoding.EncodeToString(sum[:])
		p.etag = p.md5
		return p
	}
	sum := xxh3.Hash128(b).Bytes()
	p.etag = base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(sum[:], p.crc))
	return p
}

// putChunk stores body at a fresh place, again at another one if that fails,
// and compares what the volume server says it stored.
func (c *Client) putChunk(ctx context.Context, p Path, body []byte, want proof) (assigned, error) {
	b := c.backoff(c.cfg.RetryFor)
	for {
		a, err := c.assign(ctx, p, len(body))
		if err != nil {
			return a, err
		}
		err = c.putTo(ctx, a, p, body, want)
		if err == nil {
			return a, nil
		}
		// What the failed attempt left is referred to by nothing.
		c.release(ctx, []assigned{a})
		if fault.Of(err) != fault.Transient || !b.again(ctx) {
			return a, gaveUp(ctx, err)
		}
	}
}

func (c *Client) putTo(ctx context.Context, a assigned, p Path, body []byte, want proof) error {
	doing := fmt.Sprintf("store chunk %s of %s at %s", a.fid, p, a.server)
	ctx2, cancel := context.WithTimeout(ctx, transferTime(int64(len(body))))
	defer cancel()
	url := c.volumes.url(a.server, a.fid)
	if a.fsync {
		url += "?fsync=true"
	}
	req, err := http.NewRequestWithContext(ctx2, http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		return fault.Wrap(fault.Corrupt, doing, err)
	}
	// With this type the volume server stores the bytes as they are; for others
	// it may compress them. The type of the file is the entry's.
	req.Header.Set("Content-Type", octetStream)
	if want.md5 != "" {
		req.Header.Set("Content-MD5", want.md5)
	}
	bearer(req, a.token)
	resp, err := c.sec.http.Do(req)
	if err != nil {
		return requested(ctx, doing, err)
	}
	defer closeBody(resp)
	if err := served(doing, resp.StatusCode, says(resp)); err != nil {
		if NotFound(err) {
			err = fault.Wrap(fault.Transient, doing, err)
		}
		return err
	}
	return checkStored(doing, resp, len(body), want)
}

// checkStored compares the volume server's checksum, length and MD5. A
// difference is Transient: the same bytes go to another place.
func checkStored(doing string, resp *http.Response, length int, want proof) error {
	crc := hex.EncodeToString(binary.BigEndian.AppendUint32(nil, want.crc))
	if got := strings.Trim(resp.Header.Get("ETag"), `"`); got != crc {
		return fault.New(fault.Transient, fmt.Sprintf("%s: stored bytes have the checksum %q, not %s", doing, got, crc))
	}
	if got := resp.Header.Get("Content-MD5"); want.md5 != "" && got != "" && got != want.md5 {
		return fault.New(fault.Transient, fmt.Sprintf("%s: stored bytes have the MD5 %s, not %s", doing, got, want.md5))
	}
	if resp.StatusCode == http.StatusNoContent {
		return nil // the same bytes were there already
	}
	var r struct {
		Size  int64  `json:"size"`
		Error string `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&r); err != nil {
		return fault.Wrap(fault.Transient, doing+": read the answer", err)
	}
	if r.Error != "" || r.Size != int64(length) {
		return fault.New(fault.Transient, fmt.Sprintf("%s: stored %d of %d bytes %s", doing, r.Size, length, r.Error))
	}
	return nil
}

// release deletes chunks that no entry refers to, as far as possible: what
// stays costs room until the cluster's own check (volume.fsck) finds it.
func (c *Client) release(ctx context.Context, chunks []assigned) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	for _, a := range chunks {
		if a.fid == "" || ctx.Err() != nil {
			continue
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.volumes.url(a.server, a.fid), http.NoBody)
		if err != nil {
			continue
		}
		token := a.token
		if len(c.sec.writeKey) > 0 {
			token = string(security.GenJwtForVolumeServer(c.sec.writeKey, jwtSeconds, a.fid))
		}
		bearer(req, token)
		if resp, err := c.sec.http.Do(req); err == nil {
			closeBody(resp)
		}
	}
}
