package iceberg

import (
	"fmt"
	"strings"

	"github.com/seaice/seaice/fault"
	"github.com/seaice/seaice/iceberg/rawjson"
)

func (p *parser) snapshots() error {
	return p.each("snapshots", func(raw []byte) error {
		s, err := parseSnapshot(raw, p.m.FormatVersion)
		p.m.Snapshots = append(p.m.Snapshots, s)
		return err
	})
}

func parseSnapshot(raw []byte, version int) (Snapshot, error) {
	s := Snapshot{raw: raw}
	seen := 0
	err := rawjson.EachMember(raw, func(key, value []byte) error {
		if rawjson.IsNull(value) {
			return nil
		}
		if err := s.member(key, value, version, &seen); err != nil {
			return inField(string(key), err)
		}
		return nil
	})
	const needed = 2 // snapshot-id and timestamp-ms
	switch {
	case err != nil:
		return s, err
	case seen != needed:
		return s, fault.New(fault.Corrupt, fmt.Sprintf("snapshot %d lacks its id or its time", s.ID))
	case s.ID == -1:
		return s, fault.New(fault.Corrupt, "snapshot id -1 means that there is none")
	case s.ManifestList == "" && s.Manifests == nil:
		return s, fault.New(fault.Corrupt, fmt.Sprintf("snapshot %d names neither a manifest list nor manifests", s.ID))
	case s.ManifestList == "" && version > 2:
		return s, fault.New(fault.Corrupt, fmt.Sprintf("snapshot %d names no manifest list", s.ID))
	}
	return s, nil
}

func (s *Snapshot) member(key, value []byte, version int, seen *int) error {
	var n int64
	var err error
	switch string(key) {
	case "snapshot-id":
		*seen++
		n, err = rawjson.Int64(value)
		s.ID = SnapshotID(n)
	case "timestamp-ms":
		*seen++
		s.TimestampMs, err = rawjson.Int64(value)
	case "parent-snapshot-id":
		if n, err = rawjson.Int64(value); err == nil && n != -1 {
			parent := SnapshotID(n)
			s.ParentID = &parent
		}
	case "sequence-number":
		if n, err = rawjson.Int64(value); err == nil && n < 0 {
			err = fault.New(fault.Corrupt, fmt.Sprintf("%d is negative", n))
		}
		if version > 1 {
			s.SequenceNumber = SeqNum(n)
		}
	case "manifest-list":
		s.ManifestList, err = rawjson.String(value)
	case "manifests":
		s.Manifests = []string{}
		err = rawjson.EachElement(value, func(_ int, value []byte) error {
			path, err := rawjson.String(value)
			s.Manifests = append(s.Manifests, path)
			return err
		})
	case "schema-id":
		var id int32
		id, err = rawjson.Int32(value)
		s.SchemaID = (*SchemaID)(&id)
	case "first-row-id":
		s.FirstRowID, err = rowCount(value)
	case "added-rows":
		s.AddedRows, err = rowCount(value)
	case "key-id":
		s.KeyID, err = rawjson.String(value)
	case "summary":
		s.summary = value
		err = rawjson.EachMember(value, func(key, value []byte) error {
			if string(key) != "operation" {
				return nil
			}
			var err error
			s.Operation, err = rawjson.String(value)
			return inField("operation", err)
		})
	}
	return err
}

func rowCount(raw []byte) (*int64, error) {
	n, err := rawjson.Int64(raw)
	if err == nil && n < 0 {
		err = fault.New(fault.Corrupt, fmt.Sprintf("%d is negative", n))
	}
	return &n, err
}

func (p *parser) logs() error {
	m := p.m
	err := p.each("snapshot-log", func(raw []byte) error {
		var e SnapshotLogEntry
		err := members(raw, func(key string, value []byte) (err error) {
			switch key {
			case "snapshot-id":
				var n int64
				n, err = rawjson.Int64(value)
				e.SnapshotID = SnapshotID(n)
			case "timestamp-ms":
				e.TimestampMs, err = rawjson.Int64(value)
			}
			return err
		}, "snapshot-id", "timestamp-ms")
		m.SnapshotLog = append(m.SnapshotLog, e)
		return err
	})
	if err != nil {
		return err
	}
	return p.each("metadata-log", func(raw []byte) error {
		var e MetadataLogEntry
		err := members(raw, func(key string, value []byte) (err error) {
			switch key {
			case "metadata-file":
				e.MetadataFile, err = rawjson.String(value)
			case "timestamp-ms":
				e.TimestampMs, err = rawjson.Int64(value)
			}
			return err
		}, "metadata-file", "timestamp-ms")
		m.MetadataLog = append(m.MetadataLog, e)
		return err
	})
}

// members calls see with the members of an object that are not null, and then
// checks that the needed ones were there.
func members(raw []byte, see func(key string, value []byte) error, needed ...string) error {
	found := uint(0)
	err := rawjson.EachMember(raw, func(key, value []byte) error {
		if rawjson.IsNull(value) {
			return nil
		}
		for i, name := range needed {
			if name == string(key) {
				found |= 1 << i
			}
		}
		if err := see(string(key), value); err != nil {
			return inField(string(key), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, name := range needed {
		if found&(1<<i) == 0 {
			return missing(name)
		}
	}
	return nil
}

func (p *parser) refs() error {
	m := p.m
	current := int64(-1)
	if err := p.number("current-snapshot-id", false, &current); err != nil {
		return err
	}
	if current != -1 {
		id := SnapshotID(current)
		m.CurrentSnapshotID = &id
		if _, ok := m.Snapshot(id); !ok {
			return inField("current-snapshot-id", fault.New(fault.Corrupt, fmt.Sprintf("there is no snapshot %d", id)))
		}
	}
	if raw, ok := p.fields["refs"]; ok {
		err := rawjson.EachMember(raw, func(key, value []byte) error {
			ref, err := parseRef(value)
			if err != nil {
				return fault.In(fmt.Sprintf("ref %q", key), err)
			}
			if ref.SnapshotID != -1 { // -1 means none, as in current-snapshot-id
				m.Refs[string(key)] = ref
			}
			return nil
		})
		if err != nil {
			return inField("refs", err)
		}
	}
	return p.verifyRefs()
}

func (p *parser) verifyRefs() error {
	m := p.m
	for name, ref := range m.Refs {
		if _, ok := m.Snapshot(ref.SnapshotID); !ok {
			return fault.New(fault.Corrupt, fmt.Sprintf("ref %q names snapshot %d, which does not exist", name, ref.SnapshotID))
		}
	}
	main, ok := m.Refs[MainBranch]
	switch {
	case ok && main.Type != Branch:
		return fault.New(fault.Corrupt, "ref \"main\" is not a branch")
	case ok && m.CurrentSnapshotID == nil:
		return fault.New(fault.Corrupt, fmt.Sprintf("ref \"main\" names snapshot %d, but there is no current snapshot", main.SnapshotID))
	case ok && main.SnapshotID != *m.CurrentSnapshotID:
		return fault.New(fault.Corrupt, fmt.Sprintf("ref \"main\" names snapshot %d, but the current one is %d", main.SnapshotID, *m.CurrentSnapshotID))
	case !ok && m.CurrentSnapshotID != nil:
		m.Refs[MainBranch] = Ref{SnapshotID: *m.CurrentSnapshotID, Type: Branch}
	}
	return nil
}

func parseRef(raw []byte) (Ref, error) {
	var r Ref
	err := members(raw, func(key string, value []byte) (err error) {
		var n int64
		switch key {
		case "snapshot-id":
			n, err = rawjson.Int64(value)
			r.SnapshotID = SnapshotID(n)
		case "type":
			var text string
			text, err = rawjson.String(value)
			r.Type = RefType(strings.ToLower(text))
		case "min-snapshots-to-keep":
			r.MinSnapshotsToKeep, err = retention(value)
		case "max-snapshot-age-ms":
			r.MaxSnapshotAgeMs, err = retention(value)
		case "max-ref-age-ms":
			r.MaxRefAgeMs, err = retention(value)
		}
		return err
	}, "snapshot-id", "type")
	return r, err
}

func retention(raw []byte) (*int64, error) {
	n, err := rawjson.Int64(raw)
	if err == nil && n <= 0 {
		err = fault.New(fault.Corrupt, fmt.Sprintf("%d is not positive", n))
	}
	return &n, err
}

func (p *parser) files() error {
	m := p.m
	for key, to := range map[string]*[]StatisticsFile{"statistics": &m.Statistics, "partition-statistics": &m.PartitionStatistics} {
		err := p.each(key, func(raw []byte) error {
			s, err := parseStatistics(raw)
			*to = append(*to, s)
			return err
		})
		if err != nil {
			return err
		}
	}
	return p.each("encryption-keys", func(raw []byte) error {
		return members(raw, func(key string, value []byte) error {
			if key != "key-id" {
				return nil
			}
			id, err := rawjson.String(value)
			m.EncryptionKeyIDs = append(m.EncryptionKeyIDs, id)
			return err
		}, "key-id")
	})
}

func parseStatistics(raw []byte) (StatisticsFile, error) {
	s := StatisticsFile{raw: raw}
	err := members(raw, func(key string, value []byte) (err error) {
		var n int64
		switch key {
		case "snapshot-id":
			n, err = rawjson.Int64(value)
			s.SnapshotID = SnapshotID(n)
		case "statistics-path":
			s.Path, err = rawjson.String(value)
		case "file-size-in-bytes":
			s.SizeBytes, err = rawjson.Int64(value)
		case "key-metadata":
			s.KeyMetadata = true
		}
		return err
	}, "snapshot-id", "statistics-path", "file-size-in-bytes")
	return s, err
}

// verify looks for contradictions between fields.
func (p *parser) verify() error {
	m := p.m
	for i := range m.Snapshots {
		s := &m.Snapshots[i]
		if s.SequenceNumber > m.LastSequenceNumber {
			return fault.New(fault.Corrupt, fmt.Sprintf("snapshot %d has sequence number %d, above the table's last one %d",
				s.ID, s.SequenceNumber, m.LastSequenceNumber))
		}
	}
	return m.verifyAncestry()
}

// verifyAncestry finds a snapshot that is its own ancestor. Each chain is
// followed until it meets one that was followed before.
func (m *Metadata) verifyAncestry() error {
	chain := make([]int, len(m.Snapshots)) // the chain that visited a snapshot, 0 is none
	for start := range m.Snapshots {
		for at := start; ; {
			if chain[at] == start+1 {
				return fault.New(fault.Corrupt, fmt.Sprintf("snapshot %d is its own ancestor", m.Snapshots[at].ID))
			}
			if chain[at] != 0 {
				break
			}
			chain[at] = start + 1
			parent := m.Snapshots[at].ParentID
			if parent == nil {
				break
			}
			next, ok := m.snapshots[*parent]
			if !ok {
				break
			}
			at = next
		}
	}
	return nil
}
