package plan

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// wishesRestore lets Git ask for a restore into orders.
func wishesRestore(s *situation.Situation) {
	s.Desired.Restore = &state.RestoreFrom{Name: "back", SpecHash: "r1", SourceHash: "b1", Source: "s3://backups/1.db"}
}

// nothing is there: no cluster of that name was ever made.
func nothing(s *situation.Situation) { s.Observed = state.Observed{} }

// deletedKept is a cluster that was deleted, and whose volumes were kept.
func deletedKept(s *situation.Situation) {
	s.Observed.Set, s.Observed.Pods, s.Observed.Rounds, s.Observed.Objects = nil, nil, nil, nil
	s.Observed.Record.Deleted = true
	s.Observed.Volumes = []state.Volume{{Claim: "data-orders-0", Member: "orders-0"}}
}

// restoredAs is a cluster that was made by a restore.
func restoredAs(name, spec, source string, done bool) mutation {
	return func(s *situation.Situation) {
		s.Observed.Record.Restored = &state.Restored{Name: name, SpecHash: spec, SourceHash: source, Done: done}
	}
}

func TestRestore(t *testing.T) {
	fresh := with(wishesRestore, nothing)
	only := func(f func(*situation.Situation)) mutation { return with(fresh, f) }
	inPlace := with(wishesRestore, deletedKept, func(s *situation.Situation) { s.Desired.Restore.InPlace = true })
	alive := func(m ...mutation) mutation { return with(append([]mutation{wishesRestore}, m...)...) }
	checkRule(t, restore, []ruleCase{
		{name: "without a restore in Git nothing"},
		{name: "nor where nothing is", change: nothing},
		{name: "117: where nothing is, a cluster begins with the backup", change: fresh, want: "begin to restore s3://backups/1.db (back): as Git says, and no object of that name exists"},
		{name: "a cluster that Git wants gone begins with nothing", change: only(func(s *situation.Situation) { s.Desired.Spec.State = schema.StateDeleted })},
		{name: "a release that nobody should run", change: only(func(s *situation.Situation) { s.Desired.Spec.Version = "3.5.1" }), want: "Refused: 3.5.1 "},
		{name: "118, I7: a living cluster", change: wishesRestore, want: "Refused: EtcdRestore back is refused: a restore makes a new cluster and touches nothing that exists, and there is ConfigMap orders-record, StatefulSet orders, pod orders-2, pod orders-1, pod orders-0, "},
		{name: "118, I7: a StatefulSet", change: only(func(s *situation.Situation) { s.Observed.Set = &state.Set{} }), want: "there is StatefulSet orders; give the new cluster another name"},
		{name: "118, I7: a pod", change: only(func(s *situation.Situation) { s.Observed.Pods = []state.Pod{{Name: "orders-4"}} }), want: "there is pod orders-4; "},
		{name: "118, I7: a volume", change: only(func(s *situation.Situation) { s.Observed.Volumes = []state.Volume{{Claim: "data-orders-1"}} }), want: "there is volume claim data-orders-1; "},
		{name: "118, I7: a Service", change: only(func(s *situation.Situation) {
			s.Observed.Objects = []state.Object{{Kind: "Service", Name: "orders-peers", State: state.ObjectDrifted}, {Kind: "Service", Name: "orders-client", State: state.ObjectMissing}}
		}), want: "there is Service orders-peers; "},
		{name: "118, I7: a record", change: only(func(s *situation.Situation) { s.Observed.Record = &state.Record{} }), want: "there is ConfigMap orders-record; "},
		{name: "118, I7: a deleted cluster of which Git says nothing", change: alive(deletedKept), want: "there is ConfigMap orders-record, of a deleted cluster whose volumes were kept, volume claim data-orders-0; "},
		{name: "in its place, once Git says Deleted", change: inPlace, want: "begin to restore"},
		{name: "I7: in its place, not before its pods are gone", change: with(inPlace, func(s *situation.Situation) { s.Observed.Pods = []state.Pod{{Name: "orders-0"}} }), want: "there is pod orders-0; "},
		{name: "I7: nor its StatefulSet", change: with(inPlace, func(s *situation.Situation) { s.Observed.Set = &state.Set{} }), want: "there is StatefulSet orders; "},
		{name: "I7: nor its services", change: with(inPlace, func(s *situation.Situation) {
			s.Observed.Objects = []state.Object{{Kind: "Service", Name: "orders-client", State: state.ObjectInSync}}
		}), want: "there is Service orders-client; "},
		{name: "I7: in the place of nobody alive", change: with(inPlace, func(s *situation.Situation) { s.Observed.Record.Deleted = false }), want: "there is ConfigMap orders-record, volume claim data-orders-0; "},
		{name: "121: what was begun continues", change: alive(restoredAs("back", "r1", "b1", false))},
		{name: "119, I13: what was done is done", change: alive(restoredAs("back", "r1", "b1", true))},
		{name: "119, I13: with another spec, too", change: alive(restoredAs("back", "r0", "b1", true)), want: "Refused: EtcdRestore back is complete; later changes to it are ignored; replace the document by an EtcdCluster"},
		{name: "119, I13: also when its cluster was deleted", change: alive(deletedKept, restoredAs("back", "r1", "b1", true)), want: "Refused: EtcdRestore back is complete, and its cluster was deleted since"},
		{name: "what is under way may become another cluster", change: alive(restoredAs("back", "r0", "b1", false))},
		{name: "but not of another backup", change: alive(restoredAs("back", "r0", "b0", false)), want: "Refused: EtcdRestore back is under way, and names another backup now"},
		{name: "118: another restore's cluster", change: alive(restoredAs("before", "r1", "b1", true)), want: "there is ConfigMap orders-record, StatefulSet orders"},
	})
}

// filling is a restored cluster that has its record, certificates, services and
// StatefulSet, and whose first volume is next.
func filling(s *situation.Situation) {
	s.Observed.Record = &state.Record{
		Founders: 1, Restored: &state.Restored{Name: "back", SpecHash: "r1", SourceHash: "b1"},
		Recovering: &state.Recovering{OneShot: "restore back", NewClusterID: "c2", NewMemberID: "n0", Member: "orders-0", Revision: 1200, Since: noon.Add(-time.Minute)},
	}
	s.Observed.Set.Replicas, s.Observed.Pods, s.Observed.Rounds, s.Observed.Volumes = 0, nil, nil, nil
}

// seeded is the same with its first member running.
func seeded(s *situation.Situation) {
	s.Observed.Record.ClusterID, s.Observed.Record.Members = "c2", map[string]string{"orders-0": "n0"}
	s.Observed.Set.Replicas = 1
	s.Observed.Pods = []state.Pod{{Name: "orders-0", UID: "u0", Template: "a", Version: oldVersion, Ready: true, Ran: true, Created: noon.Add(-time.Minute)}}
	s.Observed.Rounds = []state.Round{{At: noon, ClusterID: "c2", Members: []state.Member{{ID: "n0", Name: "orders-0", Leader: "n0", Version: oldVersion, Revision: 1200 + state.RevisionBump}}}}
}

// What begins a restored cluster, as far as bootstrap and recovering say it.
func TestRestoredClusterBegins(t *testing.T) {
	volume := func(s *situation.Situation) {
		s.Observed.Volumes = []state.Volume{{Claim: "data-orders-0", UID: "v0", Member: "orders-0"}}
	}
	job := func(r state.Restore) mutation { return func(s *situation.Situation) { s.Observed.Restore = r } }
	bound := func(size int64) mutation {
		return func(s *situation.Situation) {
			s.Desired.Spec.Storage.Size = resource.MustParse("8Gi")
			s.Observed.Volumes = []state.Volume{{Claim: "data-orders-0", UID: "v0", Member: "orders-0", Bound: true, Size: size}}
		}
	}
	noRoom := job(state.Restore{State: state.RestoreRunning, NoRoom: true, Detail: "the restore: it needs 2Gi"})
	for _, c := range []struct {
		name, want string
		change     mutation
	}{
		{"services first", "apply Service orders-peers", func(s *situation.Situation) {
			s.Observed.Objects = []state.Object{{Kind: "Service", Name: "orders-peers", State: state.ObjectMissing}}
		}},
		{"but not that of the clients", "create the volume claim of orders-0", func(s *situation.Situation) {
			s.Observed.Objects = []state.Object{{Kind: "Service", Name: "orders-client", State: state.ObjectMissing}}
		}},
		{"I21: a StatefulSet without members", "create the StatefulSet, without members: it defines where", func(s *situation.Situation) { s.Observed.Set = nil }},
		{"a template that Git has changed", "start the roll on 3.5.35: no member has started yet, and Git now says otherwise", func(s *situation.Situation) { s.Observed.Set.Template = "z" }},
		{"a volume of its own", "create the volume claim of orders-0: the backup is put on a volume before", nil},
		{"I21: nobody runs meanwhile", "resize the StatefulSet 2 → 0", with(volume, func(s *situation.Situation) { s.Observed.Set.Replicas = 2 })},
		{"I21: also where what runs names no cluster", "resize the StatefulSet 2 → 0", with(volume, func(s *situation.Situation) {
			s.Observed.Set.Replicas, s.Observed.Pods, s.Observed.Rounds = 2, []state.Pod{{Name: "orders-0"}}, []state.Round{{At: noon}}
		})},
		{"the backup is put on it", "restore the volume of orders-0", volume},
		{"166: Git accepts another hash of its keys", "restore the volume of orders-0, whatever etcd said of the keys in the backup", with(volume, job(state.Restore{AcceptHashMismatch: "0a"}))},
		{"it takes a while", "Waiting: the volume of orders-0 is being restored", with(volume, job(state.Restore{State: state.RestoreRunning}))},
		{"120: it fails", "Unhealthy: the volume of orders-0 could not be restored: no space; nothing that was on it is lost; fix the cause and delete Job j", with(volume, job(state.Restore{State: state.RestoreFailed, Detail: "no space", Job: "j"}))},
		{"206: it has no room", "Unhealthy: the restore: it needs 2Gi; raise storage.size in its file: the volume is enlarged while the restore waits", with(bound(8<<30), noRoom)},
		{"206: Git enlarges the volume meanwhile", "grow the volume of orders-0 4Gi → 8Gi", with(bound(4<<30), noRoom)},
		{"206: of a class that cannot", "Refused: the volume of orders-0 has 4Gi and cannot grow to 8Gi: its class cannot", with(bound(4<<30), noRoom, func(s *situation.Situation) { s.Observed.Volumes[0].NotExpandable = "its class cannot" })},
		{"206: which is no matter where there is room", "Waiting: the volume of orders-0 is being restored", with(bound(4<<30), job(state.Restore{State: state.RestoreRunning}), func(s *situation.Situation) { s.Observed.Volumes[0].NotExpandable = "its class cannot" })},
		{"206: before it begins, too", "grow the volume of orders-0 4Gi → 8Gi", bound(4 << 30)},
		{"I5: the volume goes after it", "Unhealthy: the volume claim of orders-0 is gone, which the backup was put on; delete Job j", job(state.Restore{State: state.RestoreDone, Job: "j"})},
		{"I5: the volume goes while it is filled", "Unhealthy: the volume claim of orders-0 is gone", job(state.Restore{State: state.RestoreRunning, Began: true, Job: "j"})},
		{"I4: the identity is written down before anybody starts", "record that the restored cluster is c2", with(volume, job(state.Restore{State: state.RestoreDone}))},
		{"the first member starts", "resize the StatefulSet 0 → 1: the restored cluster begins with orders-0", with(seeded, func(s *situation.Situation) { s.Observed.Set.Replicas, s.Observed.Pods = 0, nil })},
		{"it takes its time", "Waiting: orders-0, the first member of the restored cluster, starts: its pod is not ready yet", with(seeded, func(s *situation.Situation) { podAt(s, 0).Ready, podAt(s, 0).Created = false, noon })},
		{"it takes too long", "Unhealthy: orders-0, the first member of the restored cluster, starts: its pod is not ready yet; the backup is unchanged; check its pod", with(seeded, func(s *situation.Situation) { podAt(s, 0).Ready = false })},
		{"123: it wants a user", "the backup has authentication switched on", with(seeded, func(s *situation.Situation) {
			memberAt(s, 0).Problem, memberAt(s, 0).Denied = "status: etcdserver: user name is empty", true
		})},
		{"a template that cannot run, mended", "start the roll on 3.5.35: the cluster has never formed, because of orders-0: no such image", with(seeded, func(s *situation.Situation) {
			podAt(s, 0).Trouble, podAt(s, 0).Ran, podAt(s, 0).Template, s.Observed.Set.Template, podAt(s, 0).Ready = "no such image", false, "z", "z", false
		})},
		{"125, I8: revisions never go back", "Stopped: the restored cluster is at an earlier revision than it should be, so that clients would see revisions go back; it is left unchanged (revision 1000001199 instead of 1000001200 or later)", with(seeded, func(s *situation.Situation) { memberAt(s, 0).Revision-- })},
		{"125, I8: it is checked", "record that the first member of the restored cluster is well", seeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy(3)
			with(wishesRestore, filling)(s)
			if c.change != nil {
				c.change(s)
			}
			s = situation.Of(s.Desired, s.Observed, noon)
			got := words(first([]rule{{"restore", restore}, {"bootstrap", bootstrap}, {"recovering", recovery.Run}}, s))
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestAdmit(t *testing.T) {
	under := restoredAs("back", "r1", "b1", false)
	checkRule(t, admit, []ruleCase{
		{name: "a cluster that began empty"},
		{name: "122: when all have joined, clients may come", change: under, want: "record that restore back is done: every member has joined"},
		{name: "122: not before", change: with(under, wanting(4))},
		{name: "122: nor while one joins", change: with(under, func(s *situation.Situation) { s.Observed.Record.Joining = &state.Joining{Member: "orders-3"} })},
		{name: "it is over", change: restoredAs("back", "r1", "b1", true)},
		{name: "nor before it has formed", change: with(under, func(s *situation.Situation) { s.Observed.Record.ClusterID = "" })},
	})
}

// 122: the Service for clients is made when the restore is over, and not before;
// one that exists is kept as Git says.
func TestClientsWaitForARestore(t *testing.T) {
	for _, c := range []struct {
		name  string
		state state.ObjectState
		done  bool
		want  string
	}{
		{"it is withheld", state.ObjectMissing, false, ""},
		{"and made in the end", state.ObjectMissing, true, "apply Service orders-client: it is gone"},
		{"one that is there is looked after", state.ObjectDrifted, false, "apply Service orders-client: it differs"},
	} {
		s := healthy(3)
		restoredAs("back", "r1", "b1", c.done)(s)
		s.Observed.Objects = []state.Object{{Kind: "Service", Name: "orders-client", State: c.state}}
		if got := words(objects.Drift(situation.Of(s.Desired, s.Observed, noon))); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
