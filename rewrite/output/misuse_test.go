package output_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/encode"
	"github.com/seaice/seaice/rewrite/format"
	"github.com/seaice/seaice/rewrite/output"
)

// TestMistakesOfTheCallerAreHalted: none of them may make a file.
func TestMistakesOfTheCallerAreHalted(t *testing.T) {
	s := schemaOf(t, leafOf("a", format.Int32, format.Required), leafOf("b", format.Int32, format.Required))
	plain := encode.Page{Header: format.PageHeader{Type: format.DataPage, Values: 1, UncompressedSize: 4, CompressedSize: 4}, Body: make([]byte, 4)}
	begin := func() (*output.File, *output.Group) {
		f, err := output.NewFile(&bytes.Buffer{}, s, output.Options{CreatedBy: createdBy})
		require.NoError(t, err)
		g, err := f.BeginGroup()
		require.NoError(t, err)
		return f, g
	}
	for name, do := range map[string]func(*output.Group, *output.Chunk) error{
		"codes without a dictionary": func(_ *output.Group, c *output.Chunk) error {
			p := plain
			p.Header.Encoding = format.RLEDictionary
			return c.Page(p)
		},
		"a body of another length": func(_ *output.Group, c *output.Chunk) error {
			p := plain
			p.Body = p.Body[:3]
			return c.Page(p)
		},
		"a dictionary among data pages": func(_ *output.Group, c *output.Chunk) error {
			if err := c.Page(plain); err != nil {
				return err
			}
			return c.Dictionary(encode.Page{Header: format.PageHeader{Type: format.DictionaryPage}})
		},
		"no pages": func(_ *output.Group, c *output.Chunk) error { return c.Close() },
		"columns out of turn": func(g *output.Group, c *output.Chunk) error {
			_, err := g.Column(1, format.Zstd)
			return err
		},
		"columns missing": func(g *output.Group, c *output.Chunk) error {
			if err := errors.Join(c.Page(plain), c.Close()); err != nil {
				return err
			}
			return g.Close(1)
		},
		"rows that differ": func(g *output.Group, c *output.Chunk) error {
			if err := errors.Join(c.Page(plain), c.Close()); err != nil {
				return err
			}
			c, err := g.Column(1, format.Zstd)
			if err := errors.Join(err, c.Page(plain), c.Page(plain), c.Close()); err != nil {
				return err
			}
			return g.Close(1)
		},
	} {
		f, g := begin()
		c, err := g.Column(0, format.Zstd)
		require.NoError(t, err)
		require.Equal(t, fault.Halt, fault.Of(do(g, c)), name)
		_, err = f.Close()
		require.Error(t, err, name)
	}
}

type failing struct{ after int }

func (w *failing) Write(b []byte) (int, error) {
	if w.after -= len(b); w.after < 0 {
		return 0, fault.New(fault.Transient, "the disk is away")
	}
	return len(b), nil
}

func TestErrorsOfTheSinkKeepTheirKind(t *testing.T) {
	s := schemaOf(t, leafOf("a", format.Int64, format.Required))
	b := anyRows(&random{}, s.Leaves[0], 50_000, 1<<30, 0)
	for _, after := range []int{0, 100_000} {
		f, err := output.NewFile(&failing{after}, s, output.Options{CreatedBy: createdBy})
		require.NoError(t, err)
		g, err := f.BeginGroup()
		require.NoError(t, err)
		c, err := g.Column(0, format.Uncompressed)
		require.NoError(t, err)
		e, err := encode.NewEncoder(s.Leaves[0], encode.Options{}, c)
		require.NoError(t, err)
		require.Equal(t, fault.Transient, fault.Of(errors.Join(e.Write(&b), e.Close())))
		_, err = f.Close()
		require.Equal(t, fault.Transient, fault.Of(err))
	}
}
