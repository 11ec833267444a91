package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
)

func TestEveryKindHasItsExitCode(t *testing.T) {
	want := map[fault.Kind]int{
		fault.None:        0,
		fault.Transient:   1,
		fault.Canceled:    1,
		fault.Stale:       3,
		fault.TooLarge:    1,
		fault.Unsupported: 4,
		fault.Unknown:     6,
		fault.Corrupt:     5,
		fault.Halt:        1,
	}
	for k := fault.None; k.String() != "invalid"; k++ {
		code, ok := want[k]
		require.True(t, ok, "no exit code was decided for %s", k)
		var err error
		if k != fault.None {
			err = fmt.Errorf("plan: %w", fault.New(k, "x"))
		}
		require.Equal(t, code, exitCode(err), k)
	}
}

func TestExitCodeOfOtherErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"no kind", errors.New("x"), exitUnknown},
		{"usage", fmt.Errorf("a: %w", usage(errors.New("no such flag"))), exitUsage},
		{"usage wins over the kind inside", usage(fault.New(fault.Unsupported, "bad table name")), exitUsage},
		{"local", local(errors.New("broken pipe")), exitError},
		{"interrupted", context.Canceled, exitError},
		{"the worst of several", errors.Join(fault.New(fault.Stale, "a"), fault.New(fault.Corrupt, "b")), exitCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, exitCode(c.err)) })
	}
	require.NoError(t, usage(nil))
	require.NoError(t, local(nil))
}
