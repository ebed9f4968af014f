package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/record"
)

// TestScale changes the number of members up and down while clients write: one
// member at a time, each as a learner first, and nothing acknowledged is lost.
func TestScale(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "scale")
	want := spec{version: "3.6.16", replicas: 1}
	w.create(want)
	history, writer, sizes := w.recordHistory("history/"), w.load(), w.watchMembers()
	first := w.record()

	steps := []struct {
		name     string
		replicas int
		leader   string
		sizes    []string
	}{
		{"37: 1→3", 3, "", []string{"1", "1+1", "2", "2+1", "3"}},
		{"37, 39: 3→1, the leader goes", 1, "orders-2", []string{"3", "2", "1"}},
		{"37, 48: 1→3, where members were before", 3, "", []string{"1", "1+1", "2", "2+1", "3"}},
	}
	if *long {
		steps = slices.Insert(steps, 1, []struct {
			name     string
			replicas int
			leader   string
			sizes    []string
		}{
			{"37: 3→5", 5, "", []string{"3", "3+1", "4", "4+1", "5"}},
			{"37, 39: 5→3, the leader goes", 3, "orders-4", []string{"5", "4", "3"}},
		}...)
	}
	for _, tc := range steps {
		ok := t.Run(tc.name, func(t *testing.T) {
			v := *w
			v.T = t
			if tc.leader != "" {
				v.must(v.cluster.MoveLeader(t.Context(), v.namespace, name, tc.leader))
			}
			before := v.uids()
			want.replicas = tc.replicas
			v.apply(fmt.Sprintf("Scale to %d", tc.replicas), want)
			v.expectSizes(sizes, tc.sizes...)
			v.expectVersion(tc.replicas, want.version)
			v.expectRecord(tc.replicas)
			v.expectBudget(tc.replicas)
			v.expectNoOther(before, v.uids())
			if id := v.record().ClusterID; id != first.ClusterID {
				t.Errorf("cluster %s became %s", first.ClusterID, id)
			}
			v.checkHistory(history)
			v.expectProgress(history)
		})
		if !ok {
			return // the next step would begin elsewhere
		}
	}
	w.underAnOlderRecord()
	w.finishLoad(writer)
	w.expectIdle(want.version)
}

// underAnOlderRecord puts the record back that there was before all but the first member had joined, as a restore
// of the Kubernetes API does (306): no pod stops. Then it puts back the one that was last.
func (w *world) underAnOlderRecord() {
	w.Helper()
	before, last := w.uids(), w.record()
	mark := w.daemon.Log.Mark()
	w.editRecord(func(r *record.Record) {
		r.Retired = nil
		maps.DeleteFunc(r.Members, func(member, _ string) bool { return member != "orders-0" })
	})
	w.awaitHold("Refused", holdLimit, "etcd lists orders-", "restore ConfigMap orders-record as it was last")
	time.Sleep(quiet)
	if after := w.uids(); !maps.Equal(before, after) {
		w.Errorf("pods %v became %v", before, after)
	}
	w.expectNoStep(mark)
	w.expectBudget(3)
	w.mark = w.daemon.Log.Mark()
	w.editRecord(func(r *record.Record) { *r = last })
}

// expectBudget wants the disruption budget to let one of n members go at a time.
func (w *world) expectBudget(n int) {
	w.Helper()
	w.eventually(fmt.Sprintf("the budget of %d members", n), holdLimit, func(ctx context.Context) (bool, error) {
		budget, err := w.cluster.Client.PolicyV1().PodDisruptionBudgets(w.namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && budget.Spec.MinAvailable.IntValue() == max(n-1, 1), err
	})
}

// expectNoOther wants no pod to have been replaced but those in except.
func (w *world) expectNoOther(before, after map[string]string, except ...string) {
	w.Helper()
	for pod, uid := range after {
		if before[pod] != "" && before[pod] != uid && !slices.Contains(except, pod) {
			w.Errorf("%s was replaced", pod)
		}
	}
}

// claims are the cluster's volume claims that are not on their way out.
func (w *world) claims(ctx context.Context) ([]string, error) {
	list, err := w.cluster.Client.CoreV1().PersistentVolumeClaims(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: clusterSelector})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range list.Items {
		if c.DeletionTimestamp == nil {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
