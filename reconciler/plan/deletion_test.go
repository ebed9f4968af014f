package plan

import (
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func TestDeletion(t *testing.T) {
	gone := asksState(schema.StateDeleted)
	volumes := func(p schema.VolumePolicy) mutation {
		return func(s *situation.Situation) {
			s.Desired.Spec.Deletion.Volumes, s.Observed.Volumes = p, memberVolumes(3)
		}
	}
	deleted := func(s *situation.Situation) { s.Observed.Record.Deleted = true }
	noBackup := func(s *situation.Situation) { s.Desired.Spec.Deletion.Backup = schema.BackupSkip }
	objects := func(state state.ObjectState) mutation {
		return func(s *situation.Situation) { s.Observed.Objects[0].State = state }
	}
	noSet := func(s *situation.Situation) { s.Observed.Set = nil }
	empty := with(gone, deleted, stopped, noSet, objects(state.ObjectMissing))
	secrets := func(s *situation.Situation) {
		s.Observed.Leftovers = []state.Object{{Kind: "Secret", Name: "orders-ca", State: state.ObjectInSync}}
	}
	onTheirWay := func(s *situation.Situation) {
		for i := range s.Observed.Volumes {
			s.Observed.Volumes[i].Terminating = true
		}
	}
	leaving := func(s *situation.Situation) {
		for i := range s.Observed.Pods {
			s.Observed.Pods[i].Terminating = true
		}
	}
	noVolumes := func(s *situation.Situation) { s.Observed.Volumes = nil }
	checkRule(t, deletion, []ruleCase{
		{name: "130: what is to run passes"},
		{name: "130: nothing is deleted before a backup", change: with(gone, volumes("")), want: "back up through orders-2: before the cluster is deleted"},
		{name: "80: not while a volume holds foreign data", change: with(gone, savedFor("deletion"), volumes(schema.VolumesDelete), damaged(1, state.DamageForeign, time.Hour)), want: "Unhealthy: volume claim data-orders-1 holds what is not the data of orders-1"},
		{name: "80: nor where it never formed", change: with(unformed, gone, volumes(schema.VolumesDelete), func(s *situation.Situation) {
			s.Observed.Pods = []state.Pod{{Name: "orders-1", Damage: state.DamageForeign}}
		}), want: "Unhealthy: volume claim data-orders-1"},
		{name: "I6: whose the volumes are is known before they go", change: with(gone, savedFor("deletion"), volumes(schema.VolumesDelete), holding(1, "")), want: "record whose data volume claim data-orders-1 holds"},
		{name: "130: then it is recorded", change: with(gone, savedFor("deletion")), want: "begin the deletion: spec.state is Deleted; the volumes are kept"},
		{name: "130: Git goes without a backup", change: with(gone, noBackup, volumes(schema.VolumesDelete)), want: "begin the deletion: spec.state is Deleted; the volumes are deleted, too"},
		{name: "60: no member can give a backup", change: with(gone, func(s *situation.Situation) { s.Observed.Round().Members[2].Leader = "" }), want: "Refused: the deletion needs a backup first, and no member can give one"},
		{name: "50: pods that are missing come back first: who else gives the backup", change: with(gone, func(s *situation.Situation) { s.Observed.Set.Replicas = 0 }), want: "resize the StatefulSet 0 → 3"},
		{name: "84: a list that cannot be had", change: with(gone, func(s *situation.Situation) { s.Observed.Round().Problem = "timeout" }), want: "Unhealthy: the cluster is not deleted yet, because its backup comes first: the members cannot be listed (timeout); bring its members back; or set spec.deletion.backup to Skip in its file: it is deleted without a backup then, and its volumes are kept"},
		{name: "351: one whose volumes go with it", change: with(gone, volumes(schema.VolumesDelete), func(s *situation.Situation) { s.Observed.Round().Problem = "timeout" }), want: "spec.deletion.backup to Skip in its file: it is deleted without a backup then, and what is on its volumes is lost for good"},
		{name: "351: members that were not asked are asked first", change: with(gone, func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "Confirm: the members have not been asked", lacks: "Skip"},
		{name: "I5: another cluster answers", change: with(gone, func(s *situation.Situation) { s.Observed.Round().ClusterID = "c2" }), want: "Refused: the members say that they are cluster c2"},
		{name: "84: without a backup nobody is asked", change: with(gone, noBackup, volumes(schema.VolumesDelete), func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "begin the deletion"},
		{name: "a half done roll ends first where the volumes are kept", change: with(gone, commit(newVersion), begun, rolled(newVersion, 2), gone)},
		{name: "but not where they go", change: with(commit(newVersion), begun, rolled(newVersion, 2), gone, noBackup, volumes(schema.VolumesDelete)), want: "begin the deletion"},
		{name: "nor where they sleep already", change: with(gone, asleep, stopped, func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "b" }), want: "begin the deletion"},
		{name: "another writer has deleted the StatefulSet, and it comes back to give the backup", change: with(gone, noSet)},
		{name: "or goes without one", change: with(gone, noBackup, noSet), want: "begin the deletion"},
		{name: "what sleeps and is kept needs no backup", change: with(gone, asleep, stopped), want: "begin the deletion"},
		{name: "what sleeps and goes needs one", change: with(gone, asleep, stopped, volumes(schema.VolumesDelete)), want: "Refused: the deletion needs a backup first, and members that sleep give none; set spec.state: Running to wake them for it, or spec.deletion.backup: Skip"},
		{name: "what sleeps and goes needs one, with or without a StatefulSet", change: with(gone, asleep, stopped, noSet, volumes(schema.VolumesDelete)), want: "Refused: the deletion needs a backup first, and members that sleep give none"},
		{name: "I6: a StatefulSet that another writer has deleted is no way around the backup", change: with(gone, noSet, volumes(schema.VolumesDelete))},
		{name: "I6: nor where the volumes are kept", change: with(gone, noSet)},
		{name: "but without a backup nobody needs it", change: with(gone, noSet, noBackup, volumes(schema.VolumesDelete)), want: "begin the deletion"},
		{name: "what never formed needs none", change: with(unformed, gone), want: "begin the deletion"},
		{name: "the pods go", change: with(gone, deleted), want: "resize the StatefulSet 3 → 0"},
		{name: "then the StatefulSet", change: with(gone, deleted, stopped), want: "delete StatefulSet orders: no pod of it is left"},
		{name: "pods that nothing stops", change: with(gone, deleted, noSet), want: "delete the pod of orders-2: no StatefulSet stops it"},
		{name: "pods on their way out", change: with(gone, deleted, noSet, leaving), want: "Waiting: 3 pods shut down"},
		{name: "then the rest", change: with(gone, deleted, stopped, noSet), want: "delete Service orders: it is no longer used"},
		{name: "also what another writer has changed", change: with(gone, deleted, stopped, noSet, objects(state.ObjectDrifted)), want: "delete Service orders"},
		{name: "I7: but not what is somebody else's", change: with(gone, deleted, stopped, noSet, objects(state.ObjectForeign))},
		{name: "498: and the copies in other namespaces, also where the volumes are kept", change: with(empty, volumes(schema.VolumesKeep), copied(leftIn("web"))), want: "delete the copy of orders-client-checkout in namespace web: the cluster is deleted"},
		{name: "498: but not before the cluster is gone", change: with(gone, deleted, copied(leftIn("web"))), want: "resize the StatefulSet 3 → 0"},
		{name: "498: one that cannot be deleted keeps nothing", change: with(empty, volumes(schema.VolumesDelete), noVolumes, copied(refusedCopy(leftIn("web"), time.Second))), want: "delete the record"},
		{name: "I6: the volumes last, and only if Git says so", change: with(empty, volumes(schema.VolumesDelete)), want: "delete the volume claim data-orders-0: spec.deletion.volumes is Delete"},
		{name: "until they are gone", change: with(empty, volumes(schema.VolumesDelete), onTheirWay), want: "Waiting: Kubernetes deletes 3 volumes"},
		{name: "135: a copy that carries the labels of a volume stays", change: with(empty, volumes(schema.VolumesDelete), secrets, func(s *situation.Situation) {
			s.Observed.Volumes = []state.Volume{{Claim: "orders-copy", UID: "copy", Ordinal: -1, Holds: "m1", Bound: true}}
		}), want: "delete Secret orders-ca"},
		{name: "then the certificates", change: with(empty, volumes(schema.VolumesDelete), noVolumes, secrets), want: "delete Secret orders-ca"},
		{name: "and last the record", change: with(empty, volumes(schema.VolumesDelete), noVolumes), want: "delete the record"},
		{name: "130: wanted again", change: with(deleted, stopped, noSet, volumes("")), want: "bring the cluster back: spec.state is no longer Deleted"},
	})
	for name, s := range map[string]*situation.Situation{"kept": healthy(3), "gone": healthy(3)} {
		with(empty, volumes(schema.VolumesKeep), secrets)(s)
		if name == "gone" {
			s.Observed.Record = nil
		}
		if v := deletion(s); !v.Idle {
			t.Errorf("130: deleted and %s: %s", name, words(v))
		}
	}
	for name, c := range map[string]struct {
		change mutation
		want   string
	}{
		"what the members are is written down": {with(gone, savedFor("deletion")), "yes"},
		"also when nothing was applied yet":    {with(gone, savedFor("deletion"), func(s *situation.Situation) { s.Observed.Record.Applied = nil }), "yes"},
		"not of members of two releases":       {with(commit(newVersion), begun, rolled(newVersion, 2), gone, noBackup, volumes(schema.VolumesDelete)), ""},
		"I14: also of those that have not formed": {with(unformed, newPods(time.Minute, ""), gone, func(s *situation.Situation) {
			s.Observed.Set = &state.Set{Template: "a", CurrentTemplate: "a", CurrentVersion: oldVersion}
		}), "yes"},
		"not of pods of two templates": {with(unformed, newPods(time.Minute, ""), gone, func(s *situation.Situation) {
			s.Observed.Set = &state.Set{Template: "a", CurrentTemplate: "a", CurrentVersion: oldVersion}
			s.Observed.Pods[0].Template = "b"
		}), ""},
		"nor what Git says of those that sleep":  {with(commit(newVersion), gone, asleep, stopped), ""},
		"nor of those that sleep unapplied":      {with(gone, asleep, stopped, func(s *situation.Situation) { s.Observed.Record.Applied = nil }), ""},
		"those that sleep are what was applied":  {with(gone, asleep, stopped, func(s *situation.Situation) { s.Observed.Record.Applied.Settings = "was" }), "was"},
		"a roll that has not begun says nothing": {with(commit(newVersion), gone, savedFor("deletion")), ""},
	} {
		s := healthy(3)
		c.change(s)
		a, ok := deletion(s).Step.Action.(action.BeginDeletion)
		if !ok || (a.Settings != "") != (c.want != "") || (c.want == "was" && a.Settings != "was") {
			t.Errorf("130: %s: %+v", name, a)
		}
	}
	// The same file in state Running continues where it was.
	s := healthy(3)
	with(empty, volumes(""))(s)
	s.Observed.Record.Applied.Settings = s.Settings()
	s.Desired.Spec.State, s.Desired.SpecHash = schema.StateRunning, "r"
	s.Observed.Objects = nil
	if got := Make(s.Desired, s.Observed, noon).Text(); got == "" || len(Make(s.Desired, s.Observed, noon).Steps) < 3 {
		t.Errorf("130: a revived cluster:\n%s", got)
	}
}
