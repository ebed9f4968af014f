package record

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/backup/manifest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// Recovery is the part of a record about a lost quorum.
type Recovery struct {
	// Recovering is the recovery under way, nil when there is none.
	Recovering *Recovering `json:"recovering,omitempty"`
	// Recovered are the recoveries that are over, oldest first: none of them
	// happens again, and data of these incarnations is kept when a volume is used
	// again.
	Recovered []Recovered `json:"recovered,omitempty"`
	// RefusedRecovery is one that stood in Git while the cluster had a quorum.
	RefusedRecovery string `json:"refusedRecovery,omitempty"`
}

// Recovering is a recovery under way.
type Recovering struct {
	// OneShot describes what Git asked for.
	OneShot string `json:"oneShot"`
	// ClusterID and FormerToken are those of the lost cluster.
	ClusterID   string `json:"clusterID"`
	FormerToken string `json:"formerToken"`
	// NewClusterID and Token are those of the recovered cluster.
	NewClusterID string `json:"newClusterID"`
	Token        string `json:"token"`
	// Member is the first member of the recovered cluster, and NewMemberID its ID.
	Member      string `json:"member"`
	NewMemberID string `json:"newMemberID"`
	// ObjectURL of the backup; empty for what the member has.
	ObjectURL string `json:"objectURL,omitempty"`
	// Credentials is the Secret that opens its store; empty for the daemon's own way.
	Credentials string `json:"credentials,omitempty"`
	// PodAccess is how a pod reads it by itself; empty where quorate can sign a URL.
	PodAccess schema.PodAccess `json:"podAccess,omitzero"`
	manifest.Verified
	// Above is the highest revision that is known of the clusters that had this name
	// before; 0 where that is not above Revision.
	Above int64 `json:"above,omitempty"`
	// AcceptHashMismatch is the SHA256 of the backup where Git has said that it is
	// restored although etcd said another hash of its keys; else empty.
	AcceptHashMismatch string `json:"acceptHashMismatch,omitempty"`
	// Members are the IDs in hex of the lost members by name.
	Members map[string]string `json:"members"`
	// Since is when it was decided.
	Since time.Time `json:"since"`
}

// Recovered is a recovery that is over.
type Recovered struct {
	// OneShot describes what Git asked for.
	OneShot string `json:"oneShot"`
	// ClusterID and Token are those of the lost cluster.
	ClusterID string `json:"clusterID"`
	Token     string `json:"token"`
	// Members are the IDs in hex of the lost members by name: their volumes are
	// kept.
	Members map[string]string `json:"members"`
	// NewClusterID is that of the recovered cluster, and Member its first member.
	NewClusterID string `json:"newClusterID"`
	Member       string `json:"member"`
	// At is when it was over.
	At time.Time `json:"at"`
}

// addTo adds the part to the record in the planner's words.
func (r Recovery) addTo(p *state.Record) {
	p.RefusedRecovery = r.RefusedRecovery
	if g := r.Recovering; g != nil {
		p.Recovering = &state.Recovering{
			OneShot: g.OneShot, ClusterID: g.ClusterID, NewClusterID: g.NewClusterID, NewMemberID: g.NewMemberID,
			Member: g.Member, ObjectURL: g.ObjectURL, Revision: g.Revision, Above: g.Above, Since: g.Since,
		}
	}
	for _, done := range r.Recovered {
		p.Recovered = append(p.Recovered, state.Recovered{OneShot: done.OneShot, ClusterID: done.ClusterID, At: done.At})
		if p.Kept == nil {
			p.Kept = map[string]bool{}
		}
		for name := range done.Members {
			p.Kept[name] = true
		}
	}
}

// BeginRecovery records what is going to happen. What was under way in the
// lost cluster never comes to its end.
func (r *Record) BeginRecovery(g Recovering) bool {
	if r.Recovering != nil {
		return r.Recovering.OneShot == g.OneShot
	}
	if r.ClusterID != g.ClusterID {
		return false
	}
	g.FormerToken, g.Members = r.Token, maps.Clone(r.Members)
	r.Recovering = &g
	r.Joining, r.Leaving, r.Replacing, r.FailedJoin = nil, nil, "", nil
	return true
}

// RefuseRecovery notes a recovery that is not to be, and takes back one that has begun and has
// changed no volume yet.
func (r *Record) RefuseRecovery(oneShot string) {
	r.RefusedRecovery = oneShot
	if g := r.Recovering; g != nil && oneShot != "" && g.OneShot == oneShot && g.ClusterID == r.ClusterID {
		r.Recovering = nil
	}
}

// MayAccept reports whether Git says, by the sha256 of a backup, something of this one
// that is not noted yet.
func (g *Recovering) MayAccept(sha256 string) bool {
	return sha256 != "" && sha256 == g.SHA256 && g.AcceptHashMismatch == ""
}

// AcceptHashMismatch records that the backup is restored whatever etcd said of its keys.
func (r *Record) AcceptHashMismatch(newClusterID, sha256 string) bool {
	if r.Recovering == nil || r.Recovering.NewClusterID != newClusterID || r.Recovering.SHA256 != sha256 {
		return false
	}
	g := *r.Recovering
	g.AcceptHashMismatch = sha256
	r.Recovering = &g
	return true
}

// AdoptRecovery gives the record the identity of the recovered cluster.
func (r *Record) AdoptRecovery(a action.AdoptRecovery) bool {
	g := r.Recovering
	if g == nil || g.ClusterID != a.From || g.NewClusterID != a.ClusterID || g.Member != a.Member || g.NewMemberID != a.MemberID {
		return false
	}
	if r.ClusterID != a.From {
		return r.ClusterID == a.ClusterID
	}
	r.ClusterID, r.Token, r.Retired = g.NewClusterID, g.Token, nil
	r.Members = map[string]string{g.Member: g.NewMemberID}
	// What was known of the members' logs was known of logs that are set aside.
	r.Flushed, r.Nudged, r.Floors = nil, nil, nil
	if v, err := release.Parse(r.source()); err == nil {
		r.BornOn = v.Line()
	}
	return true
}

// source is the release that has made the backup of a restore, "" for a recovery.
func (r Restore) source() string {
	if r.Restored == nil || !r.Restored.At.IsZero() {
		return ""
	}
	return r.Restored.EtcdVersion
}

// EndRecovery records that a recovery is over.
func (r *Record) EndRecovery(a action.EndRecovery, now time.Time) bool {
	if r.Recovering == nil && r.Restored != nil && a.ClusterID == "" {
		return true
	}
	if slices.ContainsFunc(r.Recovered, func(done Recovered) bool { return done.OneShot == a.OneShot }) {
		return true
	}
	g := r.Recovering
	if g == nil || g.OneShot != a.OneShot || r.ClusterID != g.NewClusterID {
		return false
	}
	r.Recovering = nil
	r.Saw(max(g.Revision, g.Above) + state.RevisionBump) // it has begun there, or above
	if g.ClusterID == "" {
		return true // a restore has lost no cluster; what it is, Restored says
	}
	r.Recovered = append(r.Recovered, Recovered{
		OneShot: g.OneShot, ClusterID: g.ClusterID, Token: g.FormerToken, Members: g.Members,
		NewClusterID: g.NewClusterID, Member: g.Member, At: now.UTC(),
	})
	return true
}
