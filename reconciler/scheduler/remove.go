package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/schedule"
	"github.com/quorate/quorate/schema"
)

// maxRefused is how many backups a record notes that the store has refused to remove:
// those of three months of a schedule that strikes every hour. It takes about 40 KiB.
const maxRefused = 2200

// retentionHold is why no backup is removed for now.
type retentionHold struct {
	// Since is when it was found first.
	Since time.Time `json:"since"`
	// Problem is a sentence with what a person can do.
	Problem string `json:"problem"`
}

// text is the hold for people.
func (h retentionHold) text() string {
	return h.Problem + " (since " + report.TimeOrNever(h.Since) + ")"
}

// retentionHash says which retention rules a record is about.
func retentionHash(r schema.RetentionSpec) string {
	text, _ := json.Marshal(r) // Numbers and a duration always encode.
	return shortHash(string(text))
}

// shortHash is enough to tell some thousands of texts apart.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// asked reports whether a person has changed the rules since they were last carried
// out, or held: a commit that does is a word that what they say is meant. So is the
// first one that has any.
func (k Record) asked(r schema.RetentionSpec) bool {
	if k.RetentionHash == "" {
		return k.Retained.IsZero() // Later, an earlier quorate has carried them out.
	}
	return k.RetentionHash != retentionHash(r)
}

// refusedBefore reports whether the store has refused to remove a backup before.
func (k Record) refusedBefore(object string) bool {
	return slices.Contains(k.Refused, shortHash(object))
}

// hold says why no backup may be removed without a person's word, or "".
func (k Record) hold(q desired.Backup, verdicts []schedule.Verdict, now time.Time) string {
	remove, most := schedule.AtOnce(verdicts, k.refusedBefore)
	if remove <= most || k.asked(q.Schedule.Retention) {
		return ""
	}
	return fmt.Sprintf("spec.retention would remove %d of %d backups, and at most %d may go at once without a person's word, so that none is removed: "+
		"if the clock, which says %s, and spec.retention are right, commit any change of spec.retention; it is carried out after the next backup",
		remove, len(verdicts), most, report.TimeOrNever(now))
}

// held notes that no backup is removed for now, and why.
func (k *Record) held(problem string, now time.Time) {
	since := now.UTC()
	if k.RetentionHold != nil {
		since = k.RetentionHold.Since
	}
	k.RetentionHold = &retentionHold{Since: since, Problem: problem}
}

// removal is what became of the verdicts on a schedule's backups.
type removal struct {
	removed []string
	// refused are those that the store does not remove, with its first answer.
	refused []string
	why     error
}

// remove carries out the verdicts, oldest first. One that the store refuses to remove
// is in no other's way; any other failure ends it.
func (s *Scheduler) remove(ctx context.Context, q desired.Backup, k *kept, store backup.Store, query string, verdicts []schedule.Verdict) (done removal, err error) {
	for _, v := range slices.Backward(verdicts) {
		log := s.Log.With("request", q.Key(), "url", v.URL, "time", report.TimeOrNever(v.Time), "revision", v.Revision, "reason", strings.Join(v.Reasons, ", "))
		if v.Keep {
			log.Info("backup kept")
			continue
		}
		if err := s.Lease(q.ClusterName()); err != nil {
			return done, err
		}
		if !k.record.refusedBefore(v.URL) {
			log.Info("removing backup")
		}
		switch err := store.Remove(ctx, v.URL+"?"+query); {
		case err == nil, errors.Is(err, backup.ErrNotFound):
			done.removed = append(done.removed, v.URL)
		case backup.Refused(err):
			done.refused = append(done.refused, v.URL)
			if done.why == nil {
				done.why = err
			}
		default:
			return done, err
		}
	}
	return done, nil
}

// noteRemoval notes in the record what was removed and what was refused. whole says
// that all verdicts were carried out.
func (k *Record) noteRemoval(q desired.Backup, done removal, whole bool) {
	k.dropVerdicts(done.removed...)
	var refused []string
	if !whole {
		refused = slices.Clone(k.Refused)
	}
	for _, object := range done.refused {
		refused = append(refused, shortHash(object))
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	k.Refused = refused[:min(len(refused), maxRefused)]
	if whole {
		k.RetentionHash, k.RetentionHold = retentionHash(q.Schedule.Retention), nil
	}
}

// reportRefused tells once of the backups that the store does not remove.
func (s *Scheduler) reportRefused(q desired.Backup, k *kept, done removal) {
	if len(done.refused) == 0 {
		s.Reporter.Said.Clear(q.Key(), topicRefused)
		return
	}
	if !s.Reporter.Said.Changed(q.Key(), topicRefused, strings.Join(done.refused, " ")) {
		return
	}
	s.Log.Warn("the store refuses to remove backups", "request", q.Key(), "cluster", q.ClusterName(), "backups", len(done.refused), "error", done.why.Error(),
		"remedy", "they are tried again after each backup; where no lock or policy of the store keeps them, give quorate the right to delete")
	s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "RetentionRefused", report.Shorten(fmt.Sprintf("%d backups that no rule keeps stay, for the store refuses to remove them: %v", len(done.refused), done.why)))
}

// reportHeld tells once that no backup is removed without a person's word.
func (s *Scheduler) reportHeld(q desired.Backup, k *kept) {
	hold := k.record.RetentionHold
	if !s.Reporter.Said.Changed(q.Key(), topicHeld, hold.Since.String()) {
		return
	}
	s.Log.Warn("retention is held", "request", q.Key(), "cluster", q.ClusterName(), "reason", hold.Problem, "since", report.TimeOrNever(hold.Since))
	s.Reporter.Events.Event(k.live, corev1.EventTypeWarning, "RetentionHeld", report.Shorten(hold.text()))
}
