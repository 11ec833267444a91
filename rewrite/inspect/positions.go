package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/rewrite/column"
	"github.com/seaice/seaice/rewrite/deletes"
	"github.com/seaice/seaice/rewrite/format"
)

// rowBytes is about what a batch of one column has.
const rowBytes = 64 << 10

// Positions gives every row of a position delete file to see, in order. The path
// is valid during the call. Null in either column is fault.Corrupt (F021), a page
// above the file's limit fault.TooLarge.
func Positions(f *column.File, see func(path []byte, pos int64) error) error {
	path, pos, err := deletes.PositionColumns(f.Footer().Schema)
	if err != nil {
		return err
	}
	paths, places := cursor{r: f.Reader(path.Leaf)}, cursor{r: f.Reader(pos.Leaf)}
	defer paths.r.Close()
	defer places.r.Close()
	for range f.Footer().Rows {
		p, err := paths.next(path)
		if err != nil {
			return err
		}
		n, err := places.next(pos)
		if err != nil {
			return err
		}
		if err := see(p, int64(binary.LittleEndian.Uint64(n))); err != nil {
			return err
		}
	}
	return nil
}

// cursor goes over the values of a column that has one in each row.
type cursor struct {
	r     *column.Reader
	batch column.Batch
	at    int
}

func (c *cursor) next(leaf *format.Node) ([]byte, error) {
	if c.at == c.batch.Values.Len() {
		err := c.r.Next(&c.batch, rowBytes)
		if errors.Is(err, io.EOF) {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("column %s has fewer values than rows", leaf))
		}
		if err != nil {
			return nil, err
		}
		if n := c.batch.Values.Len(); n < c.batch.Levels || n == 0 {
			return nil, fault.New(fault.Corrupt, fmt.Sprintf("a row has a null %s", leaf))
		}
		c.at = 0
	}
	c.at++
	return c.batch.Values.At(c.at - 1), nil
}
