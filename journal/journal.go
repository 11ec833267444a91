// Package journal holds what a run staged and decided, fenced, so that anybody
// can finish or undo it.
//
// A run is an entry in the filer: one small head that is only ever changed by
// compare-and-swap, and numbered segments that are only ever created
// exclusively. The head says who runs, until when the lease lasts and what is
// about to be swapped; the segments name every file before it is created, every
// finished unit and every removal before it is made. An answer that was lost is
// resolved by reading again; each writer knows its own stamps.
//
// Nothing here removes a file. Whoever finds an expired run goes through
// Store.Resolve, which fences the owner first and asks the commit package what
// is referenced before anything goes to the trash. A damaged entry is reported
// and never touched, and so is one of a newer format.
package journal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/clock"
)

const (
	// Home is the directory below which this program keeps its own state.
	Home filer.Path = "/etc/seaice"
	// Root is the directory of all journals.
	Root = Home + "/journal"
	// Maps is the directory of the movement maps. They are staged like data
	// files but lie outside every table.
	Maps = Home + "/maps"
	// Probes is where a filer's abilities are tried before it is trusted.
	Probes = Home + "/probe"

	// MaxSkew is how far the filer's clock and ours may be apart before nothing
	// destructive is done.
	MaxSkew = 5 * time.Minute

	// segmentsDir holds the segments of all runs of one table, so that listing
	// the heads costs the same however much the runs staged.
	segmentsDir = "segments"
	headSuffix  = ".json"
)

var (
	uuidForm  = regexp.MustCompile(`^[0-9a-f][0-9a-f-]{0,63}$`)
	runForm   = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)
	tokenForm = regexp.MustCompile(`^[0-9a-z]{8,32}$`)
)

// Store reads the journals of a filer and resolves them.
type Store struct {
	fl  filer.Filer
	clk clock.Clock
}

// New returns the journals kept in fl. clk is compared with the filer's clock
// before anything destructive; times in the journal are the filer's.
func New(fl filer.Filer, clk clock.Clock) *Store { return &Store{fl: fl, clk: clk} }

// Options describe a run.
type Options struct {
	// Table is the table the run works on and UUID its uuid.
	Table iceberg.TableID
	UUID  string
	// Op is the wire name of the operation.
	Op string
	// Run names the run, unique within the table: letters, digits, '-' and '_'.
	Run string
	// PlanDigest identifies the plan that is executed.
	PlanDigest string
	// Base is the metadata location the plan was made from.
	Base string
	// Lease is how long the run stays fenced without Renew. At least a second.
	Lease time.Duration
}

func (o *Options) check() error {
	o.UUID = strings.ToLower(o.UUID)
	switch {
	case !uuidForm.MatchString(o.UUID):
		return fault.New(fault.Unsupported, fmt.Sprintf("open a journal: table uuid %q is not a uuid", o.UUID))
	case !runForm.MatchString(o.Run):
		return fault.New(fault.Unsupported, fmt.Sprintf("open a journal: run %q is not a plain name", o.Run))
	case o.Op == "":
		return fault.New(fault.Unsupported, "open a journal: no operation named")
	case o.Lease < time.Second:
		return fault.New(fault.Unsupported, fmt.Sprintf("open a journal: lease %s is below a second", o.Lease))
	}
	if _, err := iceberg.ParseTableID(o.Table.String()); err != nil {
		return fault.In("open a journal", err)
	}
	return nil
}

// Open creates the entry of a new run before its first write. It refuses a
// filer without conditional updates, and a run name that is taken.
func (s *Store) Open(ctx context.Context, o Options) (*Run, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	caps, err := s.fl.Probe(ctx, Probes)
	if err != nil {
		return nil, fault.In("probe the filer", err)
	}
	if !caps.ConditionalUpdate {
		return nil, fault.New(fault.Unsupported, "open a journal: the filer does not honour conditional updates")
	}
	now, err := s.fl.Clock(ctx)
	if err != nil {
		return nil, fault.In("read the filer's clock", err)
	}
	r := newRun(s, owner, head{
		Format: format, Run: o.Run, Token: nonce(6), Table: o.Table, UUID: o.UUID, Op: o.Op,
		PlanDigest: o.PlanDigest, Base: o.Base, Phase: Open,
		Opened: now.UTC(), Expires: now.Add(o.Lease).UTC(), Lease: o.Lease,
	})
	if err := r.createHead(ctx); err != nil {
		return nil, fault.In("open journal "+r.path.String(), err)
	}
	return r, nil
}

// TrustedTime is the filer's time, refused as fault.Halt when it and ours are
// more than MaxSkew apart: ages cannot be trusted then, so nothing may be
// removed.
func TrustedTime(ctx context.Context, r filer.Reader, clk clock.Clock) (time.Time, error) {
	before := clk.Now()
	now, err := r.Clock(ctx)
	if err != nil {
		return time.Time{}, fault.In("read the filer's clock", err)
	}
	after := clk.Now()
	// The filer answered at some time between: the skew is the distance to that
	// interval, so a slow answer is not taken for a wrong clock.
	skew := max(before.Sub(now), now.Sub(after), 0)
	if skew > MaxSkew {
		return time.Time{}, fault.WithHint("set the clocks of the filers and of this machine by NTP",
			fault.New(fault.Halt, fmt.Sprintf("the filer's clock and ours are %s apart, more than %s", skew.Round(time.Second), MaxSkew)))
	}
	return now, nil
}

func tableDir(uuid string) filer.Path { return Root.Join(uuid) }

func headPath(uuid, run string) filer.Path { return tableDir(uuid).Join(run + headSuffix) }

func segmentPath(uuid, run string, n int) filer.Path {
	return tableDir(uuid).Join(segmentsDir, fmt.Sprintf("%s.%08d", run, n))
}

func nonce(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails: the runtime stops the program instead
	return hex.EncodeToString(b)
}

// Raw is a JSON document that the journal carries without looking into it.
type Raw = json.RawMessage

// ValidRun reports whether name can be the name of a run.
func ValidRun(name string) bool { return runForm.MatchString(name) }
