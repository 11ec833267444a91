package filertest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/filer/filertest"
)

var (
	pointer = root.Join("pointer")
	one     = root.Join("one")
	two     = root.Join("two")
)

// swing is a small commit: write the new file, then swing the pointer to it.
// The careless one removes what it wrote on any error.
func swing(careless bool) func(t testing.TB, f *filertest.Filer) error {
	return func(t testing.TB, f *filertest.Filer) error {
		ctx := t.Context()
		base, err := f.Stat(ctx, pointer)
		if err != nil {
			return err
		}
		if string(base.Extended["to"]) == "two" {
			return nil
		}
		if _, err := f.Put(ctx, two, []byte("2"), filer.CreateOptions{Replace: true}); err != nil {
			return err
		}
		_, err = f.Update(ctx, filer.Update{Base: base, Expect: filer.Expectation(base, "peer"), Set: map[string][]byte{"to": []byte("two")}})
		if err != nil && careless {
			_ = f.Delete(ctx, two, filer.Guard{})
		}
		return err
	}
}

// broken says what is wrong with the state, or nothing.
func broken(t testing.TB, f *filertest.Filer) string {
	e, err := f.Stat(t.Context(), pointer)
	require.NoError(t, err)
	to := root.Join(string(e.Extended["to"]))
	if !f.Exists(to) {
		return fmt.Sprintf("the pointer names %s, which is gone", to)
	}
	return ""
}

func startSwing(_ testing.TB, f *filertest.Filer) {
	f.PutFile(one, []byte("1"))
	f.PutFile(pointer, nil)
	f.SetAttributes(pointer, map[string][]byte{"to": []byte("one")})
}

func TestEveryCallPassesASafeCommit(t *testing.T) {
	safe := swing(false)
	var runs []string
	tally := filertest.EveryCall(t, filertest.Scenario{
		Start: startSwing, Run: safe, Recover: safe, Deep: true,
		Verify: func(t testing.TB, f *filertest.Filer, in filertest.Injection) {
			require.Empty(t, broken(t, f))
			e, err := f.Stat(t.Context(), pointer)
			require.NoError(t, err)
			require.Equal(t, "two", string(e.Extended["to"]), "recovery finished the work")
			runs = append(runs, in.String())
		},
	})
	require.Equal(t, 3, tally.Calls, "stat, put, update")
	require.Equal(t, tally.Runs, tally.Fired)
	plain := []string{
		"undisturbed", "002-put-before", "002-put-after", "002-put-ambiguous-lost", "002-put-ambiguous-done",
	}
	require.Equal(t, plain, runs[:5])
	var deep int
	for _, r := range runs {
		require.NotContains(t, r, "stat", "reads do not fail unless asked to")
		if strings.Contains(r, "crash") {
			deep++
		}
	}
	// A crash at put leaves put and update to be crashed again, two ways each;
	// one before update as well; one after update leaves nothing to write.
	require.Equal(t, 4+4+4+4+0, deep)
	require.Len(t, runs, tally.Runs+1)
}

// The driver finds the classic mistake (F115): cleaning up after an answer that
// left open whether the commit happened.
func TestF115EveryCallFindsCarelessCleanup(t *testing.T) {
	var found []string
	filertest.EveryCall(t, filertest.Scenario{
		Start: startSwing, Run: swing(true), Reads: true,
		Verify: func(t testing.TB, f *filertest.Filer, in filertest.Injection) {
			if msg := broken(t, f); msg != "" {
				found = append(found, in.String())
				require.True(t, fault.Is(in.Err, fault.Unknown))
			}
		},
	})
	require.Equal(t, []string{"003-update-after", "003-update-ambiguous-done"}, found)
}

func TestEveryCallChooses(t *testing.T) {
	var got []string
	tally := filertest.EveryCall(t, filertest.Scenario{
		Start: startSwing, Run: swing(false), Reads: true,
		Modes: []filertest.Mode{filertest.BeforeEffect},
		Pick:  func(c filertest.Call) bool { return c.Op != filertest.OpPut },
		Verify: func(_ testing.TB, _ *filertest.Filer, in filertest.Injection) {
			got = append(got, in.String())
			require.Equal(t, in.Call.Op != "", in.Err != nil)
		},
	})
	require.Equal(t, []string{"undisturbed", "001-stat-before", "003-update-before"}, got)
	require.Equal(t, filertest.Tally{Calls: 3, Runs: 2, Fired: 2}, tally)
}

func TestEveryGap(t *testing.T) {
	stale := 0
	tally := filertest.EveryGap(t, filertest.Scenario{
		Start: startSwing, Run: swing(false),
		Verify: func(t testing.TB, f *filertest.Filer, in filertest.Injection) {
			require.Empty(t, broken(t, f))
			e, err := f.Stat(t.Context(), pointer)
			require.NoError(t, err)
			require.Equal(t, in.Peer, len(e.Extended["peer"]) > 0, "the peer's update is never lost")
			if fault.Is(in.Err, fault.Stale) {
				stale++
			}
		},
	}, func(_ testing.TB, peer *filertest.Filer) {
		peer.SetAttributes(pointer, map[string][]byte{"peer": []byte("was here")})
	})
	require.Equal(t, filertest.Tally{Calls: 3, Runs: 3, Fired: 3}, tally)
	require.Equal(t, 2, stale, "before put and before update")
}
