package execute

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// I7: a record gives way to a restore only where its cluster was deleted, and Git
// asks for its place.
func TestARecordGivesWayOnlyWhenItsClusterIsDeleted(t *testing.T) {
	begin, c := action.BeginRestore{Restore: "back", SpecHash: "r1"}, clustertest.Orders()
	living, deleted, begun := record.New("t1"), record.New("t1"), record.New("t1")
	deleted.Deleted = true
	begun.Restored = &record.Restored{Name: "back", SpecHash: "r1"}
	other, edited := record.New("t1"), record.New("t1")
	other.Restored, edited.Restored = &record.Restored{Name: "forth", SpecHash: "r1"}, &record.Restored{Name: "back", SpecHash: "r2"}
	for name, test := range map[string]struct {
		was     *record.Record
		inPlace bool
		want    error
	}{
		"nothing":                      {nil, false, nil},
		"nothing to take the place of": {nil, true, state.ErrChanged},
		"a living cluster":             {&living, false, state.ErrChanged},
		"a living cluster's place":     {&living, true, state.ErrChanged},
		"a deleted cluster":            {&deleted, false, state.ErrChanged},
		"a deleted cluster's place":    {&deleted, true, nil},
		"the same restore":             {&begun, false, nil},
		"the same restore in a place":  {&begun, true, nil},
		"another restore":              {&other, false, state.ErrChanged},
		"the same name, another spec":  {&edited, false, state.ErrChanged},
	} {
		var live *corev1.ConfigMap
		if test.was != nil {
			live = &corev1.ConfigMap{Data: test.was.ConfigMap(c).Data}
		}
		begin.InPlace = test.inPlace
		if was, err := recordToSucceed(live, begin); !errors.Is(err, test.want) || (was != nil) != (test.was != nil && test.want == nil) {
			t.Errorf("%s: %+v, %v", name, was, err)
		}
	}
}
