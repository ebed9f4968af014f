package execute

import (
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// EtcdArgs are the flags of etcd in the StatefulSet's template.
func EtcdArgs(set *appsv1.StatefulSet) []string { return set.Spec.Template.Spec.Containers[0].Args }

// Count is how many of the list contain a text.
func Count(list []string, text string) int {
	n := 0
	for _, s := range list {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

// A member that runs a release which reads old logs only so far has seen, when it
// started, that its own is readable; one of any other release has seen nothing.
func TestAppliedReleaseHasReadTheLogs(t *testing.T) {
	for version, want := range map[string]map[string]string{"3.7.3": {"orders-0": "a0"}, "3.6.16": nil} {
		r := record.Record{Members: map[string]string{"orders-0": "a0"}}
		record.Apply(action.RecordApplied{Version: version}, schema.Acceptance{}, time.Time{})(&r)
		if !maps.Equal(r.Flushed, want) {
			t.Errorf("after %s: %v", version, r.Flushed)
		}
	}
}
