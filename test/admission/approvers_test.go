package admission

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// approverOf is a client of a person who is in some groups.
func approverOf(t *testing.T, user string, groups ...string) *kubernetes.Clientset {
	t.Helper()
	config := rest.CopyConfig(api)
	config.Impersonate = as(user)
	config.Impersonate.Groups = append(config.Impersonate.Groups, groups...)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// 520: who may approve a held commit is a matter of RBAC: the Role of deploy/policy lets a group
// do it, and with deploy/admission nothing else. Without that it could change the commit in force.
func TestApproversApproveAndNothingElse(t *testing.T) {
	h := newHouse(t)
	h.furnish("approvers")
	text, err := os.ReadFile(filepath.Join(deploy("policy"), "approvers.yaml"))
	h.must(err)
	for _, part := range strings.Split(string(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		h.must(yaml.UnmarshalStrict([]byte(part), &o.Object))
		h.apply(o)
	}
	ada, bob := approverOf(t, "ada", "etcd-approvers"), approverOf(t, "bob", "developers")
	approve := patch(quorateSystem, inForce, `{"metadata":{"annotations":{"quorate.dev/approve":"x"}}}`)
	try := func(what string, c kubernetes.Interface, do func(context.Context, kubernetes.Interface) error, wanted func(error) bool) {
		h.Helper()
		h.await(what, func() error { return do(t.Context(), c) }, wanted)
	}
	read := func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps(quorateSystem).Get(ctx, inForce, metav1.GetOptions{})
		return err
	}
	forge := patch(quorateSystem, inForce, `{"data":{"commit":"x"}}`)

	try("ada reads the commit in force", ada, read, allowed)
	try("ada approves", ada, approve, allowed)
	try("ada forges the commit in force", ada, forge, refusedBy("quorate-records", "change nothing but the annotation quorate.dev/approve"))
	try("ada approves what another quorate holds", ada, patch(quorateSystem, "quorate-git-abcdef0123", `{"metadata":{"annotations":{"quorate.dev/approve":"x"}}}`), apierrors.IsForbidden)
	try("ada annotates a record", ada, patch("approvers", ownRecord, `{"metadata":{"annotations":{"quorate.dev/approve":"x"}}}`), apierrors.IsForbidden)
	try("bob approves", bob, approve, apierrors.IsForbidden)
	h.remove(h.bindings["quorate-records"])
	try("without the policy, ada forges the commit in force", ada, forge, allowed)
	h.apply(h.bindings["quorate-records"])
}
