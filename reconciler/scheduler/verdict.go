package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/stores"
)

// maxVerdicts is how many verdicts a record keeps, those of the newest drills: about
// 20 KiB of the 1 MiB that a ConfigMap may have.
const maxVerdicts = 100

// storeVerdict notes what a drill has found about a backup: in its manifest, so that a
// search for a backup to restore knows. Where the store refuses that, by a lock, a
// retention policy or for want of a right, the schedule's record keeps it.
func (s driller) storeVerdict(ctx context.Context, q desired.Backup, k *kept, d *begunDrill, found backup.Drill) error {
	store, objectURL, _, err := s.backupOf(ctx, q, d)
	if err == nil {
		d.URL = objectURL
		err = s.Lease(q.ClusterName())
	}
	if err == nil {
		err = store.Annotate(ctx, d.URL, func(m *backup.Manifest) { m.Drill, d.Backup = found, m.Time })
	}
	object := desired.WithoutQuery(d.URL)
	switch {
	case err == nil, errors.Is(err, backup.ErrNotFound):
		k.record.dropVerdicts(object)
		return nil
	case !backup.Refused(err):
		return fmt.Errorf("note the restore drill: %w", err)
	}
	if len(k.record.Verdicts) == 0 { // Told once, also by the next process.
		s.Log.Warn("the store takes no word of restore drills", "request", q.Key(), "url", object, "error", err.Error(),
			"remedy", "what drills find is kept in the record of the schedule, where retention and the choice of a backup to restore find it; let quorate write manifests, so that it outlives this Kubernetes cluster")
		s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "RestoreDrillNotStored", report.Shorten("what restore drills find is kept in this record, for the store refuses it: "+err.Error()))
	}
	k.record.keepVerdict(object, stores.Verdict{Time: found.Time, Result: found.Result})
	return nil
}

// confirmDamage reads the whole backup where a drill's pod was given other bytes than were
// verified, and fails unless they are in the store, too: something may answer pods in the
// store's place, and a verdict would let restores begin with an older backup.
func (s driller) confirmDamage(ctx context.Context, q desired.Backup, d *begunDrill) error {
	store, objectURL, _, err := s.backupOf(ctx, q, d)
	if err == nil {
		_, err = store.Verify(ctx, objectURL)
	}
	switch {
	case errors.Is(err, backup.ErrDamaged):
		return nil
	case err != nil:
		return fmt.Errorf("it could not be read to confirm that: %w", err)
	}
	return errors.New("the store gives quorate what was verified: look at what answers pods in its place")
}

// keepVerdict keeps a verdict in the record, in the place of the oldest when there
// are too many.
func (k *Record) keepVerdict(object string, v stores.Verdict) {
	k.Verdicts = maps.Clone(k.Verdicts)
	if k.Verdicts == nil {
		k.Verdicts = stores.Verdicts{}
	}
	k.Verdicts[object] = v
	for len(k.Verdicts) > maxVerdicts {
		oldest := ""
		for o, other := range k.Verdicts {
			if oldest == "" || other.Time.Before(k.Verdicts[oldest].Time) {
				oldest = o
			}
		}
		delete(k.Verdicts, oldest)
	}
}

// dropVerdicts forgets what is kept about backups that are gone, or whose manifests
// say it themselves.
func (k *Record) dropVerdicts(objects ...string) {
	k.Verdicts = maps.Clone(k.Verdicts)
	for _, object := range objects {
		delete(k.Verdicts, object)
	}
}

// drillFound says why a backup cannot be restored, as far as a drill has found out:
// the newest one that its manifest or the record knows of.
func (k Record) drillFound(m backup.Manifest) string {
	if found := k.Verdicts.Judged(m).Drill.Result; found != backup.DrillPassed {
		return found
	}
	return ""
}
