package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// The users of these tests.
const (
	// quorate is the service account of deploy/base, and its namespace.
	quorate       = "system:serviceaccount:quorate-system:quorate"
	quorateSystem = "quorate-system"
	// tenant has the ClusterRole edit, and owner all verbs on everything, in one namespace.
	tenant = "tenant"
	owner  = "owner"
	// repairer has the ClusterRole quorate-override, and edit.
	repairer = "repairer"
	// The controllers of Kubernetes that delete ConfigMaps, and all of them where they share a user.
	ofNamespaces = "system:serviceaccount:kube-system:namespace-controller"
	ofOwners     = "system:serviceaccount:kube-system:generic-garbage-collector"
	ofAll        = "system:kube-controller-manager"
)

// deployed are the objects of a kustomization, as kubectl makes them.
func deployed(t *testing.T, dir string) (objects []*unstructured.Unstructured) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v\n%s", dir, err, out)
	}
	for _, text := range strings.Split(string(out), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatalf("kubectl kustomize %s: %v\n%s", dir, err, text)
		}
		objects = append(objects, o)
	}
	return objects
}

// deploy is a directory of deploy/.
func deploy(dir string) string { return filepath.Join("..", "..", "deploy", dir) }

// as is a user of that name.
func as(name string) rest.ImpersonationConfig {
	groups := []string{"system:authenticated"}
	if account := strings.Split(name, ":"); len(account) == 4 {
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+account[2])
	}
	return rest.ImpersonationConfig{UserName: name, Groups: groups}
}

// clientOf is a client of a user.
func clientOf(t *testing.T, user string) *kubernetes.Clientset {
	t.Helper()
	config := rest.CopyConfig(api)
	config.Impersonate, config.WarningHandler = as(user), rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// house is an API server with what is deployed: quorate's rights, and its policies in force.
type house struct {
	*testing.T
	kube     *kubernetes.Clientset
	dynamic  dynamic.Interface
	bindings map[string]*unstructured.Unstructured
}

// newHouse deploys deploy/base, as far as it is rights, and deploy/admission. The policies end
// with the test.
func newHouse(t *testing.T) *house {
	t.Helper()
	h := emptyHouse(t)
	rights := []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
	for _, o := range deployed(t, deploy("base")) {
		if slices.Contains(rights, o.GetKind()) {
			h.apply(o)
		}
	}
	for _, o := range deployed(t, deploy("admission")) {
		h.apply(o)
		switch o.GetKind() {
		case "ValidatingAdmissionPolicyBinding":
			h.bindings[o.GetName()] = o
			fallthrough
		case "ValidatingAdmissionPolicy":
			t.Cleanup(func() { h.remove(o) })
		}
	}
	return h
}

// emptyHouse is the API server as it is.
func emptyHouse(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, bindings: map[string]*unstructured.Unstructured{}}
	var err error
	h.kube, err = kubernetes.NewForConfig(api)
	h.must(err)
	h.dynamic, err = dynamic.NewForConfig(api)
	h.must(err)
	return h
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// of is where objects like this one are.
func (h *house) of(o *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return h.dynamic.Resource(resource).Namespace(o.GetNamespace())
}

// apply applies an object; a field that its kind does not have is an error.
func (h *house) apply(o *unstructured.Unstructured) {
	h.Helper()
	text, err := json.Marshal(o.Object)
	h.must(err)
	_, err = h.of(o).Patch(h.Context(), o.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: "test", Force: new(true), FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		h.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

func (h *house) remove(o *unstructured.Unstructured) {
	h.Helper()
	if err := h.of(o).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}); err != nil {
		h.Errorf("delete %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// policies are those that are deployed.
func (h *house) policies() (list []admissionv1.ValidatingAdmissionPolicy) {
	h.Helper()
	all, err := h.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(h.Context(), metav1.ListOptions{})
	h.must(err)
	for _, p := range all.Items {
		if strings.HasPrefix(p.Name, "quorate-") {
			list = append(list, p)
		}
	}
	return list
}

// namespace makes a namespace with its people.
func (h *house) namespace(name string) {
	h.Helper()
	h.apply(object("v1", "Namespace", "", name, nil))
	h.bind(name, tenant, "ClusterRole", "edit")
	h.bind(name, repairer, "ClusterRole", "edit")
	h.apply(object(rbacv1.SchemeGroupVersion.String(), "Role", name, owner, map[string]any{
		"rules": []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}}},
	}))
	h.bind(name, owner, "Role", owner)
}

// bind gives a user a role in a namespace.
func (h *house) bind(namespace, user, kind, role string) {
	h.Helper()
	h.apply(object(rbacv1.SchemeGroupVersion.String(), "RoleBinding", namespace, user, binding(user, kind, role)))
}

// binding is what a binding says.
func binding(user, kind, role string) map[string]any {
	return map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": role},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}},
	}
}

func object(version, kind, namespace, name string, more map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range more {
		o.Object[key] = value
	}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// await tries until an answer is as wanted: a change of policies or rights is seen after a moment.
func (h *house) await(what string, try func() error, wanted func(error) bool) {
	h.Helper()
	var err error
	if !within(30*time.Second, func() bool { err = try(); return wanted(err) }) {
		h.Errorf("%s: the answer is %v", what, err)
	}
}

// within looks again and again, for so long, until something is so.
func within(limit time.Duration, is func() bool) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

// refusedBy reports whether an answer is the refusal of a policy, with these words.
func refusedBy(policy string, words ...string) func(error) bool {
	return func(err error) bool {
		return err != nil && strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s'", policy)) &&
			!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(err.Error(), w) })
	}
}

func allowed(err error) bool { return err == nil }

// typed is a deployed object as its type.
func typed[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	to := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, to, true); err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return to
}
