package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/grants"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// authRecheck is how long an answer about users and roles is kept that is as the file says. Each
// question costs an entry in etcd's log.
const authRecheck = time.Minute

// authLook is what was found last, and the file that it was compared with.
type authLook struct {
	auth   state.Auth
	digest string
}

// askAuth asks for users, roles and authentication where the file says anything of them, and
// for authentication alone where what may come next must not be done with it on.
func (o *Observer) askAuth(ctx context.Context, g gathered) (*state.Auth, error) {
	want, c := g.cluster.Spec.Auth, g.cluster
	if len(g.rounds) == 0 || g.parsed == nil || !g.parsed.Formed() || len(c.Problems) > 0 {
		return nil, nil
	}
	closely := asksClosely(g)
	if want == nil && !closely {
		return nil, nil
	}
	if k := o.auths.Get(c.Key()); !closely && k.digest == c.Digest && o.Now().Sub(k.auth.At) < authRecheck {
		kept := k.auth
		return &kept, nil
	}
	if problem := g.rounds[0].Problem; problem != "" {
		return &state.Auth{Problem: problem}, nil
	}
	q := etcd.AuthQuestion{ClusterID: g.parsed.ClusterID}
	if c.Spec.AuthEnabled() {
		if err := o.listAuth(ctx, c, &q); err != nil {
			return nil, err
		}
	}
	found := o.Members.Auth(ctx, c.Key(), g.endpoints, q)
	if found.Problem == "" && !found.Enabled {
		found.NoAccess = noAccess(g)
	}
	o.auths.Forget(c.Key())
	if found.Problem == "" && len(found.NoSecret) == 0 && len(grants.Changes(want, &found)) == 0 {
		o.auths.Put(c.Key(), authLook{found, c.Digest})
	}
	return &found, nil
}

// asksClosely reports whether a rollout, or a new member, may be due that etcd does not support
// with authentication on: then an answer of a minute ago is none.
func asksClosely(g gathered) bool {
	to, err := release.Parse(g.cluster.Spec.Version)
	if err != nil {
		return true
	}
	var versions []string
	for _, p := range g.pods {
		versions = append(versions, p.Annotations[naming.AnnotationVersion])
	}
	for _, m := range g.rounds[0].Members {
		versions = append(versions, m.Version)
	}
	return slices.ContainsFunc(versions, func(text string) bool {
		v, err := release.Parse(text)
		return err == nil && (release.HopWithAuth(v, to) != "" || release.JoinWithAuth(v) != "")
	})
}

// listAuth adds to a question what the file lists, with the passwords that can be read.
func (o *Observer) listAuth(ctx context.Context, c desired.Cluster, q *etcd.AuthQuestion) error {
	q.Listed, q.Passwords, q.Unread = true, map[string]etcd.Password{}, map[string]string{}
	for _, r := range c.Spec.Auth.Roles {
		q.Roles = append(q.Roles, r.Name)
	}
	for _, u := range c.Spec.Auth.Users {
		q.Users = append(q.Users, u.Name)
		password, has, why, err := Password(ctx, o.Kube, c, u.Name)
		switch {
		case err != nil:
			return err
		case why != "":
			q.Unread[u.Name] = why
		case has:
			q.Passwords[u.Name] = password
		}
	}
	return nil
}

// Password is the password of a user that the file lists, from the API server itself. has is
// false for a user without one, and why tells a person why it cannot be read.
func Password(ctx context.Context, client kubernetes.Interface, c desired.Cluster, user string) (password etcd.Password, has bool, why string, err error) {
	if c.Spec.Auth == nil {
		return "", false, "", nil
	}
	i := slices.IndexFunc(c.Spec.Auth.Users, func(u schema.AuthUser) bool { return u.Name == user })
	if i < 0 || c.Spec.Auth.Users[i].PasswordSecret.Name == "" {
		return "", false, "", nil
	}
	from, ns := c.Spec.Auth.Users[i].PasswordSecret, c.Metadata.Namespace
	secret, err := kube.FoundOrNil(client.CoreV1().Secrets(ns).Get(ctx, from.Name, metav1.GetOptions{}))
	switch {
	case err != nil:
		return "", false, "", fmt.Errorf("read Secret %s: %w", from.Name, err)
	case secret == nil:
		return "", false, fmt.Sprintf("create the Secret %s/%s with the key %s and the label %s=%s", ns, from.Name, from.KeyOrDefault(), naming.LabelUse, naming.UsePasswords), nil
	}
	if err := kube.AllowedFor(secret, naming.UsePasswords); err != nil {
		return "", false, err.Error(), nil
	}
	if len(secret.Data[from.KeyOrDefault()]) == 0 {
		return "", false, fmt.Sprintf("the Secret %s/%s has nothing at the key %s: put the password there", ns, from.Name, from.KeyOrDefault()), nil
	}
	return etcd.Password(secret.Data[from.KeyOrDefault()]), true, "", nil
}

// noAccess tells why quorate would not come in as user root with authentication on; "" where
// it would. It would by the common name of its certificate, of members that go by it.
func noAccess(g gathered) string {
	if !naming.UsesTLS(g.cluster.EtcdCluster) {
		return "without TLS it has no certificate that would let it in"
	}
	secret := g.secrets[naming.TLSSecrets(g.cluster.EtcdCluster).Client]
	name, err := certs.CommonName(secret)
	switch {
	case err != nil:
		return err.Error()
	case name != schema.AuthRoot:
		return fmt.Sprintf("the certificate in the Secret %s has the common name %q, and etcd lets in as root who has the common name root", secret.Name, name)
	}
	for _, p := range g.pods {
		if !asksForCertificates(p) {
			return "the pod " + p.Name + " runs etcd without --client-cert-auth=true, so that it goes by no common name"
		}
	}
	return ""
}

// asksForCertificates reports whether the etcd of a pod knows clients by their certificates.
func asksForCertificates(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == naming.ContainerEtcd && slices.Contains(c.Args, "--client-cert-auth=true")
	})
}
