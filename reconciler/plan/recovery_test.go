package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// leftAlone is a cluster without a quorum: those that are named answer, each for
// itself, and the others do not.
func leftAlone(answering ...int32) mutation {
	return func(s *situation.Situation) {
		last := s.Observed.Round()
		*last = state.Round{At: last.At, Problem: "orders-0: linearizable read: context deadline exceeded", Members: last.Members}
		left := map[int32]bool{}
		for _, i := range answering {
			left[i] = true
		}
		for _, p := range s.Observed.Pods {
			m := last.Member(p.Name)
			m.Leader, m.Revision = "", 1000+int64(p.Ordinal)
			m.Problem = "linearizable read: context deadline exceeded"
			podAt(s, p.Ordinal).Ready = false
			if !left[p.Ordinal] {
				*m = state.Member{Name: m.Name, Problem: "status: connection refused"}
			}
		}
		s.Observed.Volumes = []state.Volume{
			{Claim: "data-orders-10", Member: "orders-10", Ordinal: 10, Trouble: "lost"},
			{Claim: "data-orders-2", Member: "orders-2", Ordinal: 2, Terminating: true},
			{Claim: "data-orders-0", UID: "claim-0", Member: "orders-0"},
		}
	}
}

// stuck gives a pod a trouble that Kubernetes has reported for an hour.
func stuck(ordinal int32, trouble string) mutation {
	return func(s *situation.Situation) { podAt(s, ordinal).Trouble = trouble }
}

// born makes a pod a young one.
func born(ordinal int32, age time.Duration) mutation {
	return func(s *situation.Situation) { podAt(s, ordinal).Created = s.Now.Add(-age) }
}

// withoutPod takes a pod away.
func withoutPod(ordinal int32) mutation {
	return func(s *situation.Situation) {
		for i, p := range s.Observed.Pods {
			if p.Ordinal == ordinal {
				s.Observed.Pods = append(s.Observed.Pods[:i:i], s.Observed.Pods[i+1:]...)
				return
			}
		}
	}
}

func TestQuorumLoss(t *testing.T) {
	wiped := stuck(1, "guard: the volume of orders-1 is empty")
	checkRule(t, recovery.Lost, []ruleCase{
		{name: "a healthy cluster passes"},
		{name: "an unformed one is the bootstrap's", change: unformed},
		{name: "no member was asked", change: func(s *situation.Situation) { s.Observed.Rounds = nil }},
		{name: "an unformed one whose members cannot be listed", change: with(leftAlone(0), func(s *situation.Situation) { s.Observed.Record = &state.Record{} })},
		{name: "85: a StatefulSet that is gone comes back first", change: with(leftAlone(0), func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "a list without anybody is an agreement, too", change: with(leftAlone(0), now(func(r *state.Round) { r.Problem, r.Members = "", nil }))},
		{name: "one of three is no loss", change: down(1)},
		{name: "a list is an agreement, whatever pods say", change: with(wiped, stuck(2, "x"), withoutPod(0))},
		{name: "84: two of three", change: with(leftAlone(0), wiped), want: "Unhealthy: the quorum is lost: it takes 2 of 3 members, and 1 answer; orders-0 answers; "},
		{name: "84: who answers says how far it is", change: with(leftAlone(0), wiped), want: "(orders-0 is at revision 1000, raft term 7 and index 5000; "},
		{name: "84: who does not, why", change: with(leftAlone(0), wiped), want: "orders-1 does not answer: guard: the volume of orders-1 is empty; orders-2 does not answer; "},
		{name: "86: all of them", change: leftAlone(), want: "it takes 2 of 3 members, and 0 answer"},
		{name: "86: the only one", size: 1, change: leftAlone(), want: "it takes 1 of 1 member, and 0 answer"},
		{name: "volumes by their numbers", change: leftAlone(0), want: "volume claims: data-orders-0, data-orders-2 (being deleted), data-orders-10 (lost)"},
		{name: "no volumes", change: with(leftAlone(0), func(s *situation.Situation) { s.Observed.Volumes = nil }), want: "no volume claim is left"},
		{name: "no backup", change: leftAlone(0), want: "no verified backup is on record"},
		{name: "a backup and its age, and nothing of its query", change: with(leftAlone(0), func(s *situation.Situation) {
			s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", URL: "s3://backups/1.db?secret=1", Time: noon.Add(-50 * time.Hour)}
		}), want: "the last verified backup is s3://backups/1.db (orders-0 is at revision 1000, raft term 7 and index 5000; orders-1: status: connection refused; orders-2: status: connection refused; the backup is 50h0m old)"},
		{name: "a backup from the future has no age", change: with(leftAlone(0), func(s *situation.Situation) {
			s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", URL: "s3://backups/1.db", Time: noon.Add(time.Hour)}
		}), want: "the last verified backup is s3://backups/1.db, of unknown age"},
		{name: "another cluster's backup is none", change: with(leftAlone(0), func(s *situation.Situation) {
			s.Observed.Record.Backup = &state.Backup{ClusterID: "c2", URL: "s3://backups/1.db", Time: noon}
		}), want: "no verified backup is on record"},
		{name: "two that answer will agree", change: leftAlone(0, 1)},
		{name: "two of five do not", size: 5, change: leftAlone(0, 4), want: "it takes 3 of 5 members, and 2 answer"},
		{name: "87: one that just starts may come back", change: with(leftAlone(0), born(1, time.Minute))},
		{name: "87: or is in trouble since a moment", change: with(leftAlone(0), wiped, born(1, 10*time.Second))},
		{name: "87: or was cut off a moment ago", change: with(leftAlone(0), wiped, func(s *situation.Situation) { podAt(s, 2).UnreadySince = noon.Add(-10 * time.Second) })},
		{name: "76: a young one that was cut off does not just start", change: with(leftAlone(0), wiped, born(2, time.Minute), func(s *situation.Situation) { podAt(s, 2).UnreadySince = noon.Add(-40 * time.Second) }), want: "the quorum is lost"},
		{name: "but not after a while", change: with(leftAlone(0), wiped, born(1, 40*time.Second)), want: "the quorum is lost"},
		{name: "another in its place is not the member", change: with(leftAlone(0, 1), of(1, func(m *state.Member) { m.ID = "m9" })), want: "orders-1 does not answer: its pod answers as member m9"},
		{name: "no pod", change: with(leftAlone(0, 1), withoutPod(1)), want: "orders-1 does not answer: it has no pod"},
		{name: "a node that is gone", change: with(leftAlone(0, 1), func(s *situation.Situation) { podAt(s, 1).Terminating = true }), want: "orders-1 does not answer: its pod is shutting down"},
		{name: "no address", change: with(leftAlone(), now(func(r *state.Round) { r.Members = nil })), want: "orders-0 does not answer: its pod has no address yet"},
		{name: "a roll of a small cluster is no loss", size: 1, change: with(commit(newVersion), begun, leftAlone())},
		{name: "nor is its last step", size: 1, change: with(commit(newVersion), begun, rolled(newVersion, 0), leftAlone())},
		{name: "nor is a roll that is given up", size: 1, change: with(commit(newVersion), begun, rolled(newVersion, 0), func(s *situation.Situation) { s.Desired.Template = "a" }, leftAlone())},
		{name: "but two of three in a roll are", change: with(commit(newVersion), begun, leftAlone(0)), want: "the quorum is lost"},
		{name: "93: the choice is the one that is furthest", size: 5, change: leftAlone(0, 4), want: `{clusterID: "c1", member: orders-4}`},
		{name: "86: no member is left to choose", change: leftAlone(), want: `commit spec.recovery: {clusterID: "c1", objectURL: the URL of a backup}`},
		{name: "93: whoever is asked last", size: 5, change: with(leftAlone(0, 4), of(0, func(m *state.Member) { m.Revision = 2000 })), want: `{clusterID: "c1", member: orders-0}`},
		{name: "47: one that may have been promoted has a vote", size: 1, change: with(leftAlone(0), func(s *situation.Situation) {
			s.Observed.Record.Joining = &state.Joining{Member: "orders-1", ID: "n1", Promoting: true}
		}), want: "it takes 2 of 2 members, and 1 answer"},
		{name: "47: and one that is recorded already has one, not two", change: with(leftAlone(0, 1), func(s *situation.Situation) {
			s.Observed.Record.Joining = &state.Joining{Member: "orders-2", ID: "m2", Promoting: true}
		})},
		{name: "43: a learner has none", size: 1, change: with(leftAlone(0), func(s *situation.Situation) { s.Observed.Record.Joining = &state.Joining{Member: "orders-1", ID: "n1"} })},
		{name: "17: members on nodes that do not report may serve", change: with(leftAlone(0), onSilentNode(1, 2)), want: "Unreachable: it is unknown whether the cluster has a quorum: 1 of 3 members answer, and these are on nodes that do not report to Kubernetes, where they may serve: orders-1 on node n1, orders-2 on node n2"},
		{name: "17: also one whose pod Kubernetes evicts", change: with(leftAlone(0), onSilentNode(1), podOfMember(1, func(p *state.Pod) { p.Terminating = true })), want: "Unreachable: "},
		{name: "17: no recovery begins beside them", change: with(leftAlone(0), onSilentNode(1, 2), asksFor("c1", "orders-0", "")), want: "spec.recovery is not begun, because it would stop a cluster that may serve"},
		{name: "17: too few of them are no quorum", size: 5, change: with(leftAlone(0), onSilentNode(1)), want: "Unhealthy: the quorum is lost"},
		{name: "17: one beside two that have lost theirs may bring it back", size: 3, change: with(leftAlone(), onSilentNode(1)), want: "Unhealthy: the quorum is lost"},
		{name: "17: nothing is done on its own", change: leftAlone(0), want: `or, to give up what only they have, commit spec.recovery: {clusterID: "c1", member: orders-0} or {clusterID: "c1", objectURL: the URL of a backup}`},
	})
}

// onSilentNode puts the pods of members on nodes that do not report.
func onSilentNode(ordinals ...int32) mutation {
	return func(s *situation.Situation) {
		for _, i := range ordinals {
			podAt(s, i).SilentNode = fmt.Sprintf("n%d", i)
		}
	}
}

// asksFor lets Git ask for a recovery.
func asksFor(clusterID, member, objectURL string) mutation {
	return func(s *situation.Situation) {
		s.Desired.Spec.Recovery = schema.RecoverySpec{ClusterID: clusterID, Member: member, ObjectURL: objectURL}
		s.Desired.SpecHash = "r"
	}
}

const backupURL = "s3://backups/1.db"

func TestBeginRecovery(t *testing.T) {
	survivor := with(leftAlone(0), asksFor("c1", "orders-0", ""))
	fromBackup := with(leftAlone(0), asksFor("c1", "", backupURL))
	record := func(f func(*state.Record)) mutation { return func(s *situation.Situation) { f(s.Observed.Record) } }
	checkRule(t, recovery.Lost, []ruleCase{
		{name: "84, 93: the survivor that Git names", change: survivor, want: "begin to recover cluster c1 from what orders-0 has: as Git says: the cluster continues from what orders-0 has; what only the others had is lost (revision 1000)"},
		{name: "84: a backup that Git names", change: fromBackup, want: "begin to recover cluster c1 from a backup, on the volume of orders-0: as Git says"},
		{name: "I18: without Git nothing", change: leftAlone(0), want: "Unhealthy: the quorum is lost"},
		{name: "I13: another cluster is not recovered", change: with(survivor, asksFor("c9", "orders-0", "")), want: "Refused: spec.recovery is refused: it names cluster c9, and this is cluster c1; the quorum is lost: it takes"},
		{name: "I13: what was done is not done again", change: with(survivor, record(func(r *state.Record) {
			r.Recovered = []state.Recovered{{OneShot: "c1 from member orders-0", ClusterID: "c1"}}
		})), want: "Unhealthy: the quorum is lost"},
		{name: "I13: nor in another way", change: with(asksFor("c0", "orders-1", ""), leftAlone(0), record(func(r *state.Record) {
			r.Recovered = []state.Recovered{{OneShot: "c0 from member orders-0", ClusterID: "c0"}}
		})), want: "Refused: spec.recovery is refused: it names cluster c0"},
		{name: "I13: what was done is silent", change: with(asksFor("c0", "orders-0", ""), record(func(r *state.Record) {
			r.Recovered = []state.Recovered{{OneShot: "c0 from member orders-0", ClusterID: "c0"}}
		}))},
		{name: "I18: a healthy cluster is not recovered", change: asksFor("c1", "orders-0", ""), want: "refuse the recovery of c1 from member orders-0: the cluster has a quorum"},
		{name: "I18: and says so", change: with(asksFor("c1", "orders-0", ""), record(func(r *state.Record) { r.RefusedRecovery = "c1 from member orders-0" })), want: "Refused: spec.recovery is refused: the cluster has a quorum"},
		{name: "I18: nor when it is lost later", change: with(survivor, record(func(r *state.Record) { r.RefusedRecovery = "c1 from member orders-0" })), want: "it was in Git before the quorum was lost"},
		{name: "I18: until Git has asked again", change: with(leftAlone(0), record(func(r *state.Record) { r.RefusedRecovery = "c1 from member orders-0" })), want: "forget the refused recovery: Git no longer asks for it"},
		{name: "one of three is no loss", change: with(down(1), asksFor("c1", "orders-0", "")), want: "refuse the recovery"},
		{name: "87: who may come back is waited for", change: with(survivor, born(1, time.Minute)), want: "Waiting: it is not certain yet that the quorum is lost"},
		{name: "a member that does not answer", change: with(survivor, asksFor("c1", "orders-1", "")), want: "orders-1 does not answer, so its data is unknown; "},
		{name: "a member that there is not", change: with(survivor, asksFor("c1", "orders-7", "")), want: "orders-7 is no recorded member"},
		{name: "93: one that another is ahead of", size: 5, change: with(leftAlone(0, 4), asksFor("c1", "orders-0", "")), want: "orders-4 is further than orders-0"},
		{name: "93: in the log alone", size: 5, change: with(leftAlone(0, 4), asksFor("c1", "orders-0", ""), of(0, func(m *state.Member) { m.Revision = 1004 }), of(4, func(m *state.Member) { m.AppliedIndex++ })), want: "orders-4 is further than orders-0"},
		{name: "82: a volume that is being deleted", size: 5, change: with(leftAlone(2), asksFor("c1", "orders-2", "")), want: "the volume claim of orders-2 is being deleted"},
		{name: "82: a volume that is gone", size: 5, change: with(leftAlone(4), asksFor("c1", "orders-4", "")), want: "the volume claim of orders-4 does not exist"},
		{name: "127: data of a newer release", change: with(survivor, of(0, func(m *state.Member) { m.Version = newVersion })), want: "the pods are made for etcd 3.5.35, which cannot start on data of 3.6.16"},
		{name: "127: data of one release before", change: with(survivor, func(s *situation.Situation) { s.Observed.Set.Version = newVersion }), want: "begin to recover"},
		{name: "127: data of two releases before", change: with(survivor, func(s *situation.Situation) { s.Observed.Set.Version = "3.7.3" }), want: "the pods are made for etcd 3.7.3, which cannot start on data of 3.5.35"},
		{name: "127: data of another age", change: with(survivor, of(0, func(m *state.Member) { m.Version = "2.5.0" })), want: "which cannot start on data of 2.5.0"},
		{name: "127: pods of an unknown release", change: with(survivor, func(s *situation.Situation) { s.Observed.Set.Version = "" }), want: "it is unknown whether"},
		{name: "127: data of an unknown release", change: with(survivor, of(0, func(m *state.Member) { m.Version = "" })), want: "it is unknown whether etcd 3.5.35 can start"},
		{name: "80: and no volume of somebody else", change: with(fromBackup, func(s *situation.Situation) {
			for i := range s.Observed.Pods {
				s.Observed.Pods[i].Damage = state.DamageForeign
			}
		}), want: "no member has a pod and a volume that the backup could be put on"},
		{name: "a backup needs a volume", change: with(fromBackup, func(s *situation.Situation) { s.Observed.Volumes = nil }), want: "no member has a pod and a volume that the backup could be put on"},
		{name: "a backup needs a node", change: with(fromBackup, func(s *situation.Situation) { podAt(s, 0).Terminating = true }), want: "no member has a pod and a volume"},
		{name: "a backup needs a pod", change: with(fromBackup, withoutPod(0)), want: "no member has a pod and a volume"},
		{name: "a backup goes to nobody whom Git does not want", size: 5, change: with(fromBackup, wanting(1), func(s *situation.Situation) {
			s.Observed.Volumes = []state.Volume{{Member: "orders-1", Ordinal: 1}}
		}), want: "no member has a pod and a volume"},
		{name: "no member was asked", change: with(fromBackup, func(s *situation.Situation) { s.Observed.Rounds = nil })},
		{name: "a backup goes to the first volume that can be used", change: with(fromBackup, func(s *situation.Situation) {
			s.Observed.Volumes = []state.Volume{{Member: "orders-0", Trouble: "lost"}, {Member: "orders-1", Ordinal: 1}}
		}), want: "on the volume of orders-1"},
		{name: "a small cluster in a roll, when asked", size: 1, change: with(commit(newVersion), begun, leftAlone(), asksFor("c1", "", backupURL)), want: "begin to recover"},
	})
}

// recovers is a recovery of the lost cluster c1 under way, from orders-1.
func recovers(s *situation.Situation) {
	s.Observed.Record.Recovering = &state.Recovering{
		OneShot: "c1 from member orders-1", ClusterID: "c1", NewClusterID: "c2", NewMemberID: "n1",
		Member: "orders-1", Revision: 1200, Since: noon.Add(-time.Minute),
	}
	s.Observed.Volumes = []state.Volume{{Claim: "data-orders-1", UID: "claim-1", Member: "orders-1", Ordinal: 1}}
}

// allStopped has no pods any more.
func allStopped(s *situation.Situation) {
	s.Observed.Set.Replicas, s.Observed.Pods, s.Observed.Rounds = 0, nil, nil
}

// adopted has the new identity, and the pods up to the first member.
func adopted(s *situation.Situation) {
	s.Observed.Record.ClusterID, s.Observed.Record.Members = "c2", map[string]string{"orders-1": "n1"}
	s.Observed.Set.Replicas = 2
	withoutPod(2)(s)
	last := s.Observed.Round()
	*last = state.Round{At: noon, ClusterID: "c2", Members: []state.Member{{ID: "n1", Name: "orders-1", Leader: "n1", Revision: 1200 + state.RevisionBump}}}
}

func TestRecoveryUnderWay(t *testing.T) {
	restore := func(r state.Restore) mutation { return func(s *situation.Situation) { s.Observed.Restore = r } }
	lost, reborn := with(leftAlone(1), recovers), with(recovers, adopted)
	empty := with(lost, allStopped)
	again := func(f func(*state.Round, *state.Member)) mutation {
		return with(reborn, func(s *situation.Situation) { f(s.Observed.Round(), memberAt(s, 1)) })
	}
	restores := with(recovers, func(s *situation.Situation) {
		s.Observed.Rounds, s.Observed.Record.Recovering.ClusterID, s.Observed.Record.ClusterID = nil, "", ""
		s.Observed.Volumes = memberVolumes(3)
	})
	checkRule(t, func(s *situation.Situation) verdict.Verdict {
		return recovery.FillVolume(s, *s.Observed.Record.Recovering)
	}, []ruleCase{
		{
			name: "420: a record from the midst of a restore stops nothing that serves, though quorate does not reach it", change: restores,
			want: "Refused: orders-2 serves, and no member of a cluster that is being restored starts before its record says so: the record is older than the cluster; restore the record",
		},
		{name: "50: what another writer has scaled up is stopped", change: with(restores, unready(0, 1, 2)), want: "resize the StatefulSet 3 → 0"},
	})
	checkRule(t, recovery.Run, []ruleCase{
		{name: "353: the quorum comes back by itself", change: recovers, want: "refuse the recovery of c1 from member orders-1: the cluster has its quorum again"},
		{name: "353: while members are being stopped", change: with(recovers, func(s *situation.Situation) { s.Observed.Set.Replicas, s.Observed.Set.Settled = 0, false }), want: "refuse the recovery of c1 from member orders-1"},
		{name: "353: by the word of the kubelets", change: with(recovers, func(s *situation.Situation) { s.Observed.Rounds = nil; podAt(s, 1).Ready = false }), want: "refuse the recovery of c1 from member orders-1"},
		{name: "353: by the members' word alone, of a quorum and no more", change: with(recovers, withoutPod(2), unready(0, 1)), want: "refuse the recovery of c1 from member orders-1"},
		{name: "353: of less than a quorum", change: with(recovers, func(s *situation.Situation) {
			s.Observed.Rounds = nil
			podAt(s, 0).Ready, podAt(s, 1).Ready = false, false
		}), want: "resize the StatefulSet 3 → 0"},
		{name: "353: another cluster's quorum is none", change: with(recovers, down(0), down(1), looks(func(r *state.Round) { r.ClusterID = "c9" })), want: "resize the StatefulSet 3 → 0"},
		{name: "353: nor is it in time once a volume is restored", change: with(recovers, restore(state.Restore{State: state.RestoreRunning})), want: "resize the StatefulSet 3 → 0"},
		{name: "420: the recovery is over, and a record from its midst is restored", change: with(recovers, unready(0, 1), looks(func(r *state.Round) { r.ClusterID = "c2" })), want: "Refused: the members answer as cluster c2, which the recovered cluster is to become: the record is older than the cluster; restore the record"},
		{name: "the members stop", change: lost, want: "resize the StatefulSet 3 → 0"},
		{name: "I21: nothing before the controller knows", change: with(empty, func(s *situation.Situation) { s.Observed.Set.Settled = false }), want: "Waiting: the recovery waits for the StatefulSet controller"},
		{name: "an unformed cluster has nothing to recover", change: with(lost, func(s *situation.Situation) { s.Observed.Record.ClusterID = "" })},
		{name: "a StatefulSet that is gone stops no member", change: with(empty, func(s *situation.Situation) { s.Observed.Set = nil }), want: "restore the volume of orders-1"},
		{name: "I21: nothing before all are gone", change: with(empty, func(s *situation.Situation) { s.Observed.Pods = []state.Pod{{Name: "orders-2", Terminating: true}} }), want: "Waiting: the recovery waits for orders-2 to be gone"},
		{name: "76: a node that is gone permanently", change: with(empty, func(s *situation.Situation) {
			s.Observed.Pods = []state.Pod{{Name: "orders-2", Terminating: true, GoingSince: noon.Add(-time.Hour), LostNode: "n2"}}
		}), want: "Unhealthy: the recovery waits for orders-2 to be gone: as long as it might run, nothing continues; its node n2 does not report, or is gone, so that etcd may still run there; bring node n2 back; only if it is switched off for certain, "},
		{name: "the volume is restored", change: empty, want: "restore the volume of orders-1: all members have stopped"},
		{name: "I6: no volume, no restore", change: with(empty, func(s *situation.Situation) { s.Observed.Volumes = nil }), want: "Unhealthy: the volume claim of orders-1, which the cluster is recovered from, is gone or being deleted"},
		{name: "I6: nor one that is being deleted", change: with(empty, func(s *situation.Situation) { s.Observed.Volumes[0].Terminating = true }), want: "is gone or being deleted"},
		{name: "it takes a while", change: with(empty, restore(state.Restore{State: state.RestoreRunning})), want: "Waiting: the volume of orders-1 is being restored"},
		{name: "it takes a while, and tells what it waits for", change: with(empty, restore(state.Restore{State: state.RestoreRunning, Detail: "its image cannot be had"})), want: "Waiting: its image cannot be had"},
		{name: "120: it fails", change: with(empty, restore(state.Restore{State: state.RestoreFailed, Detail: "no space left on device", Job: "orders-recovery-1"})), want: "Unhealthy: the volume of orders-1 could not be restored: no space left on device; nothing that was on it is lost; fix the cause and delete Job orders-recovery-1"},
		{name: "206: it has no room", change: with(empty, restore(state.Restore{State: state.RestoreRunning, NoRoom: true, Detail: "the restore: it needs 2Gi"})), want: "Unhealthy: the restore: it needs 2Gi; raise storage.size in its file"},
		{name: "it is done", change: with(empty, restore(state.Restore{State: state.RestoreDone})), want: "record that cluster c1 continues as c2"},
		{name: "I21: somebody scales meanwhile", change: with(lost, restore(state.Restore{State: state.RestoreDone})), want: "resize the StatefulSet 3 → 0"},
		{name: "20: what Git says meanwhile does not matter", change: with(empty, asksFor("c1", "orders-0", "")), want: "restore the volume of orders-1"},
		{name: "the first member starts", change: with(reborn, allStopped), want: "resize the StatefulSet 0 → 2: the recovered cluster begins with orders-1"},
		{name: "the StatefulSet is gone", change: with(reborn, func(s *situation.Situation) { s.Observed.Set = nil }), want: "create 2 members"},
		{name: "it has no pod yet", change: with(reborn, withoutPod(1), func(s *situation.Situation) { s.Observed.Record.Recovering.Since = noon }), want: "Waiting: orders-1, the first member of the recovered cluster, starts: it has no pod yet"},
		{name: "it does not start", change: with(reborn, stuck(1, "etcd: panic")), want: "starts: etcd: panic; the old data is kept on its volume"},
		{name: "no member was asked", change: with(reborn, func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "it was not asked yet"},
		{name: "I15: it does not answer", change: again(func(r *state.Round, _ *state.Member) { *r = state.Round{Problem: "refused"} }), want: "starts: it does not answer yet (refused)"},
		{name: "I15: it answers as the lost cluster", change: again(func(r *state.Round, _ *state.Member) { r.ClusterID = "c1" }), want: "it answers as member n1 of cluster c1"},
		{name: "I15: as another member", change: again(func(_ *state.Round, m *state.Member) { m.ID = "m1" }), want: "it answers as member m1 of cluster c2"},
		{name: "it is not alone", change: again(func(r *state.Round, _ *state.Member) { r.Members = append(r.Members, state.Member{ID: "m2"}) }), want: "it lists 2 members"},
		{name: "it is not listed", change: again(func(r *state.Round, _ *state.Member) { r.Members = nil }), want: "it does not answer yet"},
		{name: "its list cannot be had", change: again(func(r *state.Round, _ *state.Member) { r.Problem = "refused" }), want: "starts: it does not answer yet (refused)"},
		{name: "I19: it is a learner", change: again(func(_ *state.Round, m *state.Member) { m.Learner = true }), want: "it lists 1 member"},
		{name: "it does not lead", change: again(func(_ *state.Round, m *state.Member) { m.Leader = "" }), want: "it does not lead yet"},
		{name: "it has a problem", change: again(func(_ *state.Round, m *state.Member) { m.Problem = "status: x" }), want: "starts: it does not answer yet (status: x)"},
		{name: "its pod is not ready", change: with(reborn, func(s *situation.Situation) { podAt(s, 1).Ready = false }), want: "its pod is not ready yet"},
		{name: "I8: revisions never go back", change: again(func(_ *state.Round, m *state.Member) { m.Revision-- }), want: "Stopped: the recovered cluster is at an earlier revision than it should be, so that clients would see revisions go back; it is left unchanged (revision 1000001199 instead of 1000001200 or later)"},
		{name: "it is over", change: reborn, want: "record that cluster c1 was recovered: orders-1 answers as cluster c2; the others join it one at a time (at revision 1000001200)"},
		{name: "I12: another record", change: with(reborn, func(s *situation.Situation) { s.Observed.Record.ClusterID = "c9" }), want: "Refused: a recovery of cluster c1 is under way, but the record is of cluster c9"},
	})
}

// The steps of a recovery, from the loss to its end.
func TestRecoveryIsForecast(t *testing.T) {
	s := healthy(3)
	with(leftAlone(0), asksFor("c1", "orders-0", ""))(s)
	var steps []string
	for range 10 {
		v := first([]rule{{"recovering", recovery.Run}, {"recovery", recovery.Lost}}, s)
		if v.Step == nil {
			break
		}
		steps = append(steps, v.Step.Action.String())
		s = after(s, v.Step.Action)
		for i := range s.Observed.Rounds {
			for j := range s.Observed.Rounds[i].Members {
				m := &s.Observed.Rounds[i].Members[j]
				m.Revision, m.Leader = 1000+state.RevisionBump, m.ID
			}
		}
	}
	want := []string{
		"begin to recover cluster c1 from what orders-0 has", "resize the StatefulSet 3 → 0", "restore the volume of orders-0",
		"record that cluster c1 continues as (new)", "resize the StatefulSet 0 → 1", "record that cluster c1 was recovered",
	}
	if strings.Join(steps, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", steps, want)
	}
	if s.Observed.Record.Recovering != nil || !s.Observed.Record.Kept["orders-2"] || s.Observed.Record.Kept["orders-0"] || s.RequestedRecovery() != "" {
		t.Errorf("the record is %+v", s.Observed.Record)
	}
}
