package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Format is the newest format of a record that this quorate knows.
const Format = 1

// The values of initial-cluster-state.
const (
	StateNew      = "new"
	StateExisting = "existing"
)

// Record is what must outlive quorate's process about one cluster. It is kept
// in a ConfigMap, read by the daemon and by the guard in each pod.
type Record struct {
	// FormatVersion rises when an older reader would misread the record. Fields
	// that a reader may ignore are added without raising it.
	FormatVersion int `json:"formatVersion"`
	// Token is the incarnation of the cluster: etcd's initial-cluster-token, new
	// for every cluster and every restore.
	Token string `json:"token"`
	// ClusterID is etcd's cluster ID in hex; empty until the cluster has formed.
	ClusterID string `json:"clusterID"`
	// Members are the IDs in hex of the members by name; empty until the cluster
	// has formed.
	Members map[string]string `json:"members"`
	// Owner is the instance that manages the cluster; nil in a record from before there
	// were owners.
	Owner *Owner `json:"owner,omitempty"`
	// Backup is the verified backup that what comes next rests on.
	Backup *Backup `json:"backup,omitempty"`
	// RollBackup is the backup of the last roll, where Backup is a later one: what a
	// repair needs in the midst of a roll does not take its place. An older quorate does
	// not know it, and takes another one.
	RollBackup *Backup `json:"rollBackup,omitempty"`
	// BackupBegun is the URL of a backup of quorate's own that was begun, until it
	// is done: what one that was cut off has left there is removed before the next.
	BackupBegun string `json:"backupBegun,omitempty"`
	// Applied is what was applied to the end last.
	Applied *Applied `json:"applied,omitempty"`
	// Revision rises with every change of the record. A pod may read an older
	// record than the one that its volume was marked under, and knows it by this.
	Revision int64 `json:"revision,omitempty"`
	Membership
	Recovery
	Restore
	// HighestRevision is the highest revision that the cluster, or one whose place it
	// has taken, was ever seen at: the next one of this name begins above it. 0 in a
	// record from before that was noted; see Reached.
	HighestRevision int64 `json:"highestRevision,omitempty"`
	// Compacted is the last compaction that quorate asked for.
	Compacted *Compacted `json:"compacted,omitempty"`
	// Defragmented is when each member was last defragmented by quorate, by name.
	Defragmented map[string]time.Time `json:"defragmented,omitempty"`
	// BornOn is the lowest line that the cluster has ever run, such as "3.5";
	// empty when it is unknown.
	BornOn string `json:"bornOn,omitempty"`
	// Flushed are the IDs of the members by name whose logs hold nothing from
	// before 3.6, which 3.7 cannot read.
	Flushed map[string]string `json:"flushed,omitempty"`
	// Nudged is when entries were added to the log so that members save their
	// state, while that is under way.
	Nudged *Nudged `json:"nudged,omitempty"`
	// Downgrade is the downgrade that was enabled in etcd, while it is in progress.
	Downgrade *Downgrade `json:"downgrade,omitempty"`
	// Floors are how far the members' logs go at least, by name, as the guard reads it.
	Floors map[string]guard.Floor `json:"floors,omitempty"`
	// FlooredAt is when they were noted last.
	FlooredAt time.Time `json:"flooredAt,omitzero"`
	// PeerURLs are where etcd has members, by their IDs in hex, whose URLs a change of
	// spec.tls.mode has moved: a member that joins starts only if it knows them.
	PeerURLs map[string][]string `json:"peerURLs,omitempty"`
	// MovedAt is when the last of these was moved.
	MovedAt time.Time `json:"movedAt,omitzero"`
	// Seen are times that lay ahead of quorate's clock.
	Seen []Seen `json:"seen,omitempty"`
}

// Compacted is a compaction that was applied.
type Compacted struct {
	// Revision from which on history was kept.
	Revision int64 `json:"revision"`
	// At is when that was done.
	At time.Time `json:"at"`
}

// Owner is one daemon that follows one place in Git.
type Owner struct {
	// Source is what it follows: REPOSITORY@BRANCH:PATH, without credentials.
	Source string `json:"source"`
	// Instance is the daemon's --instance.
	Instance string `json:"instance"`
	// Claim counts the changes of owner, from 1 on.
	Claim int `json:"claim"`
}

// Backup is one verified backup and what it is good for.
type Backup struct {
	// ClusterID is the cluster it was taken from, in hex.
	ClusterID string `json:"clusterID"`
	// For is what it was taken for: a version, or a word such as "hibernation".
	For string `json:"for"`
	// URL of the stored object.
	URL string `json:"url"`
	// SHA256 of the stored object in hex.
	SHA256 string `json:"sha256"`
	// Revision is etcd's revision in the backup.
	Revision int64 `json:"revision"`
	// Size of the stored object in bytes.
	Size int64 `json:"size"`
	// TakenAt is when the backup was complete.
	TakenAt time.Time `json:"takenAt"`
	// Unreachable is why no restore could read it when it was taken, "" where one could.
	Unreachable string `json:"unreachable,omitempty"`
}

// state is the backup in the planner's words.
func (b *Backup) state() *state.Backup {
	if b == nil {
		return nil
	}
	return &state.Backup{ClusterID: b.ClusterID, For: state.Purpose(b.For), URL: b.URL, Time: b.TakenAt, Unreachable: b.Unreachable}
}

// NoteBackup records a backup that was taken: see state.Record.
func (r *Record) NoteBackup(b Backup) {
	was := r.Backup
	switch {
	case state.Purpose(b.For).IsRoll():
		r.RollBackup = nil
	case was != nil && state.Purpose(was.For).IsRoll():
		r.RollBackup = was
	}
	r.Backup = &b
}

// BackupFor is the backup that was taken for a purpose last, or nil.
func (r Record) BackupFor(purpose state.Purpose) *Backup {
	for _, b := range []*Backup{r.Backup, r.RollBackup} {
		if b != nil && state.Purpose(b.For) == purpose {
			return b
		}
	}
	return nil
}

// Nudged is that entries were added to the log.
type Nudged struct {
	// Template is the hash of the pod template that every member had.
	Template string `json:"template"`
	// Since is when that was first done under this template, At when last.
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`
	// Before is how often each member had saved its state just before.
	Before map[string]int64 `json:"before"`
}

// Downgrade is a downgrade through etcd's own API.
type Downgrade struct {
	// Line is where it goes to, such as "3.6".
	Line string `json:"line"`
	// Since is when it was first to be enabled.
	Since time.Time `json:"since"`
}

// Applied is the desired state that was reached last.
type Applied struct {
	// SpecHash is the hash of the cluster's spec.
	SpecHash string `json:"specHash"`
	// Settings is the hash of the part of the spec that makes the members what
	// they are.
	Settings string `json:"settings,omitempty"`
	// Version is the etcd version.
	Version string `json:"version"`
	// Commit is the Git commit that it came from, and Accepted why that was let in, for
	// people; an older quorate does not note the latter.
	Commit   string            `json:"commit"`
	Accepted schema.Acceptance `json:"accepted,omitzero"`
	// At is when it was noted, by the clock of the API server; zero where an older quorate has.
	At time.Time `json:"at,omitzero"`
}

// New is the record of a cluster that has not formed yet.
func New(token string) Record {
	return Record{FormatVersion: Format, Token: token, Members: map[string]string{}}
}

// Formed reports whether the cluster has ever existed. From then on no member is
// started with the state "new".
func (r Record) Formed() bool { return r.ClusterID != "" }

// InitialCluster is the value of etcd's initial-cluster: the members of the
// record and the one that is joining, or those that the cluster starts with. A
// joining member starts only if this is exactly etcd's member list.
func (r Record) InitialCluster(c schema.EtcdCluster) string {
	names := slices.Collect(maps.Keys(r.Members))
	if r.Joining != nil && r.Joining.ID != "" && r.Members[r.Joining.Member] == "" {
		names = append(names, r.Joining.Member)
	}
	if !r.Formed() {
		names = nil
		for i := range r.FoundersOf(c) {
			names = append(names, naming.Member(c.Metadata.Name, int32(i)))
		}
	}
	slices.SortFunc(names, naming.CompareMembers)
	pairs := make([]string, 0, len(names))
	for _, name := range names {
		urls := r.PeerURLs[r.Members[name]]
		if len(urls) == 0 {
			urls = []string{naming.PeerURL(c, name)}
		}
		for _, url := range urls {
			pairs = append(pairs, name+"="+url)
		}
	}
	return strings.Join(pairs, ",")
}

// Moved notes where etcd has a member now, and forgets those that are no members any more.
func (r *Record) Moved(id string, urls []string, at time.Time) {
	moved := map[string][]string{}
	for _, member := range r.Members {
		if at := r.PeerURLs[member]; len(at) > 0 {
			moved[member] = at
		}
		if member == id {
			moved[id] = slices.Clone(urls)
		}
	}
	r.PeerURLs, r.MovedAt = moved, at.UTC()
}

// ConfigMap is the ConfigMap that holds r.
func (r Record) ConfigMap(c schema.EtcdCluster) *corev1ac.ConfigMapApplyConfiguration {
	if r.Members == nil {
		r.Members = map[string]string{}
	}
	// Strings, numbers and a time of this package's making always encode.
	text, _ := json.MarshalIndent(r, "", "  ")
	state := StateNew
	if r.Formed() {
		state = StateExisting
	}
	return corev1ac.ConfigMap(naming.Record(c.Metadata.Name), c.Metadata.Namespace).
		WithLabels(naming.ObjectLabels(c)).
		WithData(map[string]string{
			naming.KeyRecord:         string(text) + "\n",
			naming.KeyInitialCluster: r.InitialCluster(c),
			naming.KeyInitialState:   state,
			naming.KeyInitialToken:   r.Token,
		})
}

// Read reads a record back. A damaged record is an error and never an
// empty record: taken for a new cluster, a running one would be formed again.
func Read(cm *corev1.ConfigMap) (Record, error) {
	r, err := decodeRecord(cm.Data)
	if err != nil {
		return Record{}, fmt.Errorf("record %s/%s: %w; restore this ConfigMap from a backup or from etcd's member list, and do not delete it: quorate waits until it can be read",
			cm.Namespace, cm.Name, err)
	}
	return r, nil
}

func decodeRecord(data map[string]string) (Record, error) {
	for _, key := range []string{naming.KeyRecord, naming.KeyInitialCluster, naming.KeyInitialState, naming.KeyInitialToken} {
		if data[key] == "" {
			return Record{}, fmt.Errorf("key %s is missing or empty", key)
		}
	}
	if _, err := guard.ParseRecord([]byte(data[naming.KeyRecord])); err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal([]byte(data[naming.KeyRecord]), &r); err != nil {
		return Record{}, fmt.Errorf("%s is not readable: %w", naming.KeyRecord, err)
	}
	if r.FormatVersion > Format {
		return Record{}, fmt.Errorf("format %d was written by a newer quorate and this one knows formats up to %d: run the newer one", r.FormatVersion, Format)
	}
	return r, r.checkAgainst(data)
}

// checkAgainst compares r with the keys made from it. A state "new" beside a
// formed record is no damage: the next apply puts it right. The opposite means
// that the record has lost the cluster's ID.
func (r Record) checkAgainst(data map[string]string) error {
	if data[naming.KeyInitialToken] != r.Token {
		return fmt.Errorf("token %q in %s and %q in %s differ", r.Token, naming.KeyRecord, data[naming.KeyInitialToken], naming.KeyInitialToken)
	}
	if !r.Formed() && data[naming.KeyInitialState] != StateNew {
		return fmt.Errorf("%s is %q but %s has no cluster ID", naming.KeyInitialState, data[naming.KeyInitialState], naming.KeyRecord)
	}
	return nil
}
