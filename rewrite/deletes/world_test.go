package deletes_test

import gocontext "context"

// context is for tests that have no testing.T at hand, as properties.
func context() gocontext.Context { return gocontext.Background() }
