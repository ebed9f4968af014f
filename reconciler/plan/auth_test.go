package plan

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/grants"
	"github.com/quorate/quorate/reconciler/plan/auth"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// wanted is what the file says of users and roles.
func wanted(enabled bool) *schema.AuthSpec {
	return &schema.AuthSpec{
		Enabled: &enabled,
		Roles:   []schema.AuthRole{{Name: "rw", Permissions: []schema.AuthPermission{{Access: schema.AuthReadWrite, Prefix: new("/orders/")}}}},
		Users: []schema.AuthUser{
			{Name: "app", Roles: []string{"rw"}},
			{Name: "reports", Roles: []string{"rw"}, PasswordSecret: schema.AuthPasswordSecret{Name: "reports"}},
		},
	}
}

// observeAuth reads what etcd has of users and roles.
func (a archive) observeAuth(t *testing.T, o *state.Observed) {
	t.Helper()
	s, _ := a.read(t, "auth")
	if s["has"] == "file" {
		o.Auth = grants.Assume(wanted(true))
	}
	o.Auth.Enabled, o.Auth.NoAccess, o.Auth.Problem = s["enabled"] == "yes", s["no-access"], s["problem"]
	if user := s["no-secret"]; user != "" {
		o.Auth.NoSecret = map[string]string{user: "create the Secret db/" + user}
	}
}

// says lets Git say something of users and roles.
func says(want *schema.AuthSpec) mutation {
	return func(s *situation.Situation) { s.Desired.Spec.Auth = want }
}

// hasUsers lets etcd have what a file says, changed.
func hasUsers(want *schema.AuthSpec, change func(*state.Auth)) mutation {
	return func(s *situation.Situation) {
		s.Observed.Auth = grants.Assume(want)
		if change != nil {
			change(s.Observed.Auth)
		}
	}
}

func authOn(s *situation.Situation) { s.Observed.Auth = &state.Auth{Enabled: true} }

// on34 is a cluster of 3.4 whose file wants another release.
func on34(to string) mutation {
	return with(runs("3.4.45"), commit(to))
}

// namesOther has the other program's certificate for quorate name somebody else.
func namesOther(i *state.Issuers) {
	i.NoRoot = `the certificate in the Secret their-client has the common name "ops"`
}

func TestNoAuth(t *testing.T) {
	unknown := func(s *situation.Situation) { s.Observed.Auth = &state.Auth{Problem: "orders-0: status: refused"} }
	nobody := func(s *situation.Situation) { s.Observed.Auth = nil }
	joining := func(id string) mutation {
		return func(s *situation.Situation) {
			s.Observed.Record.Joining = &state.Joining{Member: "orders-3", ID: id, Since: noon}
		}
	}
	replaced := func(s *situation.Situation) {
		delete(s.Observed.Record.Members, "orders-1")
		s.Observed.Record.Replacing = "orders-1"
	}
	larger := func(s *situation.Situation) { s.Desired.Spec.Replicas = 5 }
	const refused = "Refused: authentication is on, and etcd supports no rollout between 3.4 and 3.5 while authentication is on, because their logs have users in two forms; commit spec.auth.enabled: false"
	checkRule(t, auth.Off, []ruleCase{
		{name: "540: at rest all is well", change: authOn},
		{name: "540: 3.4 to 3.5, and it is off", change: on34("3.5.35")},
		{name: "540: 3.4 to 3.5, and it is on", change: with(on34("3.5.35"), authOn), want: refused},
		{name: "540: whatever Git says of it", change: with(on34("3.5.35"), authOn, says(wanted(true))), want: refused},
		{name: "540: unless Git switches it off", change: with(on34("3.5.35"), authOn, says(wanted(false))), want: "disable authentication: Git switches it off, and before the rollout it must be off: etcd supports no rollout between 3.4 and 3.5"},
		{name: "540: on a way that goes on behind 3.5", change: with(on34("3.7.3"), authOn, stepwise), want: refused},
		{name: "540: a patch of 3.4", change: with(runs("3.4.44"), commit("3.4.45"), authOn)},
		{name: "540: 3.5 to 3.6", change: with(runs("3.5.35"), commit("3.6.16"), authOn)},
		{name: "540: in the midst of it", change: with(on34("3.5.35"), begun, rolled("3.5.35", 2), authOn), want: refused},
		{name: "540: not known", change: with(on34("3.5.35"), unknown), want: "Unhealthy: whether authentication is on is not known, and with it on etcd supports no rollout between 3.4 and 3.5 while authentication is on, because their logs have users in two forms (orders-0: status: refused)"},
		{name: "540: not asked", change: with(on34("3.5.35"), nobody), want: "Unhealthy: whether authentication is on is not known"},
		{name: "540: not known, and nothing is due", change: unknown},
		{name: "540: asleep it is asked nothing", change: with(on34("3.5.35"), nobody, func(s *situation.Situation) { s.Observed.Record.Hibernated = true })},
		{name: "540: before it has formed", change: with(on34("3.5.35"), nobody, func(s *situation.Situation) { s.Observed.Record.ClusterID = "" })},
		{name: "540: to fall asleep is no rollout", change: with(on34("3.5.35"), authOn, func(s *situation.Situation) { s.Desired.Spec.State = schema.StateHibernated })},
		{name: "546: to a release that panics", change: with(runs("3.5.2"), commit("3.5.3"), authOn), want: "Refused: authentication is on, and etcd 3.5.3 panics at start when auth is enabled, which 3.5.4 fixes"},
		{name: "546: a new member on 3.4.21", change: with(runs("3.4.21"), larger, authOn), want: "Refused: authentication is on, and etcd 3.4.21 may diverge when a member is added while auth is enabled, which 3.4.22 fixes"},
		{name: "546: and it is off", change: with(runs("3.4.21"), larger)},
		{name: "546: the rollout to a release without that comes first", change: with(runs("3.4.21"), commit("3.4.45"), larger, authOn)},
		{name: "546: on a good release", change: with(runs("3.4.45"), larger, authOn)},
		{name: "546: when none is to join", change: with(runs("3.4.21"), authOn)},
		{name: "546: one of the members is of such a release", change: with(runs("3.4.45"), larger, authOn, func(s *situation.Situation) { memberAt(s, 1).Version = "3.5.5" }), want: "etcd 3.5.5 may diverge"},
		{name: "546: one that is about to join", change: with(runs("3.5.5"), joining(""), authOn), want: "etcd 3.5.5 may diverge"},
		{name: "546: one that has been added", change: with(runs("3.5.5"), joining("m9"), authOn)},
		{name: "546: before another one is about to", change: with(runs("3.5.5"), larger, joining("m9"), authOn)},
		{name: "546: before one has left", change: with(runs("3.5.5"), larger, leaving(1, true), authOn)},
		{name: "546: in the place of a lost one", change: with(runs("3.5.5"), replaced, authOn), want: "etcd 3.5.5 may diverge"},
		{name: "546: in the place of a lost one, also before a rollout", change: with(runs("3.5.5"), commit("3.5.35"), replaced, authOn), want: "etcd 3.5.5 may diverge"},
		{name: "585: to plain text with authentication on, of which Git says nothing", change: with(speaking(schema.TLSManaged, ""), wantsMode(schema.TLSDisabled), authOn), want: "Refused: authentication is on, and a client of plain text is known by a password and one of TLS by its certificate, so that quorate would be locked out on the way; commit spec.auth.enabled: false, which leaves users and roles, and true again after the change of spec.tls.mode"},
		{name: "585: in the midst of it", change: with(speaking(schema.TLSManaged, schema.TLSDisabled), wantsMode(schema.TLSDisabled), authOn), want: "Refused: authentication is on, and a client of plain text"},
		{name: "585: where it is not known", change: with(speaking(schema.TLSManaged, ""), wantsMode(schema.TLSDisabled), unknown), want: "Unhealthy: whether authentication is on is not known, and with it on a client of plain text"},
		{name: "585: it is off", change: with(speaking(schema.TLSManaged, ""), wantsMode(schema.TLSDisabled))},
		{name: "585: once Git switches it off", change: with(speaking(schema.TLSManaged, ""), wantsMode(schema.TLSDisabled), authOn, says(wanted(false))), want: "disable authentication: Git switches it off, and before the change of spec.tls.mode it must be off"},
		{name: "594: to another issuer's certificate for somebody else", change: with(handsOver(ownLeaves, schema.TLSSecrets, namesOther), authOn), want: `Refused: authentication is on, and quorate would be locked out: the certificate in the Secret their-client has the common name "ops"; commit spec.auth.enabled: false`},
		{name: "594: it is off", change: handsOver(ownLeaves, schema.TLSSecrets, namesOther)},
		{name: "594: taken back", change: with(handsOver(ownLeaves, schema.TLSManaged, namesOther), authOn)},
		{name: "594: to one for user root", change: with(handsOver(ownLeaves, schema.TLSSecrets), authOn)},
		{name: "546: once Git switches it off", change: with(runs("3.5.5"), replaced, authOn, says(wanted(false))), want: "disable authentication: Git switches it off, and before the new member has joined"},
	})
}

func TestAuth(t *testing.T) {
	on := func(change func(*state.Auth)) mutation {
		return with(says(wanted(true)), hasUsers(wanted(true), change))
	}
	empty := func(change func(*state.Auth)) mutation {
		return with(says(wanted(true)), func(s *situation.Situation) {
			s.Observed.Auth = &state.Auth{}
			if change != nil {
				change(s.Observed.Auth)
			}
		})
	}
	off := func(a *state.Auth) { a.Enabled = false }
	pruned := wanted(true)
	pruned.Prune = true
	other := func(a *state.Auth) { a.OtherUsers, a.OtherRoles = []string{"alice"}, []string{"old"} }
	restored := func(s *situation.Situation) { s.Observed.Record.Restored = &state.Restored{Name: "back"} }
	noSecret := func(a *state.Auth) {
		a.NoSecret = map[string]string{"reports": "create the Secret db/reports"}
	}
	byPassword := wanted(true)
	byPassword.RootPasswordSecret.Name = "root"
	noRoot := func(a *state.Auth) { a.NoSecret = map[string]string{"root": "create the Secret db/root"} }
	checkRule(t, auth.Change, []ruleCase{
		{name: "541: a file that says nothing of it", change: authOn},
		{name: "541: nobody was asked", change: with(on(nil), func(s *situation.Situation) { s.Observed.Auth = nil })},
		{name: "150: before it has formed", change: with(unformed, on(off))},
		{name: "150: without a StatefulSet", change: with(on(off), func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "150: all is as Git says", change: on(nil)},
		{name: "150: quorate comes first", change: empty(nil), want: "add user root: quorate comes in as user root, by the common name of its certificate"},
		{name: "150: with its role", change: empty(func(a *state.Auth) { a.Users = map[string][]string{"root": nil} }), want: "give user root role root: quorate comes in as user root"},
		{name: "150: then roles", change: empty(func(a *state.Auth) { a.Users = map[string][]string{"root": {"root"}} }), want: "add role rw: Git says so"},
		{name: "150: and authentication last", change: on(off), want: "enable authentication: all roles and users are there, and quorate itself comes in as user root"},
		{name: "150: off again", change: with(on(nil), says(wanted(false))), want: "disable authentication: Git says so; users and roles stay"},
		{name: "543: a role that was taken away", change: on(func(a *state.Auth) { a.Users["app"] = nil }), want: "give user app role rw: Git says so"},
		{name: "543: a role beside", change: on(func(a *state.Auth) { a.Users["app"] = []string{"rw", "old"} }), want: "take role old from user app: Git does not say so"},
		{name: "543: a permission beside", change: on(func(a *state.Auth) {
			a.Roles["rw"] = append(a.Roles["rw"], state.Permission{Access: state.AccessRead, Key: "/all"})
		}), want: `no longer let role rw read "/all": Git does not say so`},
		{name: "543: another access to the same keys", change: on(func(a *state.Auth) { a.Roles["rw"][0].Access = state.AccessRead }), want: `let role rw read and write "/orders/"*`},
		{name: "151: another password", change: on(func(a *state.Auth) { a.Passwords["reports"] = state.PasswordWrong }), want: "set the password of user reports: the one in etcd is not the one in the Secret"},
		{name: "151: a password where there should be none", change: on(func(a *state.Auth) { a.Passwords["app"] = state.PasswordOtherKind }), want: "add user app anew: how it comes in is not known"},
		{name: "151: one that was not tried yet, with authentication on", change: on(func(a *state.Auth) { a.Passwords["app"] = state.PasswordUnknown })},
		{name: "150: one that nobody can try, before it is on", change: on(func(a *state.Auth) { off(a); a.Passwords["app"] = state.PasswordUnknown }), want: "add user app anew"},
		{name: "549: by a password", change: with(empty(nil), says(byPassword)), want: "add user root: quorate comes in as user root, with the password in the Secret root"},
		{name: "549: which nobody can try, before it is on", change: with(says(byPassword), hasUsers(byPassword, func(a *state.Auth) { off(a); a.Passwords["root"] = state.PasswordUnknown })), want: "add user root anew: quorate comes in as user root, with the password in the Secret root"},
		{name: "549: which was given", change: with(says(byPassword), hasUsers(byPassword, off)), want: "enable authentication"},
		{name: "549: another password in the Secret", change: with(says(byPassword), hasUsers(byPassword, func(a *state.Auth) { a.Passwords["root"] = state.PasswordWrong })), want: "set the password of user root: quorate comes in as user root, with the password in the Secret root"},
		{name: "549: one that was not tried yet, with authentication on", change: with(says(byPassword), hasUsers(byPassword, func(a *state.Auth) { a.Passwords["root"] = state.PasswordUnknown }))},
		{name: "549: none that can be read, and nobody comes before root", change: with(empty(noRoot), says(byPassword))},
		{name: "549: none that can be read, once authentication is on", change: with(says(byPassword), hasUsers(byPassword, func(a *state.Auth) { noRoot(a); a.Users["app"] = nil })), want: "give user app role rw"},
		{name: "549: whatever is known of a password, where a certificate lets quorate in", change: on(func(a *state.Auth) { a.Passwords["root"] = state.PasswordWrong })},
		{name: "543: what Git does not list is left", change: on(other)},
		{name: "543: unless it prunes", change: with(on(other), says(pruned)), want: "delete user alice: Git does not list it, and spec.auth.prune is true"},
		{name: "150: not in the midst of a rollout", change: with(on(off), commit(newVersion), begun, rolled(newVersion, 2))},
		{name: "150: nor while its end is not recorded", change: with(on(off), func(s *situation.Situation) { s.Observed.Set.Partition = 0 })},
		{name: "150: but before one begins", change: with(on(off), commit(newVersion)), want: "enable authentication"},
		{name: "540: which must not begin with it on", change: with(on(off), on34("3.5.35"))},
		{name: "540: a password changes all the same", change: with(on(func(a *state.Auth) { off(a); a.Passwords["reports"] = state.PasswordUnknown }), on34("3.5.35")), want: "add user reports anew"},
		{name: "150: nothing is asked of one that sleeps", change: with(empty(nil), func(s *situation.Situation) { s.Observed.Record.Hibernated = true })},
		{name: "547: a hold is for the end", change: on(func(a *state.Auth) { off(a); noSecret(a) })},
		{name: "547: but for clients of a restored cluster", change: with(restored, on(func(a *state.Auth) { off(a); noSecret(a) })), want: "Refused: the password of user reports cannot be read"},
		{name: "547: which come once", change: with(on(func(a *state.Auth) { off(a); noSecret(a) }), func(s *situation.Situation) { s.Observed.Record.Restored = &state.Restored{Name: "back", Done: true} })},
		{name: "547: and not before a rollout", change: with(restored, on(func(a *state.Auth) { off(a); noSecret(a) }), commit(newVersion))},
		{name: "547: which has come to all its members", change: with(restored, on(func(a *state.Auth) { off(a); noSecret(a) }), func(s *situation.Situation) { s.Desired.Spec.Replicas = 5 })},
	})
}

func TestUsers(t *testing.T) {
	on := func(change func(*state.Auth)) mutation {
		return with(says(wanted(true)), hasUsers(wanted(true), change))
	}
	noSecret := func(a *state.Auth) { a.NoSecret = map[string]string{"reports": "create the Secret db/reports"} }
	checkRule(t, auth.Missing, []ruleCase{
		{name: "547: all is as Git says", change: on(nil)},
		{name: "547: a password that cannot be read", change: on(noSecret), want: "Refused: the password of user reports cannot be read; create the Secret db/reports"},
		{name: "547: before authentication is on", change: on(func(a *state.Auth) { noSecret(a); a.Enabled = false }), want: "Refused: the password of user reports cannot be read, and authentication stays off until it can; create the Secret"},
		{name: "545: no access for quorate", change: on(func(a *state.Auth) { a.Enabled, a.NoAccess = false, "the certificate has the common name \"quorate\"" }), want: "Refused: authentication stays off, because quorate would lock itself out: the certificate has the common name"},
		{name: "545: no access, and it is on already", change: on(func(a *state.Auth) { a.NoAccess = "x" })},
		{name: "545: no access, and it is to stay off", change: with(on(func(a *state.Auth) { a.Enabled, a.NoAccess = false, "x" }), says(wanted(false)))},
		{name: "546: a release that panics", change: with(on(func(a *state.Auth) { a.Enabled = false }), runs("3.5.3")), want: "Refused: authentication stays off: etcd 3.5.3 panics at start when auth is enabled, which 3.5.4 fixes; set spec.version"},
		{name: "members that do not tell, and a file that says nothing", change: func(s *situation.Situation) { s.Observed.Auth = &state.Auth{Problem: "users: timeout"} }},
		{name: "members that do not tell", change: on(func(a *state.Auth) { a.Problem = "users: timeout" }), want: "Unhealthy: users and roles cannot be compared with the file (users: timeout)"},
	})
}

// What Git does not list is told where it is left.
func TestOtherUsersAreTold543(t *testing.T) {
	s := healthy(3)
	s.Git.Spec.Auth = wanted(true)
	s.Observed.Auth = grants.Assume(wanted(true))
	s.Observed.Auth.OtherUsers = []string{"alice", "bob", "carol", "dan", "eve", "frank"}
	s.Observed.Auth.OtherRoles = []string{"old"}
	got := Make(s.Git, s.Observed, s.Now).Warnings
	want := []string{
		"etcd has users that Git does not list, and they are left: alice, bob, carol, dan, eve and 1 more; list them, delete them with etcdctl, or write spec.auth.prune: true",
		"etcd has roles that Git does not list, and they are left: old; list them, delete them with etcdctl, or write spec.auth.prune: true",
	}
	for i, text := range want {
		if i >= len(got) || got[i].Text != text {
			t.Fatalf("warnings are %v, want %q", got, want)
		}
	}
	s.Observed.Auth.OtherUsers, s.Observed.Auth.OtherRoles = s.Observed.Auth.OtherUsers[:5], nil
	if got := auth.Warnings(s); len(got) != 1 || !strings.Contains(got[0].Text, "and they are left: alice, bob, carol, dan, eve; list them") {
		t.Errorf("five users: %v", got)
	}
	for name, change := range map[string]mutation{
		"with prune":     func(s *situation.Situation) { s.Git.Spec.Auth.Prune = true },
		"switched off":   func(s *situation.Situation) { s.Git.Spec.Auth = wanted(false) },
		"never asked":    func(s *situation.Situation) { s.Observed.Auth = nil },
		"nothing beside": func(s *situation.Situation) { s.Observed.Auth.OtherUsers = nil },
	} {
		s := healthy(3)
		s.Git.Spec.Auth, s.Observed.Auth = wanted(true), grants.Assume(wanted(true))
		s.Observed.Auth.OtherUsers = []string{"alice"}
		change(s)
		if got := auth.Warnings(s); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
