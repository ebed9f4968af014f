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
	// Revision rises with every change of the record; 0 in records that were
	// written before there was one.
	Revision int64 `json:"revision"`
	// Joining is the member that is being added, nil when there is none.
	Joining *Joining `json:"joining"`
	// Recovering is a recovery under way, nil when there is none, and Recovered are
	// those that are over.
	Recovering *Recovery  `json:"recovering"`
	Recovered  []Recovery `json:"recovered"`
	// Floors are how far the logs of members go at least, by name.
	Floors map[string]Floor `json:"floors"`
}

// Floor is what a member has written to its log for certain: its volume is never older.
type Floor struct {
	// ID of the member in hexadecimal: the floor is nobody's who has another one.
	ID string `json:"id"`
	// Term and Index are raft's.
	Term  uint64 `json:"term"`
	Index uint64 `json:"index"`
}

// Recovery is the end of one incarnation of the cluster, which lost its quorum,
// and the beginning of another.
type Recovery struct {
	// ClusterID is that of the lost cluster, and Token its token.
	ClusterID string `json:"clusterID"`
	Token     string `json:"token"`
}

// stopped reports whether no member may start, because the cluster is going
// from one incarnation to the next, or its first volume waits for a backup.
func (r Record) stopped() bool {
	return r.Recovering != nil && r.Recovering.ClusterID == *r.ClusterID
}

// way is where a stopped cluster is going.
func (r Record) way() string {
	if !r.formed() {
		return "the cluster is being restored from a backup"
	}
	return "cluster " + *r.ClusterID + " is being recovered"
}

// lost reports whether a token is that of an incarnation that was lost.
func (r Record) lost(token string) bool {
	return token != r.Token && slices.ContainsFunc(r.Recovered, func(g Recovery) bool { return g.Token == token })
}

// Joining is a member that joins.
type Joining struct {
	Member string `json:"member"`
	// ID is empty until etcd has added the member.
	ID string `json:"id"`
	// Promoting says that it may be a voter already.
	Promoting bool `json:"promoting"`
}

// formed reports whether the cluster has ever had a quorum.
func (r Record) formed() bool { return *r.ClusterID != "" }

// name is what tells this cluster from another one, for messages.
func (r Record) name() string {
	if !r.formed() {
		return "cluster token " + r.Token
	}
	return "cluster " + *r.ClusterID + " of token " + r.Token
}

// ownsLog reports whether a log is of this cluster, and of no other member than the
// one of that name: its ID is that member's, or unused.
func (r Record) ownsLog(log *identity, member string) bool {
	if log == nil || !sameID(log.cluster, *r.ClusterID) {
		return false
	}
	if j := r.Joining; j != nil && j.Member != member && sameID(log.member, j.ID) {
		return false
	}
	for name, id := range *r.Members {
		if name != member && sameID(log.member, id) {
			return false
		}
	}
	return true
}

// joins reports whether the member is the one that is being added.
func (r Record) joins(member string) bool {
	return r.formed() && r.Joining != nil && r.Joining.Member == member && (*r.Members)[member] == ""
}

// expects reports whether the member may start on an empty volume in a cluster that
// has formed: etcd has added it and it does not vote yet.
func (r Record) expects(member string) bool {
	return r.joins(member) && r.Joining.ID != "" && !r.Joining.Promoting
}

// ParseRecord reads the core of a record of any format. Its errors tell what the
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
	if core.Joining != nil && core.Joining.ID != "" {
		ids["the joining member"] = core.Joining.ID
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		if id, err := strconv.ParseUint(ids[name], 16, 64); err != nil || id == 0 {
			return fmt.Errorf("%s: the ID %q of %s is not a hexadecimal number", RecordFile, ids[name], name)
		}
	}
	return nil
}
