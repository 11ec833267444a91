package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOfTakesTheWorst(t *testing.T) {
	stale := New(Stale, "head moved")
	corrupt := New(Corrupt, "bad magic")
	for _, c := range []struct {
		name string
		err  error
		want Kind
	}{
		{"nil", nil, None},
		{"plain", errors.New("x"), Unknown},
		{"wrapped", fmt.Errorf("read: %w", stale), Stale},
		{"joined", errors.Join(stale, corrupt, nil), Corrupt},
		{"joined inside", fmt.Errorf("run: %w", errors.Join(stale, errors.New("x"))), Unknown},
		{"outermost decides", Wrap(Corrupt, "manifest of head", stale), Corrupt},
		{"kept by In", In("plan", stale), Stale},
		{"kept by hint", WithHint("look", corrupt), Corrupt},
		{"canceled", fmt.Errorf("x: %w", context.Canceled), Canceled},
		{"deadline", context.DeadlineExceeded, Canceled},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Of(c.err)) })
	}
}

func TestNilStaysNil(t *testing.T) {
	require.NoError(t, Wrap(Halt, "x", nil))
	require.NoError(t, In("x", nil))
	require.NoError(t, WithHint("x", nil))
}

func TestMessageShowsEveryHint(t *testing.T) {
	err := WithHint("run seaice check", In("plan compact", WithHint("see the journal", New(Stale, "head moved"))))
	require.Equal(t, "plan compact: head moved\nhint: run seaice check\nhint: see the journal", Message(err))
}

func TestKindText(t *testing.T) {
	for k := None; k <= Halt; k++ {
		b, err := json.Marshal(k)
		require.NoError(t, err)
		var back Kind
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, k, back)
	}
	var k Kind
	require.Error(t, json.Unmarshal([]byte(`"fine"`), &k))
}
