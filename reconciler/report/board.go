package report

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/schema"
)

// Board is what is known of every object, for people. It decides nothing.
type Board struct {
	// known is what the last pass found, by the key of a cluster, backup or schedule.
	known memo.Map[knownStatus]
	// measured is what the last pass has measured of each cluster.
	measured memo.Map[schema.Measured]
	// revision rises with each change of what is shown.
	revision atomic.Uint64

	mu      sync.Mutex
	orphans []schema.Status
}

// knownStatus is what one pass found, and what has failed since.
type knownStatus struct {
	// list is never changed.
	list []schema.Status
	// failure is what the last passes failed with, Failures of them in a row.
	failure  string
	failures int
	// retry is since when, and when it is tried again; "" for a short while.
	retry string
	// reason is why it is not what Git says: it fails, or does not last.
	reason string
}

// The reasons of objects that are not what Git says, whatever quorate does.
const (
	reasonFailed   = "Failed"
	reasonRepeated = "Repeated"
)

// shownFailures keeps a conflict or a blip from being news.
const shownFailures = 2

// Note keeps what a pass found.
func (s *Board) Note(key string, list []schema.Status) {
	s.change(key, func(k *knownStatus) { k.list = list })
}

// Failed keeps what a pass failed with; first is what is known where there was no
// pass before. The same error with other numbers in it is the same error.
func (s *Board) Failed(key string, err error, first schema.Status) {
	s.change(key, func(k *knownStatus) {
		k.failures++
		if text := Shorten(err.Error()); WithoutNumbers(text) != WithoutNumbers(k.failure) {
			k.failure = text
		}
		if k.reason != reasonFailed {
			k.reason, k.retry = reasonFailed, ""
		}
		if k.list == nil {
			k.list, k.failures = []schema.Status{first}, shownFailures
		}
	})
}

// again keeps what fails or does not last, since when, and when it is tried again. Passes that
// found something else to wait for do not hide it.
func (s *Board) again(key, reason, what, retry string) {
	s.change(key, func(k *knownStatus) {
		if what = Shorten(what); WithoutNumbers(what) != WithoutNumbers(k.failure) {
			k.failure = what
		}
		k.failures, k.retry, k.reason = max(k.failures, shownFailures), retry, reason
	})
}

// Wording is how a failure is put: the words that are known already, where only
// numbers in them differ.
func (s *Board) Wording(key, failure string) string {
	for _, known := range s.known.Get(key).list {
		if before := known.Condition(schema.ConditionStalled).Message; WithoutNumbers(before) == WithoutNumbers(failure) {
			return before
		}
	}
	return failure
}

// Succeeded ends a row of failures.
func (s *Board) Succeeded(key string) {
	s.change(key, func(k *knownStatus) { k.failure, k.failures, k.retry, k.reason = "", 0, "", "" })
}

// Forget drops what is known of an object.
func (s *Board) Forget(key string) {
	s.known.Forget(key)
	s.measured.Forget(key)
	s.revision.Add(1)
}

// Revision is another number after each change of what is known: who keeps up with
// thousands of objects at rest need not compare them.
func (s *Board) Revision() uint64 { return s.revision.Load() }

// setOrphans replaces the clusters that no file names.
func (s *Board) setOrphans(orphans []schema.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !reflect.DeepEqual(s.orphans, orphans) {
		s.revision.Add(1)
	}
	s.orphans = orphans
}

func (s *Board) change(key string, edit func(k *knownStatus)) {
	s.known.Change(key, func(k knownStatus) knownStatus {
		before := k.shown()
		edit(&k)
		if !reflect.DeepEqual(before, k.shown()) {
			s.revision.Add(1)
		}
		return k
	})
}

// shown is what the pass found, and instead of it what fails again and again.
func (k knownStatus) shown() []schema.Status {
	if k.failures < shownFailures {
		return k.list
	}
	list, message := slices.Clone(k.list), k.failure
	if k.retry != "" {
		message += "; " + k.retry
	}
	for i, status := range list {
		if phase, _ := status.Phase(); i == 0 || phase != schema.PhaseReady { // a restore that is done stays done
			list[i].Status.Conditions = schema.ConditionsOf(schema.PhaseStalled, k.reason, message)
		}
	}
	return list
}

// numbered are words with a number in them, such as an address or the number that
// a server gave a request.
var numbered = regexp.MustCompile(`\S*[0-9]\S*`)

// WithoutNumbers is a text by which what differs in numbers, names or places only is the
// same.
func WithoutNumbers(text string) string { return numbered.ReplaceAllString(text, "#") }

// UnseenCluster is what is shown of a cluster before the first pass.
func UnseenCluster(c desired.Cluster) schema.Status { return Unseen(schema.KindCluster, c.Metadata) }

// UnseenBackup is what is shown of a backup or schedule before the first pass.
func UnseenBackup(q desired.Backup) schema.Status { return Unseen(q.Kind(), q.Metadata) }

// UnseenRestore is what is shown of the restore that makes a cluster before the first pass.
func UnseenRestore(c desired.Cluster) schema.Status {
	return Unseen(schema.KindRestore, schema.Metadata{Namespace: c.Metadata.Namespace, Name: c.Restore.Name})
}

// Unseen is what is shown of an object before the first pass.
func Unseen(kind string, m schema.Metadata) schema.Status {
	return schema.NewStatus(kind, m.Namespace, m.Name, schema.PhaseUnknown, "NotLookedAt", "not reconciled yet")
}

// Known is what is known of an object by its key, as the passes have found it; nil before the first. It is
// shared, and never changed.
func (s *Board) Known(key string) []schema.Status { return s.known.Get(key).shown() }

// Orphans are the clusters that no file names.
func (s *Board) Orphans() []schema.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orphans
}

// WithScheduled adds to the clusters what their schedules have taken last.
func WithScheduled(list []schema.Status) {
	last := map[string][]schema.BackupStatus{}
	for _, s := range list {
		if b := s.Status.Schedule; b != nil && b.Last != nil {
			taken := *b.Last
			taken.For = "schedule " + s.Metadata.Name
			last[b.Cluster] = append(last[b.Cluster], taken)
		}
	}
	for i, s := range list {
		taken := last[s.Metadata.Namespace+"/"+s.Metadata.Name]
		if s.Status.Cluster == nil || len(taken) == 0 {
			continue
		}
		slices.SortFunc(taken, func(a, b schema.BackupStatus) int { return cmp.Compare(a.For, b.For) })
		c := *s.Status.Cluster
		c.Backups = slices.Concat(c.Backups, taken)
		list[i].Status.Cluster = &c
	}
}
