package reconciler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// RecoveryRecord is the part of a record about a lost quorum.
type RecoveryRecord struct {
	// Recovering is the recovery under way, nil when there is none.
	Recovering *RecoveringRecord `json:"recovering,omitempty"`
	// Recovered are the recoveries that are over, oldest first: none of them
	// happens again, and data of these incarnations is kept when a volume is used
	// anew.
	Recovered []RecoveredRecord `json:"recovered,omitempty"`
	// RefusedRecovery is one that stood in Git while the cluster had a quorum.
	RefusedRecovery string `json:"refusedRecovery,omitempty"`
}

// RecoveringRecord is a recovery under way.
type RecoveringRecord struct {
	// OneShot is what Git asked for, in words.
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
	VerifiedBackup
	// Members are the IDs in hex of the lost members by name.
	Members map[string]string `json:"members"`
	// Since is when it was decided.
	Since time.Time `json:"since"`
}

// VerifiedBackup is what the step that restores a backup is told of it. Without a
// backup it is the zero value but for Revision.
type VerifiedBackup struct {
	// SHA256 and Size are those of the stored object.
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Revision that is recovered, at least.
	Revision int64 `json:"revision"`
	// Hash is etcd's HashKV at HashRevision, computed from CompactRevision on.
	// HashRevision 0: nobody knows.
	Hash            uint32 `json:"hash,omitempty"`
	HashRevision    int64  `json:"hashRevision,omitempty"`
	CompactRevision int64  `json:"compactRevision,omitempty"`
	// Keys is how many keys there were at HashRevision; 0: nobody knows.
	Keys int64 `json:"keys,omitempty"`
	// Decryption is the Secret with the private key of an encrypted one, else empty.
	Decryption string `json:"decryption,omitempty"`
}

// verified is what a manifest says to the step that restores. An encrypted backup
// needs a Secret with a private key, which only that step reads; where says which
// field of a file names it.
func verified(m backup.Manifest, d schema.DecryptionSpec, where string) (VerifiedBackup, error) {
	b := VerifiedBackup{
		SHA256: m.SHA256, Size: m.Size, Revision: m.Revision,
		Hash: m.Hash, HashRevision: m.HashRevision, CompactRevision: m.CompactRevision, Keys: m.Keys,
	}
	if !m.Encrypted {
		return b, nil
	}
	if b.Decryption = d.SecretName; b.Decryption == "" {
		return b, fmt.Errorf("the backup at %s is encrypted: name the Secret with the private key of one of %s in %s",
			m.Object, strings.Join(m.Recipients, ", "), where)
	}
	return b, nil
}

// RecoveredRecord is a recovery that is over.
type RecoveredRecord struct {
	// OneShot is what Git asked for, in words.
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

// describe tells the planner.
func (r RecoveryRecord) describe(p *plan.Record) {
	p.RefusedRecovery = r.RefusedRecovery
	if g := r.Recovering; g != nil {
		p.Recovering = &plan.Recovering{
			OneShot: g.OneShot, ClusterID: g.ClusterID, NewClusterID: g.NewClusterID, NewMemberID: g.NewMemberID,
			Member: g.Member, ObjectURL: g.ObjectURL, Revision: g.Revision, Since: g.Since,
		}
	}
	for _, done := range r.Recovered {
		p.Recovered = append(p.Recovered, plan.Recovered{OneShot: done.OneShot, ClusterID: done.ClusterID})
		if p.Kept == nil {
			p.Kept = map[string]bool{}
		}
		for name := range done.Members {
			p.Kept[name] = true
		}
	}
}

// beginRecovery writes down what is going to happen. What was under way in the
// lost cluster never comes to its end.
func (r *Record) beginRecovery(g RecoveringRecord) bool {
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

// adoptRecovery gives the record the identity of the recovered cluster.
func (r *Record) adoptRecovery(a plan.AdoptRecovery) bool {
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
	r.Flushed, r.Nudged = nil, nil
	if v, err := release.Parse(r.source()); err == nil {
		r.BornOn = v.Line()
	}
	return true
}

// source is the release that has made the backup of a restore, "" for a recovery.
func (r RestoreRecord) source() string {
	if r.Restored == nil || !r.Restored.At.IsZero() {
		return ""
	}
	return r.Restored.EtcdVersion
}

// endRecovery writes down that a recovery is over.
func (r *Record) endRecovery(a plan.EndRecovery, now time.Time) bool {
	if r.Recovering == nil && r.Restored != nil && a.ClusterID == "" {
		return true
	}
	if slices.ContainsFunc(r.Recovered, func(done RecoveredRecord) bool { return done.OneShot == a.OneShot }) {
		return true
	}
	g := r.Recovering
	if g == nil || g.OneShot != a.OneShot || r.ClusterID != g.NewClusterID {
		return false
	}
	if r.Recovering = nil; g.ClusterID == "" {
		return true // a restore has lost no cluster; what it is, Restored says
	}
	r.Recovered = append(r.Recovered, RecoveredRecord{
		OneShot: g.OneShot, ClusterID: g.ClusterID, Token: g.FormerToken, Members: g.Members,
		NewClusterID: g.NewClusterID, Member: g.Member, At: now.UTC(),
	})
	return true
}
