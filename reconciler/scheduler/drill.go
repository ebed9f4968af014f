package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema/release"
)

// driller restores backups on trial.
type driller struct{ *Scheduler }

// drillImage is an etcd of the very release that gave the backup, from where the
// cluster's own images come. What the manifest says of it must be a release, for a tag of
// any other form is another image.
func (s driller) drillImage(q desired.Backup, m backup.Manifest) (string, error) {
	v, err := release.Parse(m.EtcdVersion)
	if err != nil {
		return "", fmt.Errorf("which etcd has given the backup %s is not clear from its manifest, so that none is started on it: %w; look at who writes to the store, and take a new backup", m.Object, err)
	}
	version := v.String()
	c, named := s.Clusters.Get(q.Metadata.Namespace + "/" + q.Spec.Source.ClusterName)
	if !named || len(c.Problems) > 0 {
		return cmp.Or(s.Options.Render.Repository, manifests.DefaultRepository) + ":v" + version, nil
	}
	if c.Spec.Version != version {
		c.Spec.Version, c.Spec.Image.Digest = version, ""
	}
	return manifests.Image(c.EtcdCluster, s.Options.Render), nil
}

// backupOf is the backup of a drill, in its store, with its URL there and its manifest: the one
// that Git names in spec.verify.again, else one of the schedule's cluster that lies where Git
// puts these. Of what else the record may name nothing is signed, read or noted.
func (s driller) backupOf(ctx context.Context, q desired.Backup, d *begunDrill) (store backup.Store, objectURL string, m backup.Manifest, err error) {
	again, place := q.Schedule.Verify.Again, stores.Place{}
	named := again != "" && again == d.Again
	if named {
		objectURL = s.inStore(q, again)
	} else if place, err = s.place(q); err == nil {
		objectURL, err = place.At(d.URL)
	}
	if err == nil {
		store, err = s.Stores.Open(ctx, q.Metadata.Namespace, s.effective(q), objectURL)
	}
	if err == nil {
		m, err = store.ReadManifest(ctx, objectURL)
	}
	if err == nil && !named {
		err = place.Owns(m)
	}
	if err == nil && d.Again != "" && m.Schedule != q.Name() {
		err = fmt.Errorf("spec.verify.again: the backup at %s is not one of this schedule: name one that the schedule has taken", m.Object)
	}
	if errors.Is(err, stores.ErrForeign) {
		err = fmt.Errorf("%w; nothing of it is given out, and the next backup is restored on trial: to have this one restored, name it in spec.verify.again", err)
	}
	return store, objectURL, m, err
}

// drillOf are the Jobs of a schedule's drills.
func drillOf(q desired.Backup, k *kept) jobs.Of {
	return jobs.OfRequest(q, naming.LabelDrillOf, k.live.UID)
}

// drillLook is the time between two looks at a drill that is under way.
const drillLook = 2 * time.Second

// drillRecord is the part of a schedule's record about its restore drills.
type drillRecord struct {
	// Drill is the one under way, recorded before its Job is made.
	Drill *begunDrill `json:"drill,omitempty"`
	// Drilled is the newest that was judged, Proven the newest that was good.
	Drilled *doneDrill `json:"drilled,omitempty"`
	Proven  *doneDrill `json:"proven,omitempty"`
	// DrillFailures in a row are drills that came to no judgement, when the last one
	// did not, and why.
	DrillFailures int       `json:"drillFailures,omitempty"`
	DrillFailedAt time.Time `json:"drillFailedAt,omitzero"`
	DrillProblem  string    `json:"drillProblem,omitempty"`
	// Again is the URL in Git of the backup that was restored once more.
	Again string `json:"again,omitempty"`
}

// begunDrill is a drill that has not ended as far as is known.
type begunDrill struct {
	// Job is its name, URL that of the backup's object, and Backup the backup's time.
	Job    string    `json:"job"`
	URL    string    `json:"url"`
	Backup time.Time `json:"backup"`
	// Since is when it was begun.
	Since time.Time `json:"since"`
	// Again is the URL in Git where a person asks for this drill.
	Again string `json:"again,omitempty"`
}

// doneDrill is a drill that was judged.
type doneDrill struct {
	// Object is the backup, and Backup its time.
	Object string    `json:"object"`
	Backup time.Time `json:"backup"`
	// Time is when the drill was begun, and Seconds how long it took until the
	// restored etcd had answered.
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	// Result is backup.DrillPassed, or a sentence that says what was wrong.
	Result string `json:"result"`
}

// asksAgain is the backup that a person asks to be restored on trial once more, by the
// URL in Git, and that was not yet; "" for none.
func asksAgain(q desired.Backup, k Record) string {
	if again := q.Schedule.Verify.Again; again != k.Again {
		return again
	}
	return ""
}

// drillAt is from when on a backup is to be restored on trial, the zero time for never.
func drillAt(q desired.Backup, k Record, now time.Time) (time.Time, error) {
	if q.Schedule == nil || k.Last == nil {
		return time.Time{}, nil
	}
	zone, err := time.LoadLocation(q.Schedule.TimeZone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", q.Key(), err)
	}
	past := schedule.Drills{Failures: k.DrillFailures, FailedAt: k.DrillFailedAt, Again: asksAgain(q, k) != ""}
	if d := k.Drilled; d != nil {
		past.Backup, past.Passed = d.Backup, d.Result == backup.DrillPassed
	}
	return schedule.DrillAt(q.Schedule.Verify.Restore, zone, k.Last.Time, past, now), nil
}

// beginDrill begins to restore a backup on trial: the newest, or the one that a person
// asks for. Its Job is named in the record before it exists, so that the next process
// finds it, or makes it.
func (s driller) beginDrill(ctx context.Context, q desired.Backup, k *kept) (time.Duration, error) {
	if _, err := s.place(q); errors.Is(err, errUnclear) {
		return s.waitsFor(q, "the restore drill that is due: "+err.Error(), s.Options.Resync)
	}
	// Those that are being started have no Job yet that could be counted.
	others := int(s.starting.Add(1)) - 1
	defer s.starting.Add(-1)
	running, err := s.running(ctx, naming.LabelDrillOf)
	if err != nil {
		return 0, err
	}
	if running += others; running >= s.Options.MaxDrills {
		return s.waitsFor(q, fmt.Sprintf("%d other restore drills are under way, and --max-drills allows no more", running), placeWait)
	}
	name, err := jobs.NewName(q, nounDrill)
	if err != nil {
		return 0, err
	}
	k.record.Drill = &begunDrill{Job: name, URL: k.record.Last.URL, Backup: k.record.Last.Time, Since: s.Now().UTC()}
	if again := asksAgain(q, k.record); again != "" {
		// Its time is known when its manifest was read.
		k.record.Drill.URL, k.record.Drill.Backup, k.record.Drill.Again = s.inStore(q, again), time.Time{}, again
	}
	if err := s.writeRequest(ctx, q, k); err != nil {
		return 0, err
	}
	s.Log.Info("restore drill started", "request", q.Key(), "cluster", q.ClusterName(), "url", desired.WithoutQuery(k.record.Drill.URL), "job", k.record.Drill.Job)
	return drillLook, s.makeDrill(ctx, q, k)
}

// inStore is the URL of a backup as its store is reached: one that is given without
// parameters has those of the schedule's own place.
func (s driller) inStore(q desired.Backup, objectURL string) string {
	return desired.WithQueryOf(objectURL, s.effective(q).ObjectURLTemplate)
}

// makeDrill makes the drill's Job, and the Secret by which it reads the backup. What
// keeps it from that is no word about the backup.
func (s driller) makeDrill(ctx context.Context, q desired.Backup, k *kept) error {
	d, ns := k.record.Drill, q.Metadata.Namespace
	store, objectURL, m, err := s.backupOf(ctx, q, d)
	switch {
	case errors.Is(err, errUnclear):
		return err
	case err != nil:
		return s.drillUnclear(ctx, q, k, err.Error())
	}
	image, errImage := s.drillImage(q, m)
	b, errKey := m.Verified(q.Schedule.Verify.Decryption, "spec.verify.decryption.secretName")
	if err := cmp.Or(s.Stores.Trusted(m, stores.TrustOfDrill()), errImage, errKey); err != nil {
		return s.drillUnclear(ctx, q, k, err.Error())
	}
	var set *appsv1.StatefulSet
	if name := q.Spec.Source.ClusterName; name != "" {
		if set, err = kube.FoundOrNil(s.Kube.AppsV1().StatefulSets(ns).Get(ctx, name, metav1.GetOptions{})); err != nil {
			return fmt.Errorf("read the StatefulSet of %s: %w", q.ClusterName(), err)
		}
	}
	if err := s.Lease(q.ClusterName()); err != nil {
		return err
	}
	to := s.effective(q)
	way, err := s.offerDrill(ctx, q, k, store, stores.OfferedBy(to, objectURL))
	if err != nil {
		return s.drillUnclear(ctx, q, k, err.Error())
	}
	job := jobs.RenderDrill(jobs.Job{Name: d.Job, For: q, Owner: ownerReference(k)}, b, jobs.DrillImages{Quorate: s.Options.Render.GuardImage, Etcd: image}, set, way)
	return s.Jobs.Start(ctx, drillOf(q, k), job)
}

// offerDrill writes the Secret by which a drill reads its backup.
func (s driller) offerDrill(ctx context.Context, q desired.Backup, k *kept, store backup.Store, o stores.Offered) (stores.Way, error) {
	owner := ownerReference(k)
	offer := corev1ac.Secret(k.record.Drill.Job, q.Metadata.Namespace).WithLabels(map[string]string{naming.LabelDrillOf: q.Metadata.Name}).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).WithUID(owner.UID))
	return s.Stores.Offer(ctx, store, o, offer, s.Now())
}

// keepOffered renews the offer while the drill's pod is to read by it. Where that does not
// succeed, the drill itself says what became of it.
func (s driller) keepOffered(ctx context.Context, q desired.Backup, k *kept) error {
	d := k.record.Drill
	return s.Stores.KeepOffered(ctx, q.Metadata.Namespace, d.Job, s.Now(), func() error { return s.Lease(q.ClusterName()) }, func() error {
		store, objectURL, _, err := s.backupOf(ctx, q, d)
		if err == nil {
			_, err = s.offerDrill(ctx, q, k, store, stores.Offered{ObjectURL: objectURL})
		}
		if err != nil {
			return fmt.Errorf("sign the URL of the backup again for restore drill %s: %w", d.Job, err)
		}
		return nil
	})
}

// followDrill looks how far a drill is that was begun, by whatever process. One whose
// Job is gone begins anew, for as long as a drill may take.
func (s driller) followDrill(ctx context.Context, q desired.Backup, k *kept) (time.Duration, error) {
	d, ns := k.record.Drill, q.Metadata.Namespace
	job, err := s.Jobs.Read(ctx, drillOf(q, k), d.Job)
	switch {
	case errors.Is(err, jobs.ErrForeign):
		return 0, s.drillUnclear(ctx, q, k, err.Error())
	case err != nil:
		return 0, err
	}
	late := s.Now().Sub(d.Since) > jobs.DrillTimeout+jobs.DrillKept
	switch {
	case job == nil && late:
		return 0, s.drillUnclear(ctx, q, k, "its Job is gone, and left no result")
	case job == nil:
		return drillLook, s.makeDrill(ctx, q, k)
	}
	pods, err := s.Jobs.Pods(ctx, ns, d.Job)
	if err != nil {
		return 0, err
	}
	j := jobs.Judge(job, pods)
	switch {
	case j.Over && j.Unclear != "":
		return 0, s.drillUnclear(ctx, q, k, j.Unclear)
	case j.Over:
		return 0, s.drillJudged(ctx, q, k, j)
	case late:
		return 0, s.drillUnclear(ctx, q, k, "it did not end in time; "+j.Awaited)
	}
	if err := s.keepOffered(ctx, q, k); err != nil {
		return 0, err
	}
	if j.Awaited != "" {
		return s.waitsFor(q, "restore drill "+d.Job+": "+j.Awaited, drillLook)
	}
	return drillLook, nil
}

// drillJudged notes what a drill has found: in the manifest, so that a search for
// a backup to restore knows, and in the record. No backup is removed for it.
func (s driller) drillJudged(ctx context.Context, q desired.Backup, k *kept, j jobs.Judgement) error {
	d := *k.record.Drill
	if j.OtherBytes {
		if err := s.confirmDamage(ctx, q, &d); err != nil {
			return s.drillUnclear(ctx, q, k, fmt.Sprintf("%s; but %v", j.Result.Problem, err))
		}
	}
	took := max(0, j.Ended.Sub(d.Since))
	found := backup.Drill{Time: d.Since, Duration: took, Result: backup.DrillPassed, Keys: j.Result.Keys, Revision: j.Result.Revision, Hash: j.Result.Hash}
	if j.Result.Problem != "" {
		found.Result = j.Result.Problem
	}
	switch err := s.storeVerdict(ctx, q, k, &d, found); {
	case errors.Is(err, stores.ErrForeign):
		return s.drillUnclear(ctx, q, k, err.Error())
	case err != nil:
		return err
	}
	done := &doneDrill{Object: desired.WithoutQuery(d.URL), Backup: d.Backup, Time: d.Since, Seconds: took.Seconds(), Result: found.Result}
	k.record.drilled(done, d.Again)
	k.record.DrillFailures, k.record.DrillFailedAt, k.record.DrillProblem = 0, time.Time{}, ""
	if err := s.endDrill(ctx, q, k); err != nil {
		return err
	}
	s.reportDrill(q, k, found, done.Object)
	return nil
}

// drilled notes a drill that was judged, again where a person asked for it. That of an
// older backup, for which only a person asks, says nothing about the newest.
func (k *drillRecord) drilled(done *doneDrill, again string) {
	k.Again = cmp.Or(again, k.Again)
	older := func(than *doneDrill) bool { return again != "" && than != nil && done.Backup.Before(than.Backup) }
	if !older(k.Drilled) {
		k.Drilled = done
	}
	if done.Result == backup.DrillPassed && !older(k.Proven) {
		k.Proven = done
	}
}

// drillUnclear notes that a drill came to no judgement. Nothing is said about the
// backup; the drill is tried again, later each time.
func (s driller) drillUnclear(ctx context.Context, q desired.Backup, k *kept, why string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k.record.DrillFailures++
	k.record.DrillFailedAt, k.record.DrillProblem = s.Now().UTC(), why
	if err := s.endDrill(ctx, q, k); err != nil {
		return err
	}
	s.reportDrillUnclear(q, k, why)
	return nil
}

// endDrill writes the record, and then removes what the drill needed. What is left of
// one that is cut off here goes by itself: its Job by its time to live.
func (s driller) endDrill(ctx context.Context, q desired.Backup, k *kept) error {
	name := k.record.Drill.Job
	k.record.Drill = nil
	if err := s.writeRequest(ctx, q, k); err != nil {
		return err
	}
	return s.Jobs.Remove(ctx, drillOf(q, k), name)
}

// reportDrill tells of a drill that was judged.
func (s driller) reportDrill(q desired.Backup, k *kept, found backup.Drill, object string) {
	s.Reporter.Said.Clear(q.Key(), report.TopicState)
	s.measure(q, k.record)
	took := found.Duration.Round(time.Millisecond).String()
	if found.Result != backup.DrillPassed {
		// It is kept, counts for no retention rule and is chosen for no restore.
		s.Log.Error("restore drill found a bad backup", "request", q.Key(), "cluster", q.ClusterName(), "url", object, "error", found.Result)
		s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "RestoreDrillFailed", report.Shorten(object+" cannot be relied upon: "+found.Result+drillAgain))
		return
	}
	s.Log.Info("restore drill passed", "request", q.Key(), "cluster", q.ClusterName(),
		"url", object, "revision", found.Revision, "keys", found.Keys, "duration", took)
	s.Reporter.Events.Event(k.live, corev1.EventTypeNormal, "RestoreDrillPassed", report.Shorten(fmt.Sprintf("%s was restored on trial in %s: %d keys at revision %d", object, took, found.Keys, found.Revision)))
}

// drillAgain is what a person can do about a verdict.
const drillAgain = "; if the backup is not to blame, name it in spec.verify.again, and it is restored on trial once more"

// reportDrillUnclear tells of a drill that came to no judgement.
func (s driller) reportDrillUnclear(q desired.Backup, k *kept, why string) {
	s.Reporter.Said.Clear(q.Key(), report.TopicState)
	s.measure(q, k.record)
	s.Log.Error("restore drill came to no judgement", "request", q.Key(), "cluster", q.ClusterName(), "failures", k.record.DrillFailures, "error", why)
	s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "RestoreDrillFailed", report.Shorten("it came to no judgement about the backup: "+why))
}
