package rewrite

import "context"

// The places where tests break pages.
const (
	Made = faultMade
	Held = faultHeld
)

// Breaking lets f break the bytes of pages that are made or wait under ctx.
func Breaking(ctx context.Context, f func(at int, body []byte)) context.Context {
	return context.WithValue(ctx, breaking{}, func(p place, body []byte) { f(int(p), body) })
}
