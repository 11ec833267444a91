package main

import (
	"context"
	"os"
	"sync"
)

// datasets are made when first asked for and kept until the program ends, so
// that benches of the same data do not make them again.
type datasets struct {
	mu   sync.Mutex
	dir  string
	made map[string]*dataset
}

var data datasets

func (d *datasets) get(ctx context.Context, s shape) (*dataset, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if set := d.made[s.name]; set != nil && len(set.files) == s.files && set.rows == int64(s.files)*int64(s.rows) {
		return set, nil
	}
	if d.dir == "" {
		dir, err := os.MkdirTemp("", "seaice-bench-data-")
		if err != nil {
			return nil, err
		}
		d.dir, d.made = dir, map[string]*dataset{}
	}
	set, err := s.make(ctx, d.dir)
	if err == nil {
		d.made[s.name] = set
	}
	return set, err
}

// remove deletes all of them.
func (d *datasets) remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir == "" {
		return nil
	}
	err := os.RemoveAll(d.dir)
	d.dir, d.made = "", nil
	return err
}
