package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
)

// stampKey is the attribute all changes are compared on. A stamp is
// "<n>-<writer>.<k>-<sum>": n counts the versions of the entry, writer and k
// name the write, and sum is the digest of the content, so that a truncated or
// altered entry is told from a whole one.
const stampKey = "seaice.journal.stamp"

const (
	mime = "application/json"
	// tries bounds how often one change is sent.
	tries = 6
	// pause is the first wait after a transient failure; it doubles.
	pause = 50 * time.Millisecond
)

func stamp(n int, writer string, k int, content []byte) string {
	return fmt.Sprintf("%d-%s.%d-%s", n, writer, k, digest(content))
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// parseStamp checks the stamp against the content and returns its version and
// writer.
func parseStamp(p filer.Path, e *filer.Entry, content []byte) (n int, writer string, err error) {
	parts := strings.Split(string(e.Extended[stampKey]), "-")
	if len(parts) != 3 {
		return 0, "", corrupt(p, fmt.Errorf("attribute %s is missing or malformed", stampKey))
	}
	n, err = strconv.Atoi(parts[0])
	if err != nil || n < 1 {
		return 0, "", corrupt(p, fmt.Errorf("attribute %s counts %q", stampKey, parts[0]))
	}
	if parts[2] != digest(content) {
		return 0, "", corrupt(p, errors.New("its content does not have the digest it was written with"))
	}
	writer, _, _ = strings.Cut(parts[1], ".")
	return n, writer, nil
}

// document is a stamped entry of the journal as read.
type document struct {
	entry   *filer.Entry
	content []byte
	n       int
	writer  string
}

// read returns the document of an entry that a Stat or a listing gave. The
// stamp and the content come from one look at the entry, or belong to no
// document at all.
func read(ctx context.Context, r filer.Reader, e *filer.Entry, limit int64) (document, error) {
	d := document{entry: e, content: e.PB.GetContent()}
	if e.IsDir {
		return d, corrupt(e.Path, errors.New("it is a directory"))
	}
	if e.Size > limit {
		return d, corrupt(e.Path, fmt.Errorf("it has %d bytes, more than %d", e.Size, limit))
	}
	// A newer program may stamp differently: its format is looked at first.
	if len(d.content) == 0 && e.Size > 0 {
		b, opened, err := filer.ReadAll(ctx, r, e.Path, limit)
		if err != nil {
			return d, fault.In("read journal "+e.Path.String(), err)
		}
		d.content, d.entry = b, opened
	}
	if err := checkFormat(e.Path, d.content); err != nil {
		return d, err
	}
	var err error
	d.n, d.writer, err = parseStamp(e.Path, d.entry, d.content)
	return d, err
}

func stat(ctx context.Context, r filer.Reader, p filer.Path, limit int64) (document, error) {
	e, err := r.Stat(ctx, p)
	if err != nil {
		return document{}, err
	}
	return read(ctx, r, e, limit)
}

// createHead makes the entry, exclusively. An entry that is there already is
// ours only if this writer stamped it.
func (r *Run) createHead(ctx context.Context) error {
	content, err := r.head.encode()
	if err != nil {
		return err
	}
	return r.create(ctx, r.path, content, maxHeadBytes, func(d document, mine bool) error {
		if !mine {
			return fault.Wrap(fault.Stale, "run "+r.id+" exists", filer.ErrExists)
		}
		r.base = d.entry
		return nil
	})
}

// create puts content at p exclusively until it is known whose document is
// there, and hands that to seen.
func (r *Run) create(ctx context.Context, p filer.Path, content []byte, limit int64, seen func(d document, mine bool) error) error {
	r.writes++
	st := stamp(1, r.writer, r.writes, content)
	var last error
	for try := range tries {
		e, err := r.s.fl.Put(ctx, p, content, filer.CreateOptions{Mime: mime, Extended: map[string][]byte{stampKey: []byte(st)}})
		if err == nil {
			return seen(document{entry: e, content: content, n: 1, writer: r.writer}, true)
		}
		last = err
		if !repeatable(err) {
			return err
		}
		d, err := stat(ctx, r.s.fl, p, limit)
		switch {
		case err == nil:
			return seen(d, string(d.entry.Extended[stampKey]) == st)
		case filer.NotFound(err):
			// Not there: the same exclusive call may be sent again, whatever
			// becomes of the one whose answer was lost.
		case fault.Is(err, fault.Corrupt), fault.Is(err, fault.Unsupported):
			return err
		default:
			last = errors.Join(last, err)
		}
		if err := r.s.wait(ctx, try); err != nil {
			return errors.Join(last, err)
		}
	}
	return last
}

// change applies fn to the head by compare-and-swap. fn sees the newest head,
// may be called several times and must be idempotent; it returns whether there
// is anything to write.
func (r *Run) change(ctx context.Context, fn func(h *head) (bool, error)) error {
	var last error
	var sent string
	for try := range tries {
		if r.base == nil || last != nil {
			if err := r.reload(ctx); err != nil {
				if last == nil || !fault.Is(err, fault.Transient) {
					return errors.Join(last, err)
				}
				last = errors.Join(last, err)
				if err := r.s.wait(ctx, try); err != nil {
					return errors.Join(last, err)
				}
				continue
			}
			if sent != "" && string(r.base.Extended[stampKey]) == sent {
				return nil // the answer was lost, not the change
			}
		}
		h := r.head.clone()
		dirty, err := fn(&h)
		if err != nil {
			return err
		}
		if !dirty {
			return nil
		}
		content, err := h.encode()
		if err != nil {
			return err
		}
		r.writes++
		was := string(r.base.Extended[stampKey])
		sent = stamp(r.version+1, r.writer, r.writes, content)
		e, err := r.s.fl.Update(ctx, filer.Update{
			Base: r.base, Content: content,
			Expect: map[string][]byte{stampKey: []byte(was)}, Set: map[string][]byte{stampKey: []byte(sent)},
		})
		if err == nil {
			r.base, r.head, r.version = e, h, r.version+1
			return nil
		}
		last = err
		switch {
		case filer.NotFound(err):
			return r.fence(fault.Wrap(fault.Stale, "journal "+r.path.String()+" is gone", err))
		case errors.Is(err, filer.ErrPrecondition):
			continue
		case !repeatable(err):
			return err
		}
		if err := r.s.wait(ctx, try); err != nil {
			return errors.Join(last, err)
		}
	}
	return last
}

// reload reads the head. An owner that finds itself fenced learns it here.
func (r *Run) reload(ctx context.Context) error {
	d, err := stat(ctx, r.s.fl, r.path, maxHeadBytes)
	if filer.NotFound(err) {
		return r.fence(fault.Wrap(fault.Stale, "journal "+r.path.String()+" is gone", err))
	}
	if err != nil {
		return err
	}
	h, err := decodeHead(r.path, d.content)
	if err != nil {
		return err
	}
	if h.Token != r.token {
		return r.fence(fault.New(fault.Stale, "journal "+r.path.String()+" belongs to another run"))
	}
	r.base, r.head, r.version = d.entry, h, d.n
	if r.role == owner && h.Phase != Open && d.writer != r.writer {
		return r.fence(fault.New(fault.Stale, fmt.Sprintf("run %s was revoked, its journal is %s", h.Run, h.Phase)))
	}
	return nil
}

// repeatable reports whether a write that failed with err may be looked at and
// sent again: it did not happen, or nobody knows.
func repeatable(err error) bool {
	switch fault.Of(err) {
	case fault.Transient, fault.Unknown, fault.Stale, fault.Canceled:
		return true
	}
	return false
}

func (s *Store) wait(ctx context.Context, try int) error {
	if err := s.clk.Sleep(ctx, pause<<try); err != nil {
		return fault.Wrap(fault.Canceled, "wait", err)
	}
	return nil
}
