package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/grants"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/passwords"
	"github.com/quorate/quorate/reconciler/pods"
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
	if k := o.auths.Get(c.Key()); !closely && k.digest == c.Digest && o.Now().Sub(k.auth.At).Abs() < authRecheck {
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
	var found state.Auth
	o.Lanes.Ask(ctx, c.Key(), func() { found = o.Members.Auth(ctx, c.Key(), g.endpoints, q) })
	if err := o.unsettled(ctx, c, q, &found); err != nil {
		return nil, err
	}
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
// with authentication on, or another mode of TLS: then an answer of a minute ago is none.
func asksClosely(g gathered) bool {
	to, err := release.Parse(g.cluster.Spec.Version)
	if err != nil || g.modes.Change() {
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
	}
	for _, user := range append(slices.Clone(q.Users), schema.AuthRoot) {
		password, has, why, err := passwords.Of(ctx, o.Kube, c, user)
		switch {
		case err != nil:
			return err
		case why != "":
			q.Unread[user] = why
		case has:
			q.Passwords[user] = password
		}
	}
	return nil
}

// unsettled has root's password count as another one while it is not kept, and kept alone: it is set
// once more then.
func (o *Observer) unsettled(ctx context.Context, c desired.Cluster, q etcd.AuthQuestion, found *state.Auth) error {
	if !found.Enabled || found.Passwords[schema.AuthRoot] != state.PasswordRight {
		return nil
	}
	settled, err := passwords.Settled(ctx, o.Kube, c, q.Passwords[schema.AuthRoot])
	if err == nil && !settled {
		found.Passwords[schema.AuthRoot] = state.PasswordWrong
	}
	return err
}

// login is how quorate comes in as user root where no certificate lets it in; nil where one does.
func (o *Observer) login(c desired.Cluster) func(context.Context) ([]etcd.Password, error) {
	if naming.UsesTLS(c.EtcdCluster) {
		return nil
	}
	return func(ctx context.Context) ([]etcd.Password, error) { return passwords.Root(ctx, o.Kube, c) }
}

// noAccess tells why quorate would not come in as user root with authentication on; "" where
// it would. It would by the common name of its certificate, of members that go by it, and without
// TLS by the password that root is given.
func noAccess(g gathered) string {
	if !naming.UsesTLS(g.cluster.EtcdCluster) {
		if auth := g.cluster.Spec.Auth; auth == nil || auth.RootPasswordSecret.Name == "" {
			return "without TLS it has no certificate that would let it in, and spec.auth.rootPasswordSecret names no password"
		}
		return ""
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
		if !pods.AsksForCertificates(p) {
			return "the pod " + p.Name + " runs etcd without --client-cert-auth=true, so that it goes by no common name"
		}
	}
	return ""
}
