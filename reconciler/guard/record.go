package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// RecordFile is the name under which a pod finds the cluster's record.
const RecordFile = "record.json"

// Record is the part of a cluster's record that the guard rests on. It stays the same
// in every format, so that an old guard understands a new record. Pointers tell
// a field that is absent from one that is empty.
type Record struct {
	FormatVersion int                `json:"formatVersion"`
	Token         string             `json:"token"`
	ClusterID     *string            `json:"clusterID"`
	Members       *map[string]string `json:"members"`
}

// ParseRecord reads the core of a record of any format. Its errors say what the
// record lacks.
func ParseRecord(text []byte) (Record, error) {
	var core Record
	if err := json.Unmarshal(text, &core); err != nil {
		return core, fmt.Errorf("%s is not readable: %w", RecordFile, err)
	}
	switch {
	case core.FormatVersion < 1:
		return core, fmt.Errorf("%s has no formatVersion", RecordFile)
	case core.Token == "":
		return core, fmt.Errorf("%s has no token", RecordFile)
	case core.ClusterID == nil:
		return core, fmt.Errorf("%s has no field clusterID", RecordFile)
	case core.Members == nil:
		return core, fmt.Errorf("%s has no field members", RecordFile)
	case (*core.ClusterID == "") != (len(*core.Members) == 0):
		return core, fmt.Errorf("%s has cluster ID %q and %d members, but one comes with the other", RecordFile, *core.ClusterID, len(*core.Members))
	}
	return core, checkIDs(core)
}

// checkIDs checks that every ID is one that etcd can have given.
func checkIDs(core Record) error {
	ids := maps.Clone(*core.Members)
	if *core.ClusterID != "" {
		ids["the cluster"] = *core.ClusterID
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if id, err := strconv.ParseUint(ids[name], 16, 64); err != nil || id == 0 {
			return fmt.Errorf("%s: the ID %q of %s is not a hexadecimal number", RecordFile, ids[name], name)
		}
	}
	return nil
}
