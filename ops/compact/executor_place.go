package compact

import (
	"fmt"
	"strings"

	"github.com/twmb/murmur3"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/filer"
	"github.com/seaice/seaice/iceberg"
)

// Table properties that say where data files go (Iceberg configuration, "Write
// properties"), and whether hashed directories come before partitions.
const (
	propObjects     = "write.object-storage.enabled"
	propPartitioned = "write.object-storage.partitioned-paths"
)

// placement knows the table's location style.
type placement struct {
	// data is the directory of the data files.
	data filer.Path
	// hashed: files are spread over directories by a hash of their name, as
	// Iceberg's object store layout does; partitioned: the directories of the
	// partition follow.
	hashed, partitioned bool
	// context is put between the hash and the name when the directory is not
	// below the table, so that tables that share it stay apart.
	context string
}

func newPlacement(v *iceberg.View) (*placement, error) {
	p := &placement{data: v.Locations.Data()}
	if v.Locations.Foreign(p.data) {
		return nil, fault.New(fault.Unsupported, fmt.Sprintf("data files of the table go to %s, outside of its bucket", p.data))
	}
	props := v.Metadata.Properties
	p.hashed = strings.EqualFold(props[propObjects], "true")
	p.partitioned = !strings.EqualFold(props[propPartitioned], "false")
	if !p.hashed {
		return p, nil
	}
	table, err := v.Locations.Resolve(v.Metadata.Location)
	if err != nil {
		return nil, fault.In("find the table's location", err)
	}
	if !p.data.Within(table) {
		p.context = table.Name()
		if dir := table.Dir(); dir != "/" {
			p.context = dir.Name() + "/" + p.context
		}
	}
	return p, nil
}

// file is where the data file of a name goes.
func (p *placement) file(t *iceberg.PartitionType, tuple iceberg.Tuple, name string) filer.Path {
	dir := ""
	if t != nil {
		dir = t.Dir(tuple)
	}
	if !p.hashed {
		if dir == "" {
			return p.data.Join(name)
		}
		return p.data.Join(dir, name)
	}
	if p.partitioned && dir != "" {
		name = dir + "/" + name
	}
	hash := spread(name)
	switch {
	case p.context != "":
		return p.data.Join(hash, p.context, name)
	case p.partitioned:
		return p.data.Join(hash, name)
	}
	return p.data.Join(hash + "-" + name)
}

// spread are the directories of a name in the object store layout: 20 bits of a
// hash, four to a directory for three levels, the rest in a fourth.
func spread(name string) string {
	bits := fmt.Sprintf("%020b", murmur3.Sum32([]byte(name))&(1<<20-1))
	return bits[:4] + "/" + bits[4:8] + "/" + bits[8:12] + "/" + bits[12:]
}
