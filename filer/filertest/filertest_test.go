package filertest_test

import (
	"testing"

	"github.com/seaice/seaice/filer/filertest"
)

func TestSuiteOnFake(t *testing.T) {
	filertest.Suite(t, func(*testing.T) filertest.Env {
		f := filertest.New(filertest.Options{})
		return filertest.Env{Filer: f, Root: "/buckets/lake/ns/t", Other: "/buckets/other/x"}
	})
}
