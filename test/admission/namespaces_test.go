package admission

import (
	"errors"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/schema"
)

// 476: the overlay binds quorate's role in each of the namespaces that it names, and nowhere else.
func TestTheOverlayOfNamespacesBindsEach(t *testing.T) {
	bound, named := map[string]bool{}, ""
	for _, o := range deployed(t, deploy("overlays/namespaces")) {
		switch o.GetKind() {
		case "ClusterRoleBinding":
			t.Errorf("it binds %s everywhere", o.GetName())
		case "RoleBinding":
			b := typed[rbacv1.RoleBinding](t, o)
			bound[b.Namespace] = b.RoleRef.Kind == "ClusterRole" && b.RoleRef.Name == "quorate" && b.Subjects[0].Namespace == quorateSystem
		case "Deployment":
			for _, arg := range typed[appsv1.Deployment](t, o).Spec.Template.Spec.Containers[0].Args {
				if of, ok := strings.CutPrefix(arg, "--namespaces="); ok {
					named = of
				}
			}
		}
	}
	if want := map[string]bool{"team-a": true, "team-b": true, quorateSystem: false}; named != "team-a,team-b" || !maps.Equal(bound, want) {
		t.Errorf("it names %q and binds %v", named, bound)
	}
}

// 476: with --namespaces a RoleBinding in each is all that quorate needs to make a cluster and
// to upgrade it. A namespace where it has none keeps no other from that, and is told.
func TestARoleBindingInEachNamespaceIsEnough(t *testing.T) {
	const confined = "confined"
	h := emptyHouse(t)
	for _, o := range deployed(t, deploy("base")) {
		if o.GetKind() == "ClusterRole" {
			h.apply(o)
		}
	}
	h.apply(object("v1", "Namespace", "", "unbound", nil))
	w := newWorldIn(t, "bound", as(confined), kube.Namespaces{"bound", "unbound"})
	if _, err := w.r.Plan(t.Context(), w.wish); !errors.Is(err, observe.ErrUnread) || !strings.Contains(err.Error(), "by a RoleBinding") {
		t.Errorf("before it is let in: %v", err)
	}
	h.bind("bound", confined, "ClusterRole", "quorate")
	h.await("the watches of the namespace that it is let in to", func() error {
		_, err := w.r.Plan(t.Context(), w.wish)
		return err
	}, allowed)

	before, other := len(w.writes.refused()), w.wish
	other.Metadata.Namespace = "unbound"
	w.r.SetDesired([]desired.Cluster{w.wish, other})
	w.untilIdle()
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	w.r.SetDesired([]desired.Cluster{w.wish, other})
	w.untilIdle()
	for name := range w.pods() {
		if w.version(name) != "3.6.17" {
			t.Errorf("%s runs %s", name, w.version(name))
		}
	}
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version, c.Spec.Upgrade.Wave = "3.6.16", 1 })
	w.untilHeld("fleet", "unbound/orders", "has not been read")
	if _, err := w.r.Plan(t.Context(), other); !errors.Is(err, observe.ErrUnread) {
		t.Errorf("where it is not let in: %v", err)
	}
	for _, r := range w.writes.refused()[before:] {
		// Nodes and volumes belong to no namespace. Without them a lost node is a matter for a person.
		if !strings.HasPrefix(r, "GET unbound/") && !strings.HasPrefix(r, "GET persistentvolumes/") && r != "GET v1/nodes" {
			t.Errorf("it may not %s", r)
		}
	}
}
