package filer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seaice/seaice/fault"
)

// probeDir is where the client probes by itself, before it changes the first
// entry through a filer that nobody called Probe for.
const probeDir Path = "/etc/seaice/probe"

// Probe tries conditions on a scratch entry below dir on the filer in use.
func (c *Client) Probe(ctx context.Context, dir Path) (Capabilities, error) {
	if err := checkPath(dir); err != nil {
		return Capabilities{}, err
	}
	var out Capabilities
	err := c.read(ctx, "probe filer", func(ctx context.Context, n *node, _ ...grpc.CallOption) (err error) {
		out, err = n.probe(ctx, c, dir)
		return err
	})
	return out, err
}

// conditional refuses a filer that ignores the conditions of updates.
func (n *node) conditional(ctx context.Context, c *Client) error {
	caps, err := n.probe(ctx, c, probeDir)
	if err == nil && !caps.ConditionalUpdate {
		err = fault.WithHint(hintVersion, fault.New(fault.Unsupported, "filer "+n.addr+" ignores the conditions of an update"))
	}
	return err
}

// errNoTransactions is the cause of the refusal to use a filer's transactions.
var errNoTransactions = errors.New("filer has no transactions")

func (n *node) transactional(ctx context.Context, c *Client) error {
	caps, err := n.probe(ctx, c, probeDir)
	if err == nil && !caps.Transactions {
		err = fault.WithHint(hintVersion, fault.Wrap(fault.Unsupported, "filer "+n.addr, errNoTransactions))
	}
	return err
}

// cipher reports whether uploads are to be encrypted.
func (c *Client) cipher(ctx context.Context) (bool, error) {
	var on bool
	err := c.read(ctx, "ask the filer for its configuration", func(ctx context.Context, n *node, opts ...grpc.CallOption) error {
		if found := n.found.Load(); found != nil {
			on = found.Cipher
			return nil
		}
		r, err := n.GetFilerConfiguration(ctx, &filer_pb.GetFilerConfigurationRequest{}, opts...)
		on = r.GetCipher()
		return err
	})
	return on, err
}

// probe finds out what the filer does, once for each connection to it.
func (n *node) probe(ctx context.Context, c *Client, dir Path) (Capabilities, error) {
	if found := n.found.Load(); found != nil {
		return *found, nil
	}
	n.probing.Lock()
	defer n.probing.Unlock()
	if found := n.found.Load(); found != nil {
		return *found, nil
	}
	doing := "probe filer " + n.addr
	p := &prober{n: n, c: c, dir: dir, name: ".seaice-probe-" + strconv.FormatUint(rand.Uint64(), 36)}
	caps, err := p.run(ctx)
	if err != nil {
		var own *fault.Error
		if errors.As(err, &own) {
			return Capabilities{}, fault.In(doing, err)
		}
		// The scratch entry is this call's own: trying again does no harm.
		return Capabilities{}, answered(ctx, doing, reads, true, err)
	}
	n.found.Store(&caps)
	return caps, nil
}

type prober struct {
	n    *node
	c    *Client
	dir  Path
	name string
}

const probeKey = "seaice.probe"

func (p *prober) run(ctx context.Context) (Capabilities, error) {
	var caps Capabilities
	conf, err := p.n.GetFilerConfiguration(ctx, &filer_pb.GetFilerConfigurationRequest{})
	if err != nil {
		return caps, err
	}
	caps.Cipher = conf.GetCipher()

	path := p.dir.Join(p.name)
	pb := p.c.newEntry(path, CreateOptions{Extended: map[string][]byte{probeKey: []byte("1")}}, 0)
	r, err := p.n.CreateEntry(ctx, &filer_pb.CreateEntryRequest{Directory: p.dir.String(), Entry: pb, OExcl: true})
	if err != nil {
		return caps, err
	}
	if err := replied("create "+path.String(), r.GetErrorCode(), r.GetError()); err != nil {
		return caps, err
	}
	defer p.remove(ctx)

	if caps.ConditionalUpdate, err = p.updates(ctx, pb); err != nil {
		return caps, err
	}
	caps.Transactions, err = p.transactions(ctx)
	return caps, err
}

// updates sends an update that must be refused.
func (p *prober) updates(ctx context.Context, pb *filer_pb.Entry) (bool, error) {
	wrong := proto.CloneOf(pb)
	wrong.Extended = map[string][]byte{probeKey: []byte("overwritten")}
	_, err := p.n.UpdateEntry(ctx, &filer_pb.UpdateEntryRequest{
		Directory: p.dir.String(), Entry: wrong, ExpectedExtended: map[string][]byte{probeKey: []byte("other")},
	})
	err = answered(ctx, "update scratch entry", reads, true, err)
	if err != nil && !errors.Is(err, ErrPrecondition) {
		return false, err
	}
	now, lerr := p.look(ctx)
	if lerr != nil {
		return false, lerr
	}
	return err != nil && string(now.GetExtended()[probeKey]) == "1", nil
}

// transactions sends one that must be refused, one that must take effect, and
// that one again, which must answer the same although the entry has changed.
func (p *prober) transactions(ctx context.Context) (bool, error) {
	now, err := p.look(ctx)
	if err != nil {
		return false, err
	}
	wrong := proto.CloneOf(now)
	wrong.Extended = map[string][]byte{probeKey: []byte("other")}
	for i, step := range []struct {
		base *filer_pb.Entry
		want filer_pb.FilerError
		left string
	}{
		{wrong, filer_pb.FilerError_PRECONDITION_FAILED, string(now.GetExtended()[probeKey])},
		{now, filer_pb.FilerError_OK, "2"},
		{now, filer_pb.FilerError_OK, "2"},
	} {
		path := p.dir.Join(p.name).String()
		r, err := p.n.ObjectTransaction(ctx, &filer_pb.ObjectTransactionRequest{
			LockKey: path, RouteKey: routePrefix + path, RequestId: fmt.Sprintf("%s-%t", p.name, i > 0),
			Condition: entryEqual(step.base),
			Mutations: []*filer_pb.ObjectMutation{{
				Type: filer_pb.ObjectMutation_PATCH_EXTENDED, Directory: p.dir.String(), Name: p.name,
				SetExtended: map[string][]byte{probeKey: []byte("2")},
			}},
		})
		if unimplemented(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		left, err := p.look(ctx)
		if err != nil {
			return false, err
		}
		if r.GetErrorCode() != step.want || string(left.GetExtended()[probeKey]) != step.left {
			return false, nil
		}
	}
	return true, nil
}

func (p *prober) look(ctx context.Context) (*filer_pb.Entry, error) {
	r, err := p.n.LookupDirectoryEntry(ctx, &filer_pb.LookupDirectoryEntryRequest{Directory: p.dir.String(), Name: p.name})
	return r.GetEntry(), err
}

// remove drops the scratch entry, which has no data.
func (p *prober) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	_, _ = p.n.DeleteEntry(ctx, &filer_pb.DeleteEntryRequest{Directory: p.dir.String(), Name: p.name})
}
