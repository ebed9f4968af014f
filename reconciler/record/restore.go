package record

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/quorate/quorate/reconciler/backup/manifest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// Restore is the part of a record about the backup that the cluster has
// begun with. While the first member is being made, Recovering says more.
type Restore struct {
	// Restored is the restore; nil for a cluster that began empty. It stays, so that
	// the restore never happens again.
	Restored *Restored `json:"restored,omitempty"`
	// Claims is the prefix of the names of the members' volume claims; empty for "data".
	ClaimPrefix string `json:"claimPrefix,omitempty"`
	// Predecessors are the records of deleted clusters of this name whose place this
	// one has taken, oldest first: whose their volumes are, which are kept.
	Predecessors []Predecessor `json:"predecessors,omitempty"`
}

// Restored is one restore of a backup into this cluster.
type Restored struct {
	// Name is that of the EtcdRestore, SpecHash that of its spec, and SourceHash
	// that of what names the backup in it.
	Name       string `json:"name"`
	SpecHash   string `json:"specHash"`
	SourceHash string `json:"sourceHash"`
	// Object is the backup, its URL without the query; FromCluster, EtcdVersion and
	// Revision are what its manifest says.
	Object      string `json:"object"`
	FromCluster string `json:"fromCluster,omitempty"`
	EtcdVersion string `json:"etcdVersion"`
	Revision    int64  `json:"revision"`
	// Chosen describes the backup, and how many newer ones there were and whose.
	Chosen string `json:"chosen,omitempty"`
	// At is when clients could come; zero until then.
	At time.Time `json:"at,omitzero"`
}

// Predecessor is a deleted cluster of the same name.
type Predecessor struct {
	// Claims is the prefix of the names of its members' volume claims.
	ClaimPrefix string `json:"claimPrefix"`
	// Record is its whole record, unchanged.
	Record json.RawMessage `json:"record"`
	// At is when its place was taken.
	At time.Time `json:"at"`
}

// addTo adds the part to the record in the planner's words.
func (r Restore) addTo(p *state.Record) {
	p.ClaimPrefix = r.ClaimPrefix
	if w := r.Restored; w != nil {
		p.Restored = &state.Restored{Name: w.Name, SpecHash: w.SpecHash, SourceHash: w.SourceHash, Chosen: w.Chosen, Done: !w.At.IsZero()}
	}
}

// Claims is the prefix of the names of the members' volume claims.
func (r *Record) Claims() string {
	if r == nil {
		return naming.ClaimPrefix
	}
	return cmp.Or(r.ClaimPrefix, naming.ClaimPrefix)
}

// BegunBy reports whether the cluster was begun by that very restore; nil by none.
func (r *Record) BegunBy(a action.BeginRestore) bool {
	return r != nil && r.Restored != nil && r.Restored.Name == a.Restore && r.Restored.SpecHash == a.SpecHash
}

// NewRestore is the record of a cluster that begins with a backup.
func NewRestore(a action.BeginRestore, m manifest.Manifest, g Recovering, now time.Time) Record {
	r := New(g.Token)
	r.Founders = 1
	g.OneShot, g.Member, g.Since = "restore "+a.Restore, a.Member, now.UTC()
	g.Members = map[string]string{}
	r.Saw(g.Above)
	r.Recovering = &g
	r.Restored = &Restored{
		Name: a.Restore, SpecHash: a.SpecHash, SourceHash: a.SourceHash,
		Object: m.Object, FromCluster: m.ClusterID, EtcdVersion: m.EtcdVersion, Revision: m.Revision,
	}
	return r
}

// Succeed makes r the successor of a deleted cluster. The volumes of both are distinguished
// apart by their names, and what was known of the old one stays known.
func (r *Record) Succeed(was Record, suffix string, now time.Time) error {
	r.Predecessors = was.Predecessors
	was.Predecessors = nil
	text, err := json.Marshal(was)
	if err != nil {
		return err
	}
	r.Predecessors = append(r.Predecessors, Predecessor{ClaimPrefix: was.Claims(), Record: text, At: now.UTC()})
	r.Owner, r.Revision, r.ClaimPrefix = was.Owner, was.Revision+1, naming.ClaimPrefix+"-r"+suffix
	return nil
}

// EndRestore records that a restore is over.
func (r *Record) EndRestore(a action.EndRestore, now time.Time) bool {
	if r.Restored == nil || r.Restored.Name != a.Restore || r.Recovering != nil {
		return false
	}
	if r.Restored.At.IsZero() {
		w := *r.Restored
		w.SpecHash, w.At = a.SpecHash, now.UTC()
		r.Restored = &w
	}
	return true
}
