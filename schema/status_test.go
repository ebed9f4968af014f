package schema

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

func TestPhaseFollowsFromConditions(t *testing.T) {
	for _, phase := range Phases() {
		s := NewStatus(KindCluster, "shop", "orders", phase, "Because", "of this")
		got, why := s.Phase()
		if got != phase || why.Reason != "Because" || why.Message != "of this" {
			t.Errorf("%s: %s, %+v", phase, got, why)
		}
		var types []string
		for _, c := range s.Status.Conditions {
			types = append(types, c.Type)
		}
		if want := []string{"Ready", "Reconciling", "Stalled"}; !slices.Equal(types, want) {
			t.Errorf("%s: conditions %q, want %q", phase, types, want)
		}
	}
	if phase, _ := (Status{}).Phase(); phase != PhaseUnknown {
		t.Errorf("without conditions it is %s", phase)
	}
}

// A status that is copied among the files does no harm.
func TestStatusIsNoFileOfOurs(t *testing.T) {
	text, err := yaml.Marshal(NewStatus(KindCluster, "shop", "orders", PhaseReady, "Idle", "all is well"))
	if err != nil {
		t.Fatal(err)
	}
	set := Parse([]File{{Path: "status.yaml", Data: text}})
	if len(set.Clusters)+len(set.Held)+len(set.Problems)+len(set.Unreadable) > 0 {
		t.Errorf("it was taken for ours: %+v", set)
	}
}

func TestStatusesAreOrdered(t *testing.T) {
	var list []Status
	for _, of := range [][3]string{
		{KindRestore, "a", "a"}, {KindBackup, "a", "a"}, {KindCluster, "b", "a"}, {KindBackupSchedule, "a", "a"}, {KindCluster, "a", "b"}, {KindCluster, "a", "a"},
	} {
		list = append(list, NewStatus(of[0], of[1], of[2], PhaseReady, "Idle", ""))
	}
	SortStatuses(list)
	var got []string
	for _, s := range list {
		got = append(got, s.Kind+" "+s.Metadata.Namespace+"/"+s.Metadata.Name)
	}
	want := []string{"EtcdCluster a/a", "EtcdCluster a/b", "EtcdCluster b/a", "EtcdBackup a/a", "EtcdBackupSchedule a/a", "EtcdRestore a/a"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTimeTextIsUTCOrNothing(t *testing.T) {
	for want, at := range map[string]time.Time{
		"":                     {},
		"2026-03-01T02:00:00Z": time.Date(2026, 3, 1, 4, 0, 0, 5, time.FixedZone("", 2*60*60)),
	} {
		if got := TimeText(at); got != want {
			t.Errorf("%v is %q, want %q", at, got, want)
		}
	}
}
