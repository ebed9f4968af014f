package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// Rights let a daemon outside of the cluster do exactly what deploy/ lets it do
// inside: a verb that is missing there fails in the test that needs it.
type Rights struct {
	// Kubeconfig acts as a user with them.
	Kubeconfig string

	cluster *Cluster
	// name is that of the user, the role and the binding.
	name string
}

// GrantRights makes a user with the ClusterRole of deploy/base, and writes a
// kubeconfig for it into dir.
func (c *Cluster) GrantRights(ctx context.Context, dir string) (*Rights, error) {
	r := &Rights{cluster: c, name: fmt.Sprintf("quorate-test-%d", os.Getpid()), Kubeconfig: filepath.Join(dir, "kubeconfig")}
	role := &rbacv1.ClusterRole{}
	if err := readDeployed(ctx, "clusterrole.yaml", role); err != nil {
		return nil, err
	}
	role.Name = r.name
	if _, err := c.Client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create ClusterRole %s: %w", r.name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: r.name}},
	}
	if _, err := c.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return r, fmt.Errorf("create ClusterRoleBinding %s: %w", r.name, err)
	}
	return r, r.writeKubeconfig()
}

// GrantOwn also gives the user what deploy/ gives to quorate in its own namespace: the
// lease is there. It goes with the namespace.
func (r *Rights) GrantOwn(ctx context.Context, namespace string) error {
	role := &rbacv1.Role{}
	if err := readDeployed(ctx, "role.yaml", role); err != nil {
		return err
	}
	rbac := r.cluster.Client.RbacV1()
	if _, err := rbac.Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Role %s/%s: %w", namespace, role.Name, err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: r.name}},
	}
	if _, err := rbac.RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create RoleBinding %s/%s: %w", namespace, role.Name, err)
	}
	return nil
}

// readDeployed reads a role that people deploy.
func readDeployed(ctx context.Context, file string, role any) error {
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", "base", file))
	if err != nil {
		return err
	}
	// The role is the first document; the binding behind it is not for this user.
	first, _, _ := bytes.Cut(text, []byte("\n---\n"))
	if err := yaml.UnmarshalStrict(first, role); err != nil {
		return fmt.Errorf("read %s of deploy/base: %w", file, err)
	}
	return nil
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

// Revoke removes the user's rights and its kubeconfig.
func (r *Rights) Revoke(ctx context.Context) error {
	rbac, gone := r.cluster.Client.RbacV1(), metav1.DeleteOptions{}
	for what, err := range map[string]error{
		"ClusterRoleBinding": rbac.ClusterRoleBindings().Delete(ctx, r.name, gone),
		"ClusterRole":        rbac.ClusterRoles().Delete(ctx, r.name, gone),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", what, r.name, err)
		}
	}
	return os.Remove(r.Kubeconfig)
}
