package plan

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

const mi = int64(1) << 20

// looks changes both looks.
func looks(f func(*state.Round)) mutation {
	return func(s *situation.Situation) {
		for i := range s.Observed.Rounds {
			f(&s.Observed.Rounds[i])
		}
	}
}

// holds gives every member a database: its file, what it needs of it, and its
// quota, in Mi.
func holds(file, inUse, quota int64) mutation {
	return looks(func(r *state.Round) {
		for i := range r.Members {
			m := &r.Members[i]
			m.DBSize, m.DBInUse, m.Quota, m.Revision, m.CompactRevision = file*mi, inUse*mi, quota*mi, 900, 100
			m.Version = "3.5.35"
		}
	})
}

// alarmed raises alarms.
func alarmed(alarms ...state.Alarm) mutation {
	return looks(func(r *state.Round) { r.Alarms = alarms })
}

// inUse changes one database.
func database(ordinal int32, file, inUse int64) mutation {
	return func(s *situation.Situation) {
		for i := range s.Observed.Rounds {
			m := s.Observed.Rounds[i].Member(naming.Member("orders", ordinal))
			m.DBSize, m.DBInUse = file*mi, inUse*mi
		}
	}
}

func compacted(s *situation.Situation) {
	outlook.EachMember(s, func(m *state.Member) { m.CompactRevision = m.Revision })
}

// recordCompacted records a compaction of a minute ago.
func recordCompacted(revision int64) mutation {
	return func(s *situation.Situation) {
		s.Observed.Record.Compacted = &state.Compacted{Revision: revision, At: noon.Add(-time.Minute)}
	}
}

func backedUpForCompaction(age time.Duration) mutation {
	return func(s *situation.Situation) {
		s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", For: state.ForCompaction, Time: noon.Add(-age)}
	}
}

// raised asks for a quota in Mi, in a separate commit.
func raised(quota int64) mutation {
	return with(commit(oldVersion), func(s *situation.Situation) {
		s.Desired.Spec.Etcd.QuotaBackendBytes = resource.NewQuantity(quota*mi, resource.BinarySI)
	})
}

func TestAlarms(t *testing.T) {
	noSpace := alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"})
	full := with(noSpace, holds(100, 99, 100))
	release := func(version string) mutation {
		return looks(func(r *state.Round) {
			for i := range r.Members {
				r.Members[i].Version = version
			}
		})
	}
	checkRule(t, alarms, []ruleCase{
		{name: "I2: not while a given-up roll has broken a member", change: with(holds(90, 10, 100), alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}), commit(newVersion), begun, rolled(newVersion, 1), func(s *situation.Situation) { s.Desired.Template = "c" }, begun, down(1), leads(0))},
		{name: "17: no alarm", change: holds(100, 99, 100)},
		{name: "an unformed cluster", change: unformed},
		{name: "nor is there one in a cluster that has not formed", change: with(alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m1"}), compared(1, 2, 1), func(s *situation.Situation) { s.Observed.Record = &state.Record{} })},
		{name: "a list that cannot be had says nothing", change: with(alarmed(state.Alarm{Kind: state.Corrupt, MemberID: "m1"}), now(func(r *state.Round) { r.Problem = "timeout" }))},
		{name: "no member was asked", change: func(s *situation.Situation) { s.Observed.Rounds = nil }},
		{name: "an alarm that is unknown is the gate's", change: alarmed(state.Alarm{Kind: "LATER", MemberID: "m1"})},
		{name: "and so is one beside NOSPACE", change: with(full, alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}, state.Alarm{Kind: "LATER", MemberID: "m1"}))},

		{name: "91: history is dropped only after a backup", change: full, want: "back up through orders-2: the database of orders-0 is full"},
		{name: "91: a backup for something else does not do", change: with(full, backedUp(time.Minute)), want: "back up through orders-2"},
		{name: "91: nor does an old one", change: with(full, backedUpForCompaction(16*time.Minute)), want: "back up through orders-2"},
		{name: "91: nor one of another cluster", change: with(full, backedUpForCompaction(time.Minute), func(s *situation.Situation) { s.Observed.Record.Backup.ClusterID = "c2" }), want: "back up through orders-2"},
		{name: "91: a backup that cannot be stored", change: with(full, func(s *situation.Situation) { s.Desired.BackupURL = "" }), want: "Refused: the compaction that frees space needs a backup first"},
		{name: "91: with the backup history goes", change: with(full, backedUpForCompaction(time.Minute)), want: "compact the history: orders-0 needs most of its quota of 100Mi, old revisions included; the newest value of every key stays (it needs 99Mi)"},
		{name: "91: without one where Git says so", change: with(full, func(s *situation.Situation) { s.Desired.Spec.Upgrade.Backup = schema.BackupSkip }), want: "compact the history"},
		{name: "91: history is not dropped where a smaller file helps", change: with(noSpace, holds(100, 10, 100)), want: "defragment orders-1: its file comes near its quota of 100Mi, and some of it can be given back (90Mi of 100Mi)"},
		{name: "91: not even when it is full, but has no history", change: with(noSpace, holds(100, 81, 100), compacted), want: "defragment orders-1"},
		{name: "91: nor twice, although no member tells of the first time", change: with(full, backedUpForCompaction(time.Minute), recordCompacted(900)), want: "defragment orders-1: its file comes near its quota of 100Mi, and the compaction has made room in it (it has 100Mi)"},
		{name: "91: how far history is gone is what the last comparison says", change: with(full, backedUpForCompaction(time.Minute), compacted, now(func(r *state.Round) { r.Deep, r.Member("orders-2").CompactRevision = false, 0 })), want: "Unhealthy: the cluster takes no writes (NOSPACE)"},
		{name: "91: but again where more was deleted", change: with(full, backedUpForCompaction(time.Minute), recordCompacted(800)), want: "compact the history"},
		{name: "91: what was defragmented after the compaction is as small as it gets", change: with(full, recordCompacted(900), func(s *situation.Situation) {
			s.Observed.Record.Defragmented = map[string]time.Time{"orders-0": noon, "orders-1": noon, "orders-2": noon}
		}), want: "Unhealthy: the cluster takes no writes (NOSPACE): orders-0 has reached its quota of 100Mi, and there is nothing left to compact or to give back (it needs 99Mi)"},
		{name: "91: a quota that only the pod tells", change: with(noSpace, holds(100, 10, 0), func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Quota = 100 * mi
			}
		}), want: "defragment orders-1"},
		{name: "91: and one that no member reports is etcd's own", change: with(noSpace, holds(1000, 10, 0)), want: "disarm NOSPACE on member m1"},

		{name: "I23: the leader goes last, and leads no longer", change: with(noSpace, holds(10, 10, 100), database(2, 100, 10)), want: "move the leader orders-2 → orders-0: orders-2 is defragmented next"},
		{name: "I23: a single member has no other to lead", size: 1, change: with(alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m0"}), holds(100, 10, 100)), want: "defragment orders-0"},
		{name: "I23: another follower goes first", change: with(noSpace, holds(100, 10, 100), leads(1)), want: "defragment orders-2"},
		{name: "I23: not on an unsafe release", change: with(noSpace, holds(100, 10, 100), release("3.5.22"), samePods("3.5.22")), want: "Refused: orders-1 should be defragmented because its file comes near its quota of 100Mi, and some of it can be given back; it is not: a defragmentation of 3.5.22 may corrupt its data: that is fixed in 3.5.23 (90Mi of 100Mi); upgrade first; under the alarm NOSPACE raise"},
		{name: "I23: nor without room for the copy", change: with(noSpace, holds(100, 10, 100), volumeWith(1, 200<<20)), want: "it is not: its volume of 200Mi has no room for a copy beside the file and the log, and a full disk stops etcd (90Mi of 100Mi); grow spec.storage.size to 512Mi"},
		{name: "I23: nor does the leader move for that one", change: with(noSpace, holds(10, 10, 100), database(2, 100, 10), volumeWith(2, 200<<20)), want: "Refused: orders-2 should be defragmented"},
		{name: "I23: nor on one that is unknown", change: with(noSpace, holds(100, 10, 100), release("?"), samePods("?")), want: "it is not: its release is unknown"},
		{name: "47: a pod of no member is not asked", change: with(noSpace, holds(100, 10, 100), func(s *situation.Situation) {
			s.Observed.Pods = append(s.Observed.Pods, state.Pod{Name: "orders-3", Ordinal: 3, Ready: true})
		}), want: "defragment orders-1"},
		{name: "I23: nor does the leader move for that", change: with(noSpace, holds(10, 10, 100), database(2, 100, 10), release("3.5.22"), samePods("3.5.22")), want: "Refused: orders-2 should be defragmented"},
		{name: "I23: not while a member is down", change: with(noSpace, holds(100, 10, 100), down(0))},
		{name: "I23: not after one look", change: with(noSpace, holds(100, 10, 100), func(s *situation.Situation) { s.Observed.Rounds = s.Observed.Rounds[1:] }), want: "Confirm: health counts when it was seen twice"},
		{name: "I23: not while one has not caught up", change: with(noSpace, holds(100, 10, 100), of(0, func(m *state.Member) { m.AppliedIndex = 4999 })), want: "Confirm: orders-0 has not applied yet what the leader had committed (4999 of 5000 entries)"},
		{name: "I23: not while a pod is not ready", change: with(noSpace, holds(100, 10, 100), func(s *situation.Situation) { podAt(s, 0).Ready = false }), want: "Unhealthy: the pod of orders-0 is not ready, and space is freed (alarm NOSPACE) only"},
		{name: "I23: that a member reports the alarm itself is no trouble", change: with(noSpace, holds(100, 10, 100), looks(func(r *state.Round) {
			r.Members[0].Errors = []state.MemberError{{Text: "memberID:1 alarm:NOSPACE ", Alarm: state.NoSpace}}
		})), want: "defragment orders-1"},
		{name: "I23: that it reports another is", change: with(noSpace, holds(100, 10, 100), looks(func(r *state.Round) {
			r.Members[0].Errors = []state.MemberError{{Text: "memberID:1 alarm:NOSPACE ", Alarm: state.NoSpace}, {Text: "etcdserver: no leader"}}
		}))},

		{name: "91: what cannot be freed is a person's", change: with(full, compacted), want: "Unhealthy: the cluster takes no writes (NOSPACE): orders-0 has reached its quota of 100Mi, and there is nothing left to compact or to give back (it needs 99Mi)"},
		{name: "91: not disarmed while one is over its quota", change: with(noSpace, holds(10, 10, 100), database(1, 100, 99), compacted), want: "Unhealthy: the cluster takes no writes (NOSPACE): orders-1 has reached its quota of 100Mi, and there is nothing left to compact or to give back (it needs 99Mi); raise spec.etcd.quotaBackendBytes"},
		{name: "91: nor while one has a size that is unknown", change: with(noSpace, holds(10, 10, 100), database(1, 0, 0)), want: "Unhealthy: the size of the database of orders-1 is unknown"},
		{name: "91: disarmed when all are below", change: with(noSpace, holds(79, 79, 100)), want: "disarm NOSPACE on member m1: every database is below its quota again"},
		{name: "91: one alarm after the other", change: with(alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m0"}, state.Alarm{Kind: state.NoSpace, MemberID: "m1"}), holds(10, 10, 100)), want: "disarm NOSPACE on member m0"},

		{name: "91: a roll to a larger quota goes first", change: with(full, raised(200))},
		{name: "91: one that is still too small does not help", change: with(full, raised(110)), want: "back up through orders-2"},
		{name: "91: nor does an upgrade", change: with(full, raised(200), commit(newVersion)), want: "back up through orders-2"},
	})
}

// samePods makes the pods agree with the version that the members report.
func samePods(version string) mutation {
	return func(s *situation.Situation) {
		for i := range s.Observed.Pods {
			s.Observed.Pods[i].Version = version
		}
	}
}

// The gate lets exactly that pass which ends the alarm.
func TestGateUnderNoSpace(t *testing.T) {
	full := with(alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}), holds(100, 99, 100))
	checkRule(t, health, []ruleCase{
		{name: "a roll to a larger quota", change: with(full, raised(200))},
		{name: "also where the StatefulSet tells of a version that no pod has", change: with(full, raised(200), func(s *situation.Situation) { s.Observed.Set.CurrentVersion = newVersion })},
		{name: "a roll that mends the member that it broke", change: with(holds(90, 10, 100), alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}), commit(newVersion), begun, rolled(newVersion, 1), func(s *situation.Situation) { s.Desired.Template = "c" }, begun, down(1), leads(0))},
		{name: "in the middle, too", change: with(full, raised(200), begun, rolled(oldVersion, 2), looks(func(r *state.Round) { r.Members[2].Quota = 200 * mi }))},
		{name: "no roll", change: full, want: "alarm: NOSPACE on member m1"},
		{name: "a roll of something else", change: with(full, commit(oldVersion), func(s *situation.Situation) {
			s.Desired.Spec.Etcd.QuotaBackendBytes = resource.NewQuantity(100*mi, resource.BinarySI)
		}), want: "alarm: NOSPACE on member m1"},
		{name: "an upgrade", change: with(full, raised(200), commit(newVersion)), want: "alarm: NOSPACE on member m1"},
		{name: "a quota that is too small", change: with(full, raised(110)), want: "alarm: NOSPACE on member m1"},
		{name: "CORRUPT beside it", change: with(full, raised(200), alarmed(state.Alarm{Kind: state.NoSpace, MemberID: "m1"}, state.Alarm{Kind: state.Corrupt, MemberID: "m1"})), want: "alarm: NOSPACE on member m1, CORRUPT on member m1"},
		{name: "a full database without an alarm", change: with(holds(100, 99, 100), raised(200)), want: "the database of orders-0 has reached its quota"},
	})
	closed := func(s *situation.Situation) {
		s.Desired.Spec.Maintenance = []schema.MaintenanceWindow{windowOf("0 2 * * 6", "1h", "UTC")}
	}
	checkRule(t, window, []ruleCase{
		{name: "I26: it waits for no window", change: with(full, raised(200), closed)},
		{name: "I26: another roll does", change: with(commit(oldVersion), closed), want: "Waiting: outside the maintenance window"},
	})
}

func TestSizesForPeople(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1Ki", 1536: "1.5Ki", 2 << 30: "2Gi", 2<<30 + 100<<20: "2.1Gi", 10 << 30: "10Gi"} {
		if got := state.SizeText(bytes); got != want {
			t.Errorf("%d: got %q, want %q", bytes, got, want)
		}
	}
}
