package plan

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/schema"
)

// stored gives a cluster volumes of 8 GiB of a class, all as Git says.
func stored(class string) mutation {
	return func(s *situation) {
		s.o.Volumes = memberVolumes(s.d.Spec.Replicas)
		for i := range s.o.Volumes {
			s.o.Volumes[i].Class = class
		}
		s.d.Spec.Storage = schema.StorageSpec{Size: resource.MustParse("8Gi"), StorageClassName: &class}
		s.o.Set.ClaimSize, s.o.Set.ClaimClass = 8<<30, class
	}
}

// wants is a commit that asks for another size.
func wants(size string) mutation {
	return func(s *situation) { s.d.Spec.Storage.Size, s.d.SpecHash = resource.MustParse(size), "b" }
}

// wantsClass is a commit that asks for another class.
func wantsClass(class string, change schema.ClassChange) mutation {
	return func(s *situation) {
		s.d.Spec.Storage.StorageClassName, s.d.Spec.Storage.ClassChange, s.d.SpecHash = &class, change, "b"
	}
}

// ofVolume changes the volume of one member.
func ofVolume(ordinal int32, change func(*Volume)) mutation {
	return func(s *situation) { change(s.o.volume(podName("orders", ordinal))) }
}

// grown gives volumes the size, and what they have of it.
func grown(size, capacity int64, ordinals ...int32) mutation {
	return func(s *situation) {
		for _, i := range ordinals {
			ofVolume(i, func(v *Volume) { v.Size, v.Capacity = size<<30, capacity<<30 })(s)
		}
	}
}

func TestEnlarge(t *testing.T) {
	larger := with(stored("fast"), wants("16Gi"))
	checkRule(t, enlarge, []ruleCase{
		{name: "17: as Git says", change: stored("fast")},
		{name: "17: in other words", change: with(stored("fast"), wants("8192Mi"))},
		{name: "one after the other", change: larger, want: "grow the volume of orders-0 8Gi → 16Gi"},
		{name: "the next", change: with(larger, grown(16, 8, 0)), want: "grow the volume of orders-1 8Gi → 16Gi"},
		{name: "all have been asked", change: with(larger, grown(16, 8, 0, 1, 2))},
		{name: "6: never to less", change: with(stored("fast"), wants("4Gi"))},
		{name: "92: a full disk is no reason to wait", change: with(larger, down(1)), want: "grow the volume of orders-0"},
		{name: "one that cannot grow does not keep the others from it", change: with(larger, ofVolume(0, func(v *Volume) { v.Rigid = "no" })), want: "grow the volume of orders-1"},
		{name: "one that is being deleted is left alone", change: with(larger, ofVolume(0, func(v *Volume) { v.Terminating = true })), want: "grow the volume of orders-1"},
		{name: "one that has no volume yet has the size of its claim", change: with(larger, ofVolume(0, func(v *Volume) { v.Bound = false })), want: "grow the volume of orders-1"},
		{name: "48: one that no member has is left alone", change: with(larger, grown(16, 16, 0, 1, 2), func(s *situation) {
			s.o.Volumes = append(s.o.Volumes, memberVolume("data-orders-3", 8<<30))
		})},
		{name: "34: nothing of an unformed cluster", change: with(larger, unformed)},
	})
}

func TestVolumes(t *testing.T) {
	larger := with(stored("fast"), wants("16Gi"))
	asked := with(larger, grown(16, 8, 0, 1, 2))
	done := with(larger, grown(16, 16, 0, 1, 2))
	checkRule(t, volumes, []ruleCase{
		{name: "17: as Git says", change: stored("fast")},
		{name: "a class that does not allow it", change: with(larger, ofVolume(0, func(v *Volume) { v.Rigid = "its StorageClass fast does not allow it (allowVolumeExpansion)" })), want: "Refused: the volume of orders-0 has 8Gi and cannot grow to 16Gi: its StorageClass fast does not allow it (allowVolumeExpansion); set spec.storage.size back, or let the StorageClass"},
		{name: "the disk", change: asked, want: "Waiting: the volume of orders-0 grows from 8Gi to 16Gi"},
		{name: "the file system", change: with(asked, ofVolume(0, func(v *Volume) { v.Growing = "FileSystemResizePending: on the node" })), want: "Waiting: the volume of orders-0 grows from 8Gi to 16Gi (FileSystemResizePending: on the node)"},
		{name: "a provisioner that cannot", change: with(asked, ofVolume(0, func(v *Volume) { v.Trouble = "NodeResizeError: no" })), want: "Unhealthy: the volume of orders-0 grows from 8Gi to 16Gi, but NodeResizeError: no; look at its claim data-orders-0"},
		{name: "one is still missing", change: with(done, grown(16, 8, 2)), want: "Waiting: the volume of orders-2 grows"},
		{name: "then the StatefulSet", change: done, want: "release the pods from the StatefulSet: new members would get 8Gi instead of 16Gi: it is made anew around its pods, and none of them restarts"},
		{name: "not in the middle of a roll", change: with(done, commit(newVersion))},
		{name: "not while a pod is missing", change: with(done, func(s *situation) { s.o.Pods = s.o.Pods[1:] })},
		{name: "6: a smaller wish is not this rule's", change: with(stored("fast"), wants("4Gi"))},
		{name: "5: another class that Git does not insist on is not this rule's", change: with(stored("fast"), wantsClass("slow", ""))},
		{name: "5: another class by replacement", change: with(stored("fast"), wantsClass("slow", schema.ClassChangeReplace)), want: "release the pods from the StatefulSet: new members would get volumes of class fast instead of class slow"},
		{name: "5: nor one that nobody names", change: with(stored("fast"), wantsClass("slow", schema.ClassChangeReplace), func(s *situation) { s.d.Spec.Storage.StorageClassName = nil })},
		{name: "an unformed cluster", change: with(larger, unformed)},
	})
}

func TestReleasedPodsAreTakenOver(t *testing.T) {
	released := with(stored("fast"), wants("16Gi"), grown(16, 16, 0, 1, 2), func(s *situation) { s.o.Set = nil })
	checkRule(t, drift, []ruleCase{
		{name: "by a new StatefulSet, although the spec was never carried out", change: released, want: "create 3 members: the StatefulSet is gone, and its pods are as Git wants them: a new one takes them over, and none restarts"},
		{name: "for as many members as there are", change: with(released, func(s *situation) { s.d.Spec.Replicas = 5 }), want: "create 3 members"},
		{name: "also when one pod has died meanwhile", change: with(released, func(s *situation) { s.o.Pods = s.o.Pods[1:] }), want: "create 3 members: the StatefulSet is gone, and its pods"},
		{name: "I25: not when a new commit would restart them", change: with(released, commit(newVersion)), want: "Refused: the StatefulSet is gone, and the file has changed"},
		{name: "I25: not when one of them has another template", change: with(released, func(s *situation) { s.pod(1).Template = "z" }), want: "Refused: the StatefulSet is gone, and the file has changed"},
		{name: "I5: not when a volume is gone", change: with(released, func(s *situation) { s.o.Volumes = s.o.Volumes[1:] }), want: "Refused"},
		{name: "85: none is left, and the file has changed", change: with(released, func(s *situation) { s.o.Pods = nil }), want: "Refused: the StatefulSet is gone, and the file has changed"},
		{name: "not before the old one is gone", change: func(s *situation) { s.o.Set.Terminating = true }, want: "Waiting: the StatefulSet is being deleted; its pods stay"},
	})
}

func TestMisplaced(t *testing.T) {
	moved := with(stored("fast"), wantsClass("slow", schema.ClassChangeReplace))
	reshaped := with(moved, func(s *situation) { s.o.Set.ClaimClass = "slow" })
	for _, c := range []struct {
		name   string
		change mutation
		want   []string
	}{
		{"17: as Git says", stored("fast"), nil},
		{"not before new members get the right class", moved, nil},
		{"then from the highest ordinal down", reshaped, []string{"orders-2", "orders-1", "orders-0"}},
		{"those that are left", with(reshaped, ofVolume(2, func(v *Volume) { v.Class = "slow" })), []string{"orders-1", "orders-0"}},
		{"not one whose volume goes anyhow", with(reshaped, ofVolume(2, func(v *Volume) { v.Terminating = true })), []string{"orders-1", "orders-0"}},
		{"nobody without Git's word", with(reshaped, wantsClass("slow", "")), nil},
		{"nobody without a class", with(reshaped, func(s *situation) { s.d.Spec.Storage.StorageClassName = nil }), nil},
		{"nobody without a StatefulSet", with(reshaped, func(s *situation) { s.o.Set = nil }), nil},
	} {
		s := healthy(3)
		c.change(s)
		if got := s.misplaced(); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// I25: growth restarts nobody, and the forecast says so.
func TestGrowthRestartsNobody(t *testing.T) {
	s := healthy(3)
	with(stored("fast"), wants("16Gi"))(s)
	p := Make(s.d, s.o, noon)
	if len(p.Steps) != 6 || len(Restarts(p.Steps)) != 0 {
		t.Errorf("plan:\n%s", p.Text())
	}
}
