package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/schema"
)

// retainAgain is how often the backups of a suspended schedule are looked through:
// they grow old without a new one.
const retainAgain = time.Hour

// retains reports whether backups are to be looked through for those to remove: after
// each good one, and now and then while none come. What is not certain to be
// what Git says removes nothing.
func retains(q desired.Backup, rec Record, now time.Time) bool {
	switch {
	case q.Schedule == nil || q.Held || rec.Last == nil || q.Schedule.Retention == (schema.RetentionSpec{}):
		return false
	case rec.RetainedAfter.IsZero() && rec.Retained.Before(rec.Ended): // as an earlier quorate left it
		return true
	case !rec.RetainedAfter.IsZero() && !rec.RetainedAfter.Equal(rec.Ended):
		return true
	}
	return q.Schedule.Suspend && (clock.Ahead(rec.Retained, now) || now.Sub(rec.Retained) >= retainAgain)
}

// retain removes the backups of a schedule that no rule keeps. That it was tried
// is noted also where it failed: the next backup is the next occasion.
func (s *Scheduler) retain(ctx context.Context, q desired.Backup, k *kept) error {
	done, err := s.removeBackups(ctx, q, k)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k.record.Retained, k.record.RetainedAfter = s.Now().UTC(), k.record.Ended
	if werr := s.writeRequest(ctx, q, k); werr != nil {
		return werr
	}
	removed := len(done.removed)
	if err != nil {
		s.Log.Error("retention failed", "request", q.Key(), "cluster", q.ClusterName(), "removed", removed, "error", err.Error())
		s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "RetentionFailed", report.Shorten(err.Error()))
		return nil
	}
	if removed > 0 {
		s.Reporter.Events.Event(k.live, corev1.EventTypeNormal, "BackupsRemoved", fmt.Sprintf("%d that no rule keeps any more", removed))
	}
	if k.record.RetentionHold != nil {
		s.reportHeld(q, k)
		return nil
	}
	s.Reporter.Said.Clear(q.Key(), topicHeld)
	s.reportRefused(q, k, done)
	return nil
}

// removeBackups carries out the verdicts on a schedule's backups, if they are not
// more than may go without a person's word, and notes in the record what became of it.
func (s *Scheduler) removeBackups(ctx context.Context, q desired.Backup, k *kept) (done removal, err error) {
	to := s.effective(q)
	place, err := schema.ObjectURLDirectory(to.ObjectURLTemplate, s.urlData(q))
	if err != nil {
		return done, fmt.Errorf("remove old backups of %s: %w", q.Key(), err)
	}
	store, err := s.Stores.Open(ctx, q.Metadata.Namespace, to, place)
	if err != nil {
		return done, err
	}
	found, err := s.scheduled(ctx, store, q, place, k)
	if err != nil {
		return done, err
	}
	zone, err := time.LoadLocation(q.Schedule.TimeZone)
	if err != nil {
		return done, fmt.Errorf("remove old backups of %s: %w", q.Key(), err)
	}
	verdicts := schedule.Retain(q.Schedule.Retention, zone, found, s.Now())
	if !slices.ContainsFunc(verdicts, func(v schedule.Verdict) bool { return !v.Keep }) {
		k.record.noteRemoval(q, done, true)
		return done, nil
	}
	if _, doubt := s.neededByGit(); doubt != "" {
		return done, fmt.Errorf("nothing is removed of the backups of %s while %s, which may name one of them: mend it", q.Key(), doubt)
	}
	if problem := k.record.hold(q, verdicts, s.Now()); problem != "" {
		k.record.held(problem, s.Now())
		k.record.RetentionHash = retentionHash(q.Schedule.Retention)
		return done, nil
	}
	_, query, _ := strings.Cut(place, "?")
	done, err = s.remove(ctx, q, k, store, query, verdicts)
	k.record.noteRemoval(q, done, err == nil)
	return done, err
}

// scheduled lists the backups that this schedule took and that lie where it put
// them: no others are ever read, nor those of a schedule of the same name
// in another Kubernetes cluster. A list that lacks the newest one is not the whole
// truth, and nothing follows from it.
func (s *Scheduler) scheduled(ctx context.Context, store backup.Store, q desired.Backup, place string, k *kept) ([]schedule.Stored, error) {
	list, err := store.List(ctx, place)
	var broken *backup.BrokenManifests
	if errors.As(err, &broken) {
		if s.Reporter.Said.Changed(q.Key(), topicBroken, broken.Error()) {
			s.Log.Warn("backup with an unreadable manifest is neither counted nor removed", "request", q.Key(), "error", broken.Error())
		}
	} else if err != nil {
		return nil, err
	}
	needed, err := s.neededBackups(q.ClusterName())
	if err != nil {
		return nil, fmt.Errorf("nothing is removed while nobody knows what is needed: %w", err)
	}
	last := k.record.Last.Object
	var found []schedule.Stored
	others := 0
	newest := !strings.HasPrefix(last, desired.WithoutQuery(place))
	for _, m := range list {
		if m.Schedule != q.Name() || m.Origin != "" {
			continue
		}
		if m.ScheduleUID != string(k.live.UID) {
			others++
			continue
		}
		newest = newest || m.Object == last
		found = append(found, schedule.Stored{URL: m.Object, Time: m.Time, Revision: m.Revision, ClusterID: m.ClusterID, Last: m.Object == last, Damaged: k.record.drillFound(m), Proven: k.record.Verdicts.Judged(m).Drill.Result == backup.DrillPassed, NeededBy: needed[m.Object]})
	}
	if others > 0 && s.Reporter.Said.Changed(q.Key(), topicOthers, "") {
		s.Log.Warn("backups of another schedule of this name are left alone", "request", q.Key(), "backups", others,
			"remedy", "remove by hand those that nobody needs: their schedule has another record, in another Kubernetes cluster, or was deleted")
	}
	if !newest {
		return nil, fmt.Errorf("list backups %s: the newest one, %s, is not among the %d that are listed; nothing is removed before the next backup", desired.WithoutQuery(place), last, len(found))
	}
	return found, nil
}

// What is told once, until it is another sentence.
const (
	topicBroken  = "broken manifests"
	topicOthers  = "backups of others"
	topicHeld    = "retention held"
	topicRefused = "removals refused"
)

// neededBackups are the backups that an operation refers to, by object: those that
// a record names, or a wish in Git. The error is that of the record of the cluster
// that they are of.
func (s *Scheduler) neededBackups(own string) (map[string]string, error) {
	namespace, _, _ := strings.Cut(own, "/")
	if err := s.Cache.Read(namespace); err != nil {
		return nil, err
	}
	needed := map[string]string{}
	need := func(objectURL, by string) {
		if object := desired.WithoutQuery(objectURL); object != "" {
			needed[object] = cmp.Or(needed[object], by)
		}
	}
	inGit, _ := s.neededByGit()
	for objectURL, by := range inGit {
		need(objectURL, by)
	}
	for key, c := range s.Clusters.Desired() {
		need(c.Spec.Recovery.ObjectURL, "spec.recovery of "+key)
	}
	for _, cm := range s.Cache.Records() {
		key := cm.Namespace + "/" + cm.Labels[naming.LabelCluster]
		rec, err := record.Read(cm)
		if err != nil {
			if key == own {
				return nil, err
			}
			continue
		}
		for _, b := range []*record.Backup{rec.Backup, rec.RollBackup} {
			if b != nil {
				need(b.URL, "the record of "+key)
			}
		}
		if rec.Recovering != nil {
			need(rec.Recovering.ObjectURL, "the recovery of "+key)
		}
	}
	return needed, nil
}

// neededByGit are the backups that a wish in Git names, by URL, and why there may be
// more, or "".
func (s *Scheduler) neededByGit() (needed map[string]string, doubt string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.needed, s.doubt
}

// SetNeeded replaces the backups that wishes in Git name, by URL, with what names them:
// no retention removes them. With a doubt, such as "the document at x.yaml:1 has
// errors", it removes none at all.
func (s *Scheduler) SetNeeded(needed map[string]string, doubt string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needed, s.doubt = needed, doubt
}

// urlData are the names in the URL of a request's backups.
func (s *Scheduler) urlData(q desired.Backup) schema.ObjectURLData {
	d := schema.ObjectURLData{Namespace: q.Metadata.Namespace, Name: cmp.Or(q.Spec.Source.ClusterName, q.Metadata.Name), Version: "any"}
	if c, named := s.Clusters.Get(q.Metadata.Namespace + "/" + q.Spec.Source.ClusterName); named && c.Spec.Version != "" {
		d.Version = c.Spec.Version
	}
	return d
}
