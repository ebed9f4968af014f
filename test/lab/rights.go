package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/test/checkout"
)

// Rights let a daemon outside of the cluster do exactly what deploy/ lets it do
// inside: a verb that is missing there fails in the test that needs it.
type Rights struct {
	// Kubeconfig acts as a user with them.
	Kubeconfig string

	cluster *Cluster
	// name is that of the user, its role and the binding.
	name string
}

// testUser begins the names of the users of all runs.
const testUser = "quorate-test-"

// The ClusterRoles of deploy/base: what is in namespaces, and what belongs to none.
const (
	inNamespaces  = "quorate"
	clusterScoped = "quorate-cluster-scoped"
)

// GrantRights makes a user with the ClusterRoles of deploy/base, and writes a
// kubeconfig for it into dir.
func (c *Cluster) GrantRights(ctx context.Context, dir string) (*Rights, error) {
	r := c.newUser(dir, "")
	if err := errors.Join(r.GrantEverywhere(ctx), r.GrantClusterScoped(ctx)); err != nil {
		return r, err
	}
	return r, r.writeKubeconfig()
}

// GrantRightsIn makes a user with the rights in one namespace that deploy/overlays/namespaces
// gives, and with those of quorate's own namespace there. They go with the namespace.
func (c *Cluster) GrantRightsIn(ctx context.Context, dir, namespace string) (*Rights, error) {
	r := c.newUser(dir, "-"+namespace)
	role := &rbacv1.Role{}
	if err := readDeployed("clusterrole.yaml", inNamespaces, role); err != nil {
		return nil, err
	}
	role.Kind, role.Name = "Role", r.name
	if err := errors.Join(r.bind(ctx, namespace, role), r.GrantOwn(ctx, namespace)); err != nil {
		return r, err
	}
	return r, r.writeKubeconfig()
}

func (c *Cluster) newUser(dir, suffix string) *Rights {
	return &Rights{cluster: c, name: fmt.Sprintf(testUser+"%d%s", os.Getpid(), suffix), Kubeconfig: filepath.Join(dir, "kubeconfig"+suffix)}
}

// GrantEverywhere gives the user in all namespaces what quorate may do in one.
func (r *Rights) GrantEverywhere(ctx context.Context) error {
	return r.grantClusterRole(ctx, inNamespaces)
}

// GrantClusterScoped gives the user what deploy/ grants that belongs to no namespace.
func (r *Rights) GrantClusterScoped(ctx context.Context) error {
	return r.grantClusterRole(ctx, clusterScoped)
}

// clusterRole is the name of the user's own copy of a ClusterRole.
func (r *Rights) clusterRole(of string) string { return r.name + strings.TrimPrefix(of, inNamespaces) }

func (r *Rights) grantClusterRole(ctx context.Context, of string) error {
	role, name := &rbacv1.ClusterRole{}, r.clusterRole(of)
	if err := readDeployed("clusterrole.yaml", of, role); err != nil {
		return err
	}
	role.Name = name
	if _, err := r.cluster.Client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create ClusterRole %s: %w", name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   r.subjects(),
	}
	if _, err := r.cluster.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create ClusterRoleBinding %s: %w", name, err)
	}
	return nil
}

func (r *Rights) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: r.name}}
}

// GrantOwn also gives the user what deploy/ gives to quorate in its own namespace: the
// lease is there. It goes with the namespace.
func (r *Rights) GrantOwn(ctx context.Context, namespace string) error {
	role := &rbacv1.Role{}
	if err := readDeployed("role.yaml", inNamespaces, role); err != nil {
		return err
	}
	return r.bind(ctx, namespace, role)
}

// bind makes a role in a namespace, and binds it to the user.
func (r *Rights) bind(ctx context.Context, namespace string, role *rbacv1.Role) error {
	rbac := r.cluster.Client.RbacV1()
	if _, err := rbac.Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Role %s/%s: %w", namespace, role.Name, err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   r.subjects(),
	}
	if _, err := rbac.RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create RoleBinding %s/%s: %w", namespace, role.Name, err)
	}
	return nil
}

// BindDeployed lets a quorate that Overlay deployed with Namespaces work in one of them.
func (c *Cluster) BindDeployed(ctx context.Context, namespace, system string) error {
	_, err := c.Client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: system},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: system},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "quorate", Namespace: system}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create RoleBinding %s/%s: %w", namespace, system, err)
	}
	return nil
}

// readDeployed reads a role of that name that people deploy.
func readDeployed(file, name string, role any) error {
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "base", file))
	if err != nil {
		return err
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var o metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &o); err != nil {
			return fmt.Errorf("read %s of deploy/base: %w", file, err)
		}
		if o.Name == name && strings.HasSuffix(o.Kind, "Role") {
			return yaml.UnmarshalStrict(document, role)
		}
	}
	return fmt.Errorf("read %s of deploy/base: there is no role %s", file, name)
}

// writeKubeconfig lets the tests' own user act as the one with less rights.
func (r *Rights) writeKubeconfig() error {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(r.cluster.Kubeconfig)}
	config, err := rules.Load()
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", r.cluster.Kubeconfig, err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = r.name
	}
	if err := api.FlattenConfig(config); err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", r.cluster.Kubeconfig, err)
	}
	return clientcmd.WriteToFile(*config, r.Kubeconfig)
}

// Revoke removes the user's kubeconfig and what it may do beyond single namespaces.
func (r *Rights) Revoke(ctx context.Context) error {
	rbac, gone := r.cluster.Client.RbacV1(), metav1.DeleteOptions{}
	for _, of := range []string{inNamespaces, clusterScoped} {
		for what, err := range map[string]error{
			"ClusterRoleBinding": rbac.ClusterRoleBindings().Delete(ctx, r.clusterRole(of), gone),
			"ClusterRole":        rbac.ClusterRoles().Delete(ctx, r.clusterRole(of), gone),
		} {
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete %s %s: %w", what, r.clusterRole(of), err)
			}
		}
	}
	return os.Remove(r.Kubeconfig)
}

// GrantShards is one user of several with the rights of GrantRights, and in a namespace with those
// of a daemon that divides the clusters with others (deploy/overlays/shards).
func (c *Cluster) GrantShards(ctx context.Context, dir, namespace, suffix string) (*Rights, error) {
	r := c.newUser(dir, suffix)
	role := &rbacv1.Role{}
	if err := readDeployed("role.yaml", inNamespaces, role); err != nil {
		return r, err
	}
	role.Name = r.name
	for i := range role.Rules {
		if rule := &role.Rules[i]; len(rule.ResourceNames) > 0 && rule.Resources[0] == "leases" {
			rule.ResourceNames, rule.Verbs = nil, []string{"get", "list", "update"}
		}
	}
	if err := errors.Join(r.GrantEverywhere(ctx), r.GrantClusterScoped(ctx), r.bind(ctx, namespace, role)); err != nil {
		return r, err
	}
	return r, r.writeKubeconfig()
}

// Writes reports whether a user of the audit log is this one.
func (r *Rights) Writes(w Write) bool { return w.User == r.name }
