package follow

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/desired/desiredtest"
)

// stored returns the ConfigMap with the accepted commit.
func (f *followed) stored() *corev1.ConfigMap {
	f.Helper()
	cm, err := f.kube.CoreV1().ConfigMaps("quorate-system").Get(f.Context(), f.p.store.name, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return cm
}

// reset moves the branch to a commit, as a forced push does.
func (f *followed) reset(commit string) {
	f.Helper()
	f.Git("reset", "--quiet", "--hard", commit)
}

// rewound is a poller that followed a branch from one commit to a second one; the branch is
// at the first one again, whose version is 3.6.16.
func rewound(t *testing.T) (f *followed, first, second string) {
	t.Helper()
	f = follow(t)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	first = f.Head()
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	second = f.Head()
	f.reset(first)
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 1)
	f.wantHeld(heldHistory, "quorate.dev/approve="+second+".."+first)
	return f, first, second
}

// 475: an approval is valid once: after another commit is accepted, a forced push back to the
// approved one is held again, and an approval of one transition does not allow another.
func TestAnApprovalIsForOneTransition(t *testing.T) {
	f, first, second := rewound(t)
	f.annotate(second + ".." + first)
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.wantHeld("", "approval="+second+".."+first+` by="annotation by `)
	if d := f.p.Details(); d.Approval.String() != second+".."+first || !strings.HasPrefix(d.Approval.By, "annotation by ") {
		t.Errorf("details are %+v", d)
	}
	if a := f.r.Desired()["shop/orders"].Accepted; a.Approval != second+".."+first || !strings.HasPrefix(a.ApprovedBy, "annotation by ") {
		t.Errorf("the cluster's commit was accepted by %+v", a)
	}
	cm := f.stored()
	if left := cm.Annotations[annotationApprove]; left != "" || cm.Data[keyApproved] != second+".."+first || !strings.HasPrefix(cm.Data[keyApprovedBy], "annotation") {
		t.Errorf("the annotation %q is left, and the ConfigMap says %q", left, cm.Data)
	}

	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12"))
	third := f.Head()
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)
	if said := f.stored().Data[keyApproved]; said != "" {
		t.Errorf("a commit without an approval was accepted by %q", said)
	}
	f.reset(first)
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 1)
	f.restart()
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 1)
	f.annotate(second + ".." + first)
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)
	f.annotate(third + ".." + first)
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
}

// 475: what was approved while one commit was in force is not approved from the next one on.
func TestAnApprovalGoesWithTheCommitInForce(t *testing.T) {
	f, first, second := rewound(t)
	f.reset(second)
	f.annotate(first)
	f.restart() // stores the commit in force once more
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	if left := f.stored().Annotations[annotationApprove]; left != first {
		t.Errorf("the commit in force was read again, and the approval is %q", left)
	}
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12"))
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)
	f.reset(first)
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 1)
}

// 475: the flag stays where the annotation goes, and counts once as well.
func TestApprovalByFlagCountsOnce(t *testing.T) {
	for _, from := range []bool{false, true} {
		f, first, second := rewound(t)
		f.approved = first
		if from {
			f.approved = second + ".." + first
		}
		f.restart()
		f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
		f.wantHeld("", "by=--approve-commit")
		f.restart()
		f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
		if cm := f.stored(); cm.Data[keyApproved] != f.approved || cm.Data[keyApprovedBy] != "--approve-commit" || strings.Contains(f.log.String(), "approval used") {
			t.Errorf("after a restart the ConfigMap says %q, and the log\n%s", cm.Data, f.log)
		}
		f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12"))
		third := f.Head()
		f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)
		f.reset(first)
		f.restart()
		f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 1)
		f.approved = third + ".." + first
		f.restart()
		f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	}
}

// 475: what is in force already needs no approval, and none is left over from it.
func TestApprovalOfTheCommitInForceIsUsedUp(t *testing.T) {
	f := follow(t)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	first := f.Head()
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.approved = first
	f.restart()
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	f.reset(first)
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 1)
}

// An annotation that says nothing is told with the form that it needs.
func TestUnreadableApprovalIsTold(t *testing.T) {
	f, first, _ := rewound(t)
	f.annotate(first[:7])
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 1)
	f.wantHeld(heldHistory, "is no approval: give FROM..TO")
}

func TestParseApproval(t *testing.T) {
	a, b := strings.Repeat("a", 40), strings.Repeat("B", 40)
	for text, want := range map[string]Approval{
		"":           {},
		a:            {To: a},
		a + ".." + b: {From: a, To: b},
	} {
		if got, err := ParseApproval(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"main", a[:39], a + "..", ".." + b, a + "..." + b, a + ".." + b + "..", a[:7] + ".." + b, " " + a} {
		if got, err := ParseApproval(text); err == nil || !strings.Contains(err.Error(), "FROM..TO") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestApprovalSaysWhoGaveIt(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	wrote := func(manager, field string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + field + `":{}}}}`)}
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		wrote("quorate", "other"), {Manager: "empty"}, wrote("kubectl-annotate", annotationApprove),
	}}}
	if got, want := annotatedBy(cm), "annotation by kubectl-annotate at 2026-03-01T12:00:00Z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// 475: an approval that is taken back before the commit could be stored lets nothing in.
func TestAnApprovalThatIsTakenBackCountsNoMore(t *testing.T) {
	f, first, second := rewound(t)
	f.annotate(second + ".." + first)
	refused := true
	f.kube.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, errors.New("etcdserver: request timed out")
	})
	f.pollOnce([]string{"shop/orders 3.6.17"}, 1, 0, 1)
	refused = false
	f.annotate("")
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 1)
	f.wantHeld(heldHistory, "quorate.dev/approve="+second+".."+first)
}
