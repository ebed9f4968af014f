package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

const (
	// requestFormat is the newest format of a request's record that this quorate
	// knows.
	requestFormat = 1
)

// Record is what must outlive quorate's process about one EtcdBackup or
// EtcdBackupSchedule. It is kept in a ConfigMap.
type Record struct {
	// FormatVersion rises when an older reader would misread the record.
	FormatVersion int `json:"formatVersion"`
	// SpecHash is the hash of the spec that Failures are about.
	SpecHash string `json:"specHash"`
	// Times is the crontab line and the zone that Since is about.
	Times string `json:"times,omitempty"`
	// Since is when quorate first saw these times, or the spec of a single backup:
	// earlier times are not missed.
	Since time.Time `json:"since"`
	// Struck is the time of the schedule that the last good backup stands for, and
	// Ended when that was done.
	Struck time.Time `json:"struck,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
	// Failures in a row, when the last one was, and what it said.
	Failures int       `json:"failures,omitempty"`
	FailedAt time.Time `json:"failedAt,omitzero"`
	Problem  string    `json:"problem,omitempty"`
	// Begun is the backup that is being taken, recorded before its first byte.
	Begun *begunBackup `json:"begun,omitempty"`
	// Last is the newest good backup.
	Last *doneBackup `json:"last,omitempty"`
	// Done are the backups of an EtcdBackup by the hash of its spec: none of them
	// is ever taken again.
	Done map[string]doneBackup `json:"done,omitempty"`
	// Retained is when backups were last looked through for those to remove.
	Retained time.Time `json:"retained,omitzero"`
	// RetainedAfter is Ended of the backup after which that was: no clock has a say in
	// whether it was done.
	RetainedAfter time.Time `json:"retainedAfter,omitzero"`
	// RetentionHash says which rules were carried out last, or held by RetentionHold.
	RetentionHash string         `json:"retentionHash,omitempty"`
	RetentionHold *retentionHold `json:"retentionHold,omitempty"`
	// Refused are the backups that the store has refused to remove, by short hashes of
	// their objects.
	Refused []string `json:"refused,omitempty"`
	// Verdicts of drills that the store has refused to note, by the object.
	Verdicts stores.Verdicts `json:"verdicts,omitempty"`
	// Unreachable is why no restore could read the newest backup where it is, "" where
	// one could.
	Unreachable string `json:"unreachable,omitempty"`
	drillRecord
}

// begunBackup is a backup that was begun and has not ended as far as is known.
type begunBackup struct {
	// URL of the object; nothing else is ever written there.
	URL string `json:"url"`
	// To is what Git said of that place then, nil where an earlier version began it.
	To *begunPlace `json:"to,omitempty"`
	// SpecHash of the request, and At the time of the schedule that it stands for.
	SpecHash string    `json:"specHash"`
	At       time.Time `json:"at"`
	// Since is when it was begun.
	Since time.Time `json:"since"`
	// Job that takes it, empty for the daemon.
	Job string `json:"job,omitempty"`
	// Failed says that this was counted as a failure.
	Failed bool `json:"failed,omitempty"`
}

// begunPlace tells places from one another, and says how one is reached.
type begunPlace struct {
	// Template of the object's URL.
	Template string `json:"template"`
	// SecretName of the credentials, empty for the daemon's own.
	SecretName string `json:"secretName,omitempty"`
}

// placeOf is the place of a destination.
func placeOf(to schema.Destination) *begunPlace {
	return &begunPlace{Template: to.ObjectURLTemplate, SecretName: to.Credentials.SecretName}
}

// doneBackup is one good backup.
type doneBackup struct {
	// URL of the object, Object the same without its query.
	URL    string `json:"url"`
	Object string `json:"object"`
	// ClusterID of the cluster in hex, and the member that gave it.
	ClusterID string `json:"clusterID"`
	Member    string `json:"member"`
	SHA256    string `json:"sha256"`
	Revision  int64  `json:"revision"`
	// Size in bytes.
	Size int64 `json:"size"`
	// Time is when it was begun, and Seconds how long it took; 0 where quorate was
	// killed before it could tell.
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	// Commit that asked for it, and why that was let in, for people.
	Commit   string            `json:"commit"`
	Accepted schema.Acceptance `json:"accepted,omitzero"`
}

// past is what the schedule's decisions rest on.
func (k Record) past() schedule.Past {
	return schedule.Past{Since: k.Since, Struck: k.Struck, Ended: k.Ended, Failures: k.Failures, FailedAt: k.FailedAt}
}

// overdueAt is when the next backup is overdue, zero for never.
func (k Record) overdueAt(q desired.Backup, now time.Time) time.Time {
	if q.Schedule == nil {
		return time.Time{}
	}
	// A schedule that cannot be read is told of by the pass.
	at, _ := schedule.OverdueAt(*q.Schedule, q.Name(), k.past(), now)
	return at
}

// begin notes what is new about a request, and reports whether anything is. Another
// spec is a reason to try again at once; other times count from now on.
func (k *Record) begin(q desired.Backup, now time.Time) bool {
	before := *k
	if k.SpecHash != q.Hash() {
		k.SpecHash, k.Failures, k.FailedAt, k.Problem = q.Hash(), 0, time.Time{}, ""
		// What a drill lacked may be what was changed.
		k.DrillFailures, k.DrillFailedAt = min(k.DrillFailures, 1), time.Time{}
		if q.Schedule != nil && q.Schedule.Verify.Again == "" {
			k.Again = ""
		}
		if q.Schedule == nil {
			k.Since = now.UTC()
		}
	}
	if k.Since.IsZero() || k.Times != q.Times() || clock.Ahead(k.Since, now) {
		k.Since, k.Times = now.UTC(), q.Times()
	}
	return before.SpecHash != k.SpecHash || before.Times != k.Times || !before.Since.Equal(k.Since)
}

// succeeded notes a good backup.
func (k *Record) succeeded(q desired.Backup, m backup.Manifest, ended time.Time, took time.Duration) {
	b := *k.Begun
	done := doneBackup{
		URL: b.URL, Object: m.Object, ClusterID: m.ClusterID, Member: m.Member, SHA256: m.SHA256,
		Revision: m.Revision, Size: m.Size, Time: m.Time, Seconds: took.Seconds(), Commit: m.Commit,
	}
	if q.Commit == m.Commit { // of one that was begun under an earlier commit it is not known
		done.Accepted = q.Accepted
	}
	k.Last, k.Begun = &done, nil
	k.Struck, k.Ended = b.At, ended.UTC()
	k.Failures, k.FailedAt, k.Problem = 0, time.Time{}, ""
	if q.Schedule == nil {
		k.Done = maps.Clone(k.Done)
		if k.Done == nil {
			k.Done = map[string]doneBackup{}
		}
		k.Done[b.SpecHash] = done
	}
}

// failed notes a failure; what was begun is settled before the next try.
func (k *Record) failed(err error, now time.Time) {
	k.Failures++
	k.FailedAt, k.Problem = now.UTC(), err.Error()
	if k.Begun != nil {
		b := *k.Begun
		b.Failed, k.Begun = true, &b
	}
}

// kept is a record and the ConfigMap that it was read from, nil for none.
type kept struct {
	record Record
	live   *corev1.ConfigMap
	// disbelieved says that the record had what quorate has not written, and is to be
	// written without.
	disbelieved bool
}

// RecordName is the ConfigMap of a request.
func RecordName(q desired.Backup) string {
	if q.Schedule != nil {
		return q.Metadata.Name + "-backup-schedule"
	}
	return q.Metadata.Name + "-backup-request"
}

func recordLabels(q desired.Backup) map[string]string {
	label := naming.LabelBackup
	if q.Schedule != nil {
		label = naming.LabelSchedule
	}
	return map[string]string{"app.kubernetes.io/managed-by": "quorate", label: q.Metadata.Name}
}

// readRequest reads the record of a request from the API server. One that cannot
// be read is an error and never an empty record: what was done would be done again.
func (s *Scheduler) readRequest(ctx context.Context, q desired.Backup) (*kept, error) {
	live, err := kube.FoundOrNil(s.Kube.CoreV1().ConfigMaps(q.Metadata.Namespace).Get(ctx, RecordName(q), metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("read the record of %s: %w", q.Key(), err)
	}
	k := &kept{record: Record{FormatVersion: requestFormat}, live: live}
	if live == nil {
		return k, nil
	}
	bad := func(problem any, do string) (*kept, error) {
		return nil, fmt.Errorf("record %s/%s of %s: %v; %s", live.Namespace, live.Name, q.Key(), problem, do)
	}
	if !naming.HasLabels(live, recordLabels(q)) {
		return bad("this ConfigMap is not quorate's", "rename it, or the document")
	}
	if err := json.Unmarshal([]byte(live.Data[guard.RecordFile]), &k.record); err != nil {
		return bad(fmt.Sprintf("%s is not readable: %v", guard.RecordFile, err), "restore this ConfigMap; deleting it takes the backup once more, and forgets nothing that is in the store")
	}
	if k.record.FormatVersion > requestFormat {
		return bad(fmt.Sprintf("format %d was written by a newer quorate", k.record.FormatVersion), "run the newer one")
	}
	what := k.record.disbelieve(q)
	k.disbelieved = len(what) > 0
	s.reportDisbelieved(q, k, what)
	return k, nil
}

// writeRequest writes the record, and fails with state.ErrChanged when it was
// written since it was read.
func (s *Scheduler) writeRequest(ctx context.Context, q desired.Backup, k *kept) error {
	if err := s.Lease(q.ClusterName()); err != nil {
		return err
	}
	// Strings, numbers and times of this package's making always encode.
	text, _ := json.MarshalIndent(k.record, "", "  ")
	data := map[string]string{guard.RecordFile: string(text) + "\n"}
	configMaps := s.Kube.CoreV1().ConfigMaps(q.Metadata.Namespace)
	var err error
	if k.live == nil {
		k.live, err = configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: RecordName(q), Namespace: q.Metadata.Namespace, Labels: recordLabels(q)}, Data: data,
		}, metav1.CreateOptions{FieldManager: naming.FieldManager})
	} else {
		next := k.live.DeepCopy()
		next.Data = data
		k.live, err = configMaps.Update(ctx, next, metav1.UpdateOptions{FieldManager: naming.FieldManager})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return state.ErrChanged
	case err != nil:
		return fmt.Errorf("write the record of %s: %w", q.Key(), err)
	}
	return nil
}

// ownerReference lets what belongs to a backup or a schedule go with its record.
func ownerReference(k *kept) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: k.live.Name, UID: k.live.UID}
}

// effective is where the backups of a request go: its own word, else that of its
// cluster, else the daemon's.
func (s *Scheduler) effective(q desired.Backup) schema.Destination {
	to := q.Spec.Destination
	if c, named := s.Clusters.Get(q.Metadata.Namespace + "/" + q.Spec.Source.ClusterName); named && len(c.Problems) == 0 {
		to = to.Or(c.Spec.Backup.Destination)
	}
	if to.ObjectURLTemplate == "" {
		to.ObjectURLTemplate = s.Options.BackupURL
	}
	return to
}
