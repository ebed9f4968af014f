// Package auth has the rules about etcd's users, roles and authentication.
package auth

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/grants"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

// Off waits with what etcd does not support while authentication is on, or what would lock quorate
// out, until it is off: a rollout from 3.4 to 3.5, a new member on some releases, a change between
// plain text and TLS, and one to certificates that do not name quorate root. It stands above all that
// does such a thing, and asks the cluster: that Git does not say it is on is no proof.
func Off(s *situation.Situation) verdict.Verdict {
	if !s.Formed() || s.Observed.Record.Hibernated {
		return verdict.Pass()
	}
	why, then := unsupported(s)
	a := s.Observed.Auth
	switch {
	case why == "":
		return verdict.Pass()
	case a == nil || a.Problem != "":
		return unknown(a, why)
	case !a.Enabled:
		return verdict.Pass()
	case s.Git.Spec.AuthDisabled():
		return verdict.Do(action.ChangeAuth{AuthChange: state.AuthChange{Op: state.DisableAuth}}, "Git switches it off, and before "+then+" it must be off: "+why)
	}
	return verdict.Refuse("authentication is on, and "+why,
		"commit spec.auth.enabled: false, which leaves users and roles, and true again after "+then+"; meanwhile everybody with a client certificate may read and write all keys")
}

// unknown waits until the members tell whether authentication is on.
func unknown(a *state.Auth, why string) verdict.Verdict {
	v := verdict.Unhealthy("whether authentication is on is not known, and with it on "+why, "check the members; quorate continues when they tell")
	if a != nil {
		v = v.Measured("%s", a.Problem)
	}
	return v
}

// unsupported tells what is due that etcd does not support with authentication on, or that would
// lock quorate out, and what to wait for with switching it on again; "" for nothing.
func unsupported(s *situation.Situation) (why, then string) {
	if why = hop(s); why != "" {
		return why, "the rollout"
	}
	if why = lockout(s); why != "" {
		return why, "the change of spec.tls.mode"
	}
	r := s.Observed.Record
	replaces := r.Joining == nil && r.Leaving == nil && (r.Replacing != "" || !s.Rolling() && s.MemberCount() < int(s.Desired.Spec.Replicas))
	if !replaces && (r.Joining == nil || r.Joining.ID != "") {
		return "", ""
	}
	for _, v := range versions(s) {
		if why := release.JoinWithAuth(v); why != "" {
			return why, "the new member has joined"
		}
	}
	return "", ""
}

// hop tells why the rollout that is due, or under way, is not supported with authentication
// on. The whole way counts, before its first step.
func hop(s *situation.Situation) string {
	if !s.Rolling() {
		return ""
	}
	to, _ := release.Parse(s.Git.Spec.Version) // validation lets no other through
	for _, v := range versions(s) {
		if why := release.HopWithAuth(v, to); why != "" {
			return why
		}
	}
	return ""
}

// lockout tells why quorate would not be let in on the way to the spec.tls.mode of Git.
func lockout(s *situation.Situation) string {
	if transport.Crosses(s.Git, s.Observed) {
		return "a client of plain text is known by a password and one of TLS by its certificate, so that quorate would be locked out on the way"
	}
	i := s.Observed.Certificates.Issuers
	if i == nil || i.NoRoot == "" || s.Git.Spec.TLS.Mode != schema.TLSSecrets {
		return ""
	}
	return "quorate would be locked out: " + i.NoRoot
}

// versions are those of the members, in their order.
func versions(s *situation.Situation) []release.Version {
	all := slices.Collect(maps.Values(s.Versions()))
	slices.SortFunc(all, release.Compare)
	return all
}

// Change makes users, roles and authentication what the file says, one by one. It stands below
// the gate, and leaves them alone while a rollout is under way: members of two minors do not
// read the same of a new password. What it cannot do, Missing tells: nothing else waits for
// it, but for the clients of a restored cluster, who come when only those come in who may.
func Change(s *situation.Situation) verdict.Verdict {
	v := due(s)
	r := s.Observed.Record
	if v.Hold != nil && (r.Restored == nil || r.Restored.Done || !s.Complete() || s.Rolling()) {
		return verdict.Pass()
	}
	return v
}

// Missing tells what of users, roles and authentication cannot be as the file says. It stands
// near the end: the cluster runs well without.
func Missing(s *situation.Situation) verdict.Verdict {
	return due(s)
}

// due is the next change, or why there can be none.
func due(s *situation.Situation) verdict.Verdict {
	want, a := s.Git.Spec.Auth, s.Observed.Auth
	if want == nil || a == nil || !s.Formed() || s.Observed.Set == nil || s.Observed.Record.Hibernated || rolling(s) {
		return verdict.Pass()
	}
	if a.Problem != "" {
		return verdict.Unhealthy("users and roles cannot be compared with the file", "check the members; quorate continues when they tell").Measured("%s", a.Problem)
	}
	changes := grants.Changes(want, a)
	switch {
	case len(changes) > 0 && changes[0].Op == state.EnableAuth:
		return enable(s, changes[0])
	case len(changes) > 0:
		return verdict.Do(action.ChangeAuth{AuthChange: changes[0]}, reason(s, changes[0]))
	case len(a.NoSecret) > 0:
		user := slices.Sorted(maps.Keys(a.NoSecret))[0]
		later := ""
		if !a.Enabled {
			later = ", and authentication stays off until it can"
		}
		return verdict.Refuse(fmt.Sprintf("the password of user %s cannot be read%s", user, later), a.NoSecret[user]).Again(verdict.Later)
	case s.Git.Spec.AuthEnabled() && !a.Enabled: // and with access it would be enabled above
		return verdict.Refuse("authentication stays off, because quorate would lock itself out: "+a.NoAccess,
			"give the members a client certificate for quorate whose common name is root, or, without TLS, name spec.auth.rootPasswordSecret; or write enabled: false").Again(verdict.Later)
	}
	return verdict.Pass()
}

// rolling reports whether a rollout has begun and has not ended: the last members of the older
// minor may be gone, and the cluster version not have moved yet.
func rolling(s *situation.Situation) bool {
	return s.RollOpen() || s.Observed.Set.Partition < s.Observed.Set.Replicas
}

// enable switches authentication on, unless what comes next would need it off again.
func enable(s *situation.Situation, c state.AuthChange) verdict.Verdict {
	if why, _ := unsupported(s); why != "" {
		return verdict.Pass()
	}
	for _, v := range versions(s) {
		if why := release.EnableAuth(v); why != "" {
			return verdict.Refuse("authentication stays off: "+why, "set spec.version to a release without that fault; the rollout comes before authentication")
		}
	}
	return verdict.Do(action.ChangeAuth{AuthChange: c}, "all roles and users are there, and quorate itself comes in as user root")
}

// reason is why a change is made.
func reason(s *situation.Situation, c state.AuthChange) string {
	if c.User == schema.AuthRoot && s.Git.Spec.Auth.RootPasswordSecret.Name != "" {
		return "quorate comes in as user root, with the password in the Secret " + s.Git.Spec.Auth.RootPasswordSecret.Name
	}
	switch c.Op {
	case state.RevokePermission, state.RevokeRole:
		return "Git does not say so"
	case state.DeleteRole, state.DeleteUser:
		return "Git does not list it, and spec.auth.prune is true"
	case state.SetPassword:
		return "the one in etcd is not the one in the Secret"
	case state.RenewUser:
		return "how it comes in is not known to be as Git says, and etcd changes that of no user"
	case state.DisableAuth:
		return "Git says so; users and roles stay"
	case state.AddUser, state.GrantRole:
		if c.User == "root" {
			return "quorate comes in as user root, by the common name of its certificate"
		}
	}
	return "Git says so"
}

// Warnings tell of users and roles that the file does not list.
func Warnings(s *situation.Situation) []situation.Remark {
	a := s.Observed.Auth
	if a == nil || !s.Git.Spec.AuthEnabled() || s.Git.Spec.Auth.Prune {
		return nil
	}
	var remarks []situation.Remark
	for _, more := range []struct {
		noun  string
		names []string
	}{{"users", a.OtherUsers}, {"roles", a.OtherRoles}} {
		if len(more.names) > 0 {
			remarks = append(remarks, situation.Remark{Text: fmt.Sprintf("etcd has %s that Git does not list, and they are left: %s; list them, delete them with etcdctl, or write spec.auth.prune: true", more.noun, named(more.names))})
		}
	}
	return remarks
}

// named lists the first of many names.
func named(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
