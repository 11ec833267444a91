package filer

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
)

// Update writes the entry of u.Base with its changes if every attribute named
// by u.Expect still is as expected. The filer replaces the whole entry, so the
// data must not have changed either: the chunks of the entry are asserted too,
// and with nothing to expect the whole entry is.
func (c *Client) Update(ctx context.Context, u Update) (*Entry, error) {
	if u.Base == nil {
		return nil, fault.New(fault.Halt, "update without a base entry")
	}
	p := u.Base.Path
	doing := "update " + p.String()
	pb := c.changed(u)
	req := &filer_pb.UpdateEntryRequest{Directory: p.Dir().String(), Entry: pb, ExpectedExtended: u.Expect}
	if len(u.Expect) == 0 {
		req.Condition = entryEqual(u.Base.PB)
	} else {
		req.Condition = chunksEqual(u.Base.PB.GetChunks())
	}
	var r *filer_pb.UpdateEntryResponse
	err := c.change(ctx, doing, func(ctx context.Context, n *node, opts ...grpc.CallOption) (err error) {
		if err := n.conditional(ctx, c); err != nil {
			return err
		}
		r, err = n.UpdateEntry(ctx, req, opts...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.written(ctx, p, r.GetMetadataEvent().GetEventNotification(), pb), nil
}

// changed is the entry of u.Base with the changes of u.
func (c *Client) changed(u Update) *filer_pb.Entry {
	pb := proto.CloneOf(u.Base.PB)
	pb.Name = u.Base.Path.Name()
	setExtended(pb, u.Set)
	if u.Content == nil {
		return pb
	}
	if pb.Attributes == nil {
		pb.Attributes = &filer_pb.FuseAttributes{}
	}
	now := c.clk.Now()
	if !now.After(u.Base.Mtime) {
		// Another content has another identity, whatever the clock says.
		now = u.Base.Mtime.Add(time.Nanosecond)
	}
	a := pb.Attributes
	a.Mtime, a.MtimeNs = now.Unix(), int32(now.Nanosecond())
	a.FileSize, a.Md5 = uint64(len(u.Content)), nil
	pb.Content, pb.Chunks = bytes.Clone(u.Content), nil
	return pb
}

func setExtended(pb *filer_pb.Entry, set map[string][]byte) {
	for k, v := range set {
		if v == nil {
			delete(pb.Extended, k)
			continue
		}
		if pb.Extended == nil {
			pb.Extended = map[string][]byte{}
		}
		pb.Extended[k] = v
	}
}

// Patch sets attributes in a transaction that asserts the whole entry.
func (c *Client) Patch(ctx context.Context, base *Entry, set map[string][]byte, id string) error {
	p := base.Path
	m := &filer_pb.ObjectMutation{Type: filer_pb.ObjectMutation_PATCH_EXTENDED, Directory: p.Dir().String(), Name: p.Name(), SetExtended: map[string][]byte{}}
	for _, k := range slices.Sorted(maps.Keys(set)) {
		if v := set[k]; v == nil {
			m.DeleteExtended = append(m.DeleteExtended, k)
		} else {
			m.SetExtended[k] = v
		}
	}
	doing := "patch " + p.String()
	open, err := c.transact(ctx, doing, p, id, &filer_pb.ObjectTransactionRequest{
		Condition: entryEqual(base.PB), Mutations: []*filer_pb.ObjectMutation{m},
	})
	if !open || err == nil {
		return err
	}
	// An answer was lost and the filer that answered last may not remember the
	// request. The entry itself tells.
	want := proto.CloneOf(base.PB)
	setExtended(want, set)
	now, serr := c.Stat(ctx, p)
	if serr == nil && sameButStamp(now.PB, want) {
		return nil
	}
	return fault.In("an answer was lost", unknown(err))
}

// sameButStamp compares entries without the filer's stamp of their last change.
func sameButStamp(a, b *filer_pb.Entry) bool {
	a, b = proto.CloneOf(a), proto.CloneOf(b)
	a.CommitTsNs, b.CommitTsNs = 0, 0
	filer_pb.BeforeEntrySerialization(a.Chunks)
	filer_pb.BeforeEntrySerialization(b.Chunks)
	return proto.Equal(a, b)
}

const (
	// replayFor is how long a transaction is sent again under its id. Filers
	// remember outcomes for two minutes.
	replayFor = 100 * time.Second
	// routePrefix makes the filers agree on who decides over a path, as S3
	// gateways and UpdateEntry do.
	routePrefix = "s3.object.write:"
)

// transact runs an ObjectTransaction under the lock of p, again under the same
// id while answers are lost: the filer that owns the path replays the outcome.
// open is whether an answer was lost, so that a refusal may be of a repetition.
func (c *Client) transact(ctx context.Context, doing string, p Path, id string, req *filer_pb.ObjectTransactionRequest) (open bool, err error) {
	if id == "" {
		return false, fault.New(fault.Halt, doing+": no request id")
	}
	req.LockKey, req.RouteKey, req.RequestId = p.String(), routePrefix+p.String(), id
	b := c.backoff(min(replayFor, c.cfg.RetryFor))
	for {
		n := c.node()
		replied := false
		_, err := c.attempt(ctx, n, callTimeout, doing, changes, func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
			if err := n.transactional(ctx, c); err != nil {
				return err
			}
			r, err := n.ObjectTransaction(ctx, req, opts...)
			if err != nil {
				return err
			}
			replied = true
			return transacted(doing, r)
		})
		lost := fault.Is(err, fault.Unknown) && !replied
		open = open || lost
		if !lost && !fault.Is(err, fault.Transient) {
			return open, err
		}
		c.leave(n)
		if !b.again(ctx) {
			if open {
				return open, unknown(err)
			}
			return open, gaveUp(ctx, err)
		}
	}
}

// transacted maps a transaction's reply. A mutation that failed for a reason of
// the store leaves open what it did.
func transacted(doing string, r *filer_pb.ObjectTransactionResponse) error {
	code := r.GetErrorCode()
	if r.FailedMutation != nil && code == filer_pb.FilerError_PRECONDITION_FAILED {
		// The only condition of a mutation is that its target does not exist.
		code = filer_pb.FilerError_ENTRY_ALREADY_EXISTS
	}
	err := replied(doing, code, r.GetError())
	if err != nil && r.GetFailedMutation() > 0 {
		// Earlier mutations have happened.
		return fault.In(fmt.Sprintf("mutation %d failed behind others that took effect", r.GetFailedMutation()), unknown(err))
	}
	return err
}

func entryEqual(pb *filer_pb.Entry) *filer_pb.WriteCondition {
	return clause(&filer_pb.WriteCondition_Clause{Kind: filer_pb.WriteCondition_IF_ENTRY_EQUAL, ExpectedEntry: pb})
}

func chunksEqual(chunks []*filer_pb.FileChunk) *filer_pb.WriteCondition {
	return clause(&filer_pb.WriteCondition_Clause{Kind: filer_pb.WriteCondition_IF_CHUNKS_EQUAL, Fids: filer_pb.FileIdsString(chunks)})
}

func absentEntry() *filer_pb.WriteCondition {
	return clause(&filer_pb.WriteCondition_Clause{Kind: filer_pb.WriteCondition_IF_NOT_EXISTS})
}

func clause(c *filer_pb.WriteCondition_Clause) *filer_pb.WriteCondition {
	return &filer_pb.WriteCondition{Clauses: []*filer_pb.WriteCondition_Clause{c}}
}
