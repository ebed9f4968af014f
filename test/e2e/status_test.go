package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/freeport"
	"github.com/quorate/quorate/test/lab"
)

// 137, 139, 158: the status branch reports an upgrade while it is in progress and when it
// is over, and of what holds; quorate does not follow what it writes.
func TestStatusBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "status")
	page, err := freeport.At("127.0.0.1")
	w.must(err)
	w.options.Args = []string{"--status=branch", "--status-interval=1s", "--page-listen=" + page, "--page-auth=token"}
	w.needsClusterScoped() // whose token it is
	want := spec{version: "3.6.12", replicas: 1}
	w.create(want)
	w.awaitStatus(schema.PhaseReady, func(s schema.ObjectStatus) bool { return s.Cluster.Version.Highest == "3.6.12" })
	first := w.head

	want.version = "3.6.16"
	w.commit("Upgrade to 3.6.16", want)
	w.awaitIdle("3.6.16", rollLimit)
	s := w.awaitStatus(schema.PhaseReady, func(s schema.ObjectStatus) bool { return s.Cluster.Version.Lowest == "3.6.16" })
	if m := s.Cluster.Members; s.Commit != w.head || len(m) != 1 || m[0].ID == "" || !m[0].Leader || m[0].Health != schema.HealthHealthy {
		t.Errorf("after the upgrade the status is %+v", s)
	}
	subjects := w.statusLog()
	if !slices.ContainsFunc(subjects, func(s string) bool { return strings.Contains(s, name+" reconciling (") }) {
		t.Errorf("no commit reports the upgrade in progress: %q", subjects)
	}

	want.version = "3.4.34"
	w.commit("Go back too far", want)
	s = w.awaitStatus(schema.PhaseStalled, func(s schema.ObjectStatus) bool { return s.Cluster.Hold != nil })
	if s.Cluster.Hold.Kind != "Refused" || s.Commit != w.head || s.Commit == first {
		t.Errorf("the hold is %+v of commit %s", s.Cluster.Hold, s.Commit)
	}
	readme, err := w.git.Git(w.Context(), "show", "quorate/status:README.md")
	w.must(err)
	if !strings.Contains(readme, "🔴 Stalled | [`"+w.key()+"`](clusters/"+w.key()+".yaml)") {
		t.Errorf("the page is\n%s", readme)
	}
	w.wantMeasuredAndEvents(page)

	w.awaitLabels(map[string]string{naming.LabelPhase: "Stalled", naming.LabelReason: "Refused", naming.LabelWantedVersion: "3.4.34", naming.LabelCommit: w.head})
	cm, err := w.cluster.Client.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), naming.Status(schema.KindCluster, name), metav1.GetOptions{})
	w.must(err)
	beside, _, err := statuses.Read(cm)
	w.must(err)
	if h := beside.Status.Cluster.Hold; h == nil || *h != *s.Cluster.Hold || beside.Condition(schema.ConditionStalled).LastTransitionTime == "" {
		t.Errorf("beside the cluster stands\n%s", cm.Data[naming.KeyStatus])
	}

	before := w.statusLog()
	time.Sleep(quiet)
	if after := w.statusLog(); len(after) != len(before) {
		t.Errorf("nothing happened, and these commits came: %q", after[:len(after)-len(before)])
	}
}

// wantMeasuredAndEvents wants the page at an address to know the databases of the members,
// and what quorate and others have said of the cluster, with the rights of deploy/base, 243 and 246.
func (w *world) wantMeasuredAndEvents(address string) {
	w.Helper()
	token := w.viewer()
	ask := func(what string, into any) {
		w.Helper()
		request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, "http://"+address+"/api/v1/statuses/"+schema.KindCluster+"/"+w.key()+"/"+what, nil)
		w.must(err)
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(request)
		w.must(err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		w.must(err)
		if answer.StatusCode != http.StatusOK {
			w.Fatalf("%s: %s: %s", what, answer.Status, text)
		}
		w.must(json.Unmarshal(text, into))
	}
	var measured schema.Measured
	ask("measured", &measured)
	if m := measured.Members; len(m) != 1 || m[0].Size <= 0 || m[0].InUse <= 0 || m[0].Quota < m[0].Size {
		w.Errorf("measured are %+v", m)
	}
	type event struct{ Reason, Kind, Name string }
	var happened struct{ Done, Events []event }
	ask("events", &happened)
	if !slices.ContainsFunc(happened.Done, func(e event) bool { return e.Reason == "RestartMember" }) {
		w.Errorf("quorate has done %+v", happened.Done)
	}
	if !slices.ContainsFunc(happened.Events, func(e event) bool { return e.Kind == "Pod" && e.Name == name+"-0" }) {
		w.Errorf("of the member is told %+v", happened.Events)
	}
}

// viewer is the token of an account that may read the page.
func (w *world) viewer() string {
	w.Helper()
	rbac, named := w.cluster.Client.RbacV1(), metav1.ObjectMeta{Name: w.namespace + "-viewer"}
	_, err := rbac.ClusterRoles().Create(w.Context(), &rbacv1.ClusterRole{
		ObjectMeta: named, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/quorate"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	w.must(err)
	_, err = rbac.ClusterRoleBindings().Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: w.namespace}},
	}, metav1.CreateOptions{})
	w.must(err)
	w.Cleanup(func() {
		ctx := context.Background()
		w.must(rbac.ClusterRoleBindings().Delete(ctx, named.Name, metav1.DeleteOptions{}))
		w.must(rbac.ClusterRoles().Delete(ctx, named.Name, metav1.DeleteOptions{}))
	})
	token, err := w.cluster.Client.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	w.must(err)
	return token.Status.Token
}

// awaitLabels waits until kubectl get sts -L shows these, 230 and 232.
func (w *world) awaitLabels(want map[string]string) {
	w.Helper()
	w.eventually("the labels of the StatefulSet", holdLimit, func(ctx context.Context) (bool, error) {
		set, err := w.cluster.Client.AppsV1().StatefulSets(w.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for label, value := range want {
			if set.Labels[label] != value || set.Spec.Template.Labels[label] != "" {
				return false, nil
			}
		}
		return true, nil
	})
}

// awaitStatus waits until the status branch says so of the cluster.
func (w *world) awaitStatus(phase schema.Phase, match func(schema.ObjectStatus) bool) schema.ObjectStatus {
	w.Helper()
	var last string
	var s schema.Status
	err := lab.Poll(w.Context(), holdLimit, func(ctx context.Context) (bool, error) {
		text, err := w.git.Git(ctx, "show", "quorate/status:clusters/"+w.key()+".yaml")
		if err != nil {
			last = err.Error()
			return false, nil // nothing is there yet
		}
		last, s = text, schema.Status{}
		if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
			return false, err
		}
		now, _ := s.Phase()
		return now == phase && match(s.Status), nil
	})
	if err != nil {
		w.Fatalf("the status never became %s (%v); it is\n%s", phase, err, last)
	}
	return s.Status
}

// statusLog are the subjects of the status branch's commits, the newest first.
func (w *world) statusLog() []string {
	w.Helper()
	text, err := w.git.Git(w.Context(), "log", "--format=%s", "quorate/status")
	w.must(err)
	return strings.Split(text, "\n")
}
