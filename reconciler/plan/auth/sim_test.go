package auth_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/auth"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// The simulation of users and roles: an etcd that knows nothing of the rules, and a quorate
// that is killed before or after any of its calls. What it knows of passwords dies with it.
// I29 is judged after each call.

// store is etcd's store of users and roles.
type store struct {
	on    bool
	roles map[string]map[[2]string]string
	users map[string]*account
}

type account struct {
	// password is "" for a user who has none.
	password string
	roles    []string
}

// world is the store, and what is around it.
type world struct {
	store
	want *schema.AuthSpec
	// secrets are the passwords that can be read, by user.
	secrets map[string]string
	// name is the common name of quorate's certificate, "" where it comes in by a password; kept are
	// the passwords that it keeps then.
	name string
	kept []string
	// keeps is what a mutant of the executor keeps before etcd is asked; nil for quorate's own way.
	keeps func(now string, before []string) []string

	// known is what the process that runs knows of passwords.
	known map[string]string
	// left is how many calls until quorate is killed, after whether it is then after the call.
	left   int
	after  bool
	killed bool
	// said are the calls, and broken what was wrong.
	said   []string
	broken string
}

// root reports whether quorate may do what only root may.
func (w *world) root() bool {
	if !w.on {
		return true
	}
	if w.name != "" {
		u := w.users[w.name]
		return u != nil && slices.Contains(u.roles, "root")
	}
	u := w.users["root"]
	return u != nil && slices.Contains(u.roles, "root") && u.password != "" && slices.Contains(append([]string{w.secrets["root"]}, w.kept...), u.password)
}

// keep is one call to the API server, by which root's passwords are kept.
func (w *world) keep(what string, all []string) bool {
	return w.call(what, func() string { w.kept = all; return "" })
}

// doRoot executes a change that root's password is part of, as the executor does.
func (w *world) doRoot(c state.AuthChange) {
	password := w.secrets["root"]
	kept := append([]string{password}, slices.DeleteFunc(slices.Clone(w.kept), func(p string) bool { return p == password })...)
	if w.keeps != nil {
		kept = w.keeps(password, w.kept)
	}
	if !w.keep("keep root's password", kept) {
		return
	}
	if c.Op == state.EnableAuth && w.known["root"] != password {
		return // it is given first
	}
	w.do(c)
	if !w.killed && (c.Op == state.EnableAuth || c.Op == state.SetPassword) {
		w.keep("keep that alone", []string{password})
	}
}

// call makes one call, unless quorate is dead. etcd refuses it to who is not root.
func (w *world) call(what string, do func() string) bool {
	if w.killed {
		return false
	}
	w.left--
	if w.left == 0 && !w.after {
		w.killed = true
		return false
	}
	w.said = append(w.said, what)
	refused := ""
	if !w.root() && !strings.HasPrefix(what, "keep ") {
		refused = "permission denied"
	} else {
		refused = do()
	}
	w.killed = w.left == 0
	if refused != "" && w.broken == "" {
		w.broken = fmt.Sprintf("etcd refuses to %s: %s", what, refused)
	}
	w.judge(what)
	return refused == "" && !w.killed
}

// judge is I29: whatever comes next, quorate may do it; and nobody of the file is shut out by
// authentication that comes too early.
func (w *world) judge(call string) {
	switch {
	case w.broken != "" || !w.on:
	case !w.root():
		w.broken = "I29: authentication is on, and quorate is not let in"
	case call == "enable":
		for _, u := range w.want.Users {
			if w.users[u.Name] == nil {
				w.broken = "authentication is on, and user " + u.Name + " is not there"
			}
		}
	}
}

// do executes a change, call by call, as the executor does.
func (w *world) do(c state.AuthChange) {
	password := w.secrets[c.User]
	add := func() bool {
		return w.call("add user "+c.User, func() string {
			if w.users[c.User] != nil {
				return "it exists"
			}
			w.users[c.User] = &account{password: password}
			return ""
		})
	}
	grant := func(role string) bool {
		return w.call("give "+c.User+" "+role, func() string {
			u := w.users[c.User]
			if u == nil || role != "root" && w.roles[role] == nil {
				return "no such user or role"
			}
			if !slices.Contains(u.roles, role) {
				u.roles = append(u.roles, role)
			}
			return ""
		})
	}
	keys := [2]string{c.Permission.Key, c.Permission.End}
	switch c.Op {
	case state.AddRole:
		w.call("add role", func() string { w.roles[c.Role] = map[[2]string]string{}; return "" })
	case state.DeleteRole:
		w.call("delete role", func() string {
			delete(w.roles, c.Role)
			for _, u := range w.users {
				u.roles = slices.DeleteFunc(u.roles, func(r string) bool { return r == c.Role })
			}
			return ""
		})
	case state.GrantPermission:
		w.call("grant", func() string { w.roles[c.Role][keys] = c.Permission.Access; return "" })
	case state.RevokePermission:
		w.call("revoke", func() string { delete(w.roles[c.Role], keys); return "" })
	case state.AddUser:
		if add() {
			w.known[c.User] = password
		}
	case state.RenewUser:
		if !w.call("delete user "+c.User, func() string { delete(w.users, c.User); return "" }) || !add() {
			return
		}
		for _, role := range c.Roles {
			if !grant(role) {
				return
			}
		}
		w.known[c.User] = password
	case state.SetPassword:
		if w.call("password", func() string { w.users[c.User].password = password; return "" }) {
			w.known[c.User] = password
		}
	case state.GrantRole:
		grant(c.Role)
	case state.RevokeRole:
		w.call("take", func() string {
			u := w.users[c.User]
			u.roles = slices.DeleteFunc(u.roles, func(r string) bool { return r == c.Role })
			return ""
		})
	case state.DeleteUser:
		w.call("delete "+c.User, func() string { delete(w.users, c.User); return "" })
	case state.EnableAuth:
		w.call("enable", func() string {
			if u := w.users["root"]; u == nil || !slices.Contains(u.roles, "root") {
				return "root has not its role" // etcd's own check
			}
			w.on = true
			return ""
		})
	case state.DisableAuth:
		w.call("disable", func() string { w.on = false; return "" })
	}
}

// look is what quorate sees.
func (w *world) look() *state.Auth {
	a := &state.Auth{Enabled: w.on, Roles: map[string][]state.Permission{}, Users: map[string][]string{}, Passwords: map[string]state.PasswordState{}, NoSecret: map[string]string{}}
	if !w.root() {
		a.Problem = "permission denied"
	}
	if w.name == "" {
		has, password := w.users["root"], w.secrets["root"]
		switch known, set := w.known["root"]; {
		case password == "":
			a.NoSecret["root"] = "make it"
		case has == nil:
		case w.on && (has.password != password || !slices.Equal(w.kept, []string{password})):
			a.Passwords["root"] = state.PasswordWrong
		case w.on, set && known == password:
			a.Passwords["root"] = state.PasswordRight
		}
	} else if w.name != "root" {
		a.NoAccess = "its certificate is that of " + w.name
	}
	listed := map[string]bool{"root": true}
	for _, r := range w.want.Roles {
		listed["role "+r.Name] = true
	}
	for name, perms := range w.roles {
		if !listed["role "+name] {
			a.OtherRoles = append(a.OtherRoles, name)
			continue
		}
		a.Roles[name] = nil
		for keys, access := range perms {
			a.Roles[name] = append(a.Roles[name], state.Permission{Access: access, Key: keys[0], End: keys[1]})
		}
	}
	for _, u := range w.want.Users {
		listed[u.Name] = true
		password, readable := w.secrets[u.Name]
		if u.PasswordSecret.Name != "" && !readable {
			a.NoSecret[u.Name] = "make it"
			continue
		}
		has := w.users[u.Name]
		known, set := w.known[u.Name]
		switch {
		case has == nil:
		case set && known == password, w.on && has.password == password:
			a.Passwords[u.Name] = state.PasswordRight
		case w.on && (has.password == "" || password == ""):
			a.Passwords[u.Name] = state.PasswordOtherKind
		case w.on:
			a.Passwords[u.Name] = state.PasswordWrong
		}
	}
	for name, u := range w.users {
		if listed[name] {
			a.Users[name] = slices.Clone(u.roles)
		} else {
			a.OtherUsers = append(a.OtherUsers, name)
		}
	}
	slices.Sort(a.OtherUsers)
	return a
}

// rules are those that are simulated; a mutant has others.
type rules func(*situation.Situation) verdict.Verdict

func allRules(s *situation.Situation) verdict.Verdict {
	return verdict.OneOf(s, auth.Off, auth.Change, auth.Missing)
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pass is one pass of quorate; it reports whether it did anything.
func (w *world) pass(decide rules) (acted bool) {
	d := state.Desired{Namespace: "db", Name: "orders", Template: "a", SpecHash: "a", Spec: schema.ClusterSpec{Version: "3.6.16", Replicas: 3, Auth: w.want}}
	o := outlook.Assume(d, noon, 0)
	o.Auth = w.look()
	v := decide(situation.Of(d, o, noon))
	if v.Step == nil {
		return false
	}
	change, ok := v.Step.Action.(action.ChangeAuth)
	switch {
	case ok && w.name == "" && (change.User == "root" && change.Op != state.GrantRole || change.Op == state.EnableAuth):
		w.doRoot(change.AuthChange)
	case ok:
		w.do(change.AuthChange)
	}
	return ok
}

// run lets quorate work until it rests, and starts it again when it was killed.
func (w *world) run(decide rules) {
	for range 200 {
		acted := w.pass(decide)
		if w.killed {
			w.killed, w.left, w.known = false, -1, map[string]string{}
			acted = true
			if w.name == "" {
				// The Secret changes in the midst of it, too.
				w.secrets["root"] += "'"
				w.judge("another password in the Secret")
			}
		}
		if w.broken != "" || !acted {
			return
		}
	}
	w.broken = "it does not come to rest: " + strings.Join(w.said[len(w.said)-10:], ", ")
}

// files are what commits say, one after the other.
func files() []*schema.AuthSpec {
	role := func(name, prefix string) schema.AuthRole {
		return schema.AuthRole{Name: name, Permissions: []schema.AuthPermission{{Access: schema.AuthReadWrite, Prefix: &prefix}}}
	}
	secret := schema.AuthPasswordSecret{Name: "s"}
	return []*schema.AuthSpec{
		{Enabled: new(true), Roles: []schema.AuthRole{role("rw", "/a"), role("r", "")}, Users: []schema.AuthUser{{Name: "app", Roles: []string{"rw"}}, {Name: "reports", Roles: []string{"r", "rw"}, PasswordSecret: secret}}},
		{Enabled: new(true), Prune: true, Roles: []schema.AuthRole{role("rw", "/b")}, Users: []schema.AuthUser{{Name: "reports", Roles: []string{"rw"}}, {Name: "admin", Roles: []string{"root"}, PasswordSecret: secret}}},
		{Enabled: new(false)},
		{Enabled: new(true), Users: []schema.AuthUser{{Name: "app"}}},
	}
}

// play lets commits, rotations and people have their way, with quorate killed at one call, and
// returns what broke.
func play(decide rules, keeps func(string, []string) []string, name string, others bool, dies int, after bool) (broken string, calls int) {
	w := &world{store: store{roles: map[string]map[[2]string]string{}, users: map[string]*account{}}, secrets: map[string]string{"reports": "1", "admin": "2"}, name: name, known: map[string]string{}, left: dies, after: after, keeps: keeps}
	if others {
		w.users["alice"], w.users["app"] = &account{password: "x"}, &account{password: "y", roles: []string{"old"}}
		w.roles["old"] = map[[2]string]string{{"/x", ""}: "READ"}
	}
	for i, want := range files() {
		w.want = want
		w.secrets["reports"] = fmt.Sprint(i)
		if name == "" {
			w.byPassword(i)
			w.judge("another file")
		}
		for _, u := range w.want.Users {
			if u.PasswordSecret.Name == "" {
				delete(w.secrets, u.Name)
			}
		}
		w.run(decide)
		if w.broken == "" && name != "quorate" && w.on != *want.Enabled {
			w.broken = fmt.Sprintf("file %d asks for authentication %t, and it is %t", i, *want.Enabled, w.on)
		}
		if w.broken == "" && *want.Enabled && name != "quorate" {
			w.broken = w.differs()
		}
		if w.broken != "" {
			return w.broken + "; calls: " + strings.Join(w.said, ", "), len(w.said)
		}
	}
	return "", len(w.said)
}

// byPassword has everybody come in by a password: root by another one with each file, of which one
// cannot be read.
func (w *world) byPassword(i int) {
	want := *w.want
	want.RootPasswordSecret.Name = "root"
	want.Users = slices.Clone(want.Users)
	for j := range want.Users {
		want.Users[j].PasswordSecret.Name = "s"
	}
	w.want, w.secrets["app"], w.secrets["root"] = &want, "3", fmt.Sprintf("root %d", i)
	if i == 1 {
		w.secrets["root"] = ""
	}
}

// differs tells what is not as the file says, at rest.
func (w *world) differs() string {
	if w.name == "" && w.secrets["root"] != "" && (w.users["root"].password != w.secrets["root"] || !slices.Equal(w.kept, []string{w.secrets["root"]})) {
		return fmt.Sprintf("user root is %+v, and %q are kept", w.users["root"], w.kept)
	}
	for _, u := range w.want.Users {
		has := w.users[u.Name]
		if has == nil || has.password != w.secrets[u.Name] || !sameNames(has.roles, u.Roles) {
			return fmt.Sprintf("user %s is %+v", u.Name, has)
		}
	}
	for _, r := range w.want.Roles {
		if len(w.roles[r.Name]) != len(r.Permissions) {
			return fmt.Sprintf("role %s has %v", r.Name, w.roles[r.Name])
		}
	}
	if w.want.Prune && (len(w.users) != len(w.want.Users)+1 || len(w.roles) != len(w.want.Roles)) {
		return fmt.Sprintf("with prune there are %d users and %d roles", len(w.users), len(w.roles))
	}
	return ""
}

func sameNames(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// everyHistory plays all histories, and returns the first thing that broke.
func everyHistory(decide rules, keeps func(string, []string) []string) (broken string, histories int) {
	for _, name := range []string{"root", "quorate", ""} {
		for _, others := range []bool{false, true} {
			for _, after := range []bool{false, true} {
				broken, calls := play(decide, keeps, name, others, -1, after)
				histories++
				for dies := 1; broken == "" && dies <= calls; dies++ {
					broken, _ = play(decide, keeps, name, others, dies, after)
					histories++
				}
				if broken != "" {
					return fmt.Sprintf("name %s, others %t: %s", name, others, broken), histories
				}
			}
		}
	}
	return "", histories
}

// I29, 542: at any kill, quorate is let in, and the end is what Git says.
func TestQuorateNeverLocksItselfOut542(t *testing.T) {
	broken, histories := everyHistory(allRules, nil)
	if broken != "" {
		t.Error(broken)
	}
	if histories < 200 {
		t.Errorf("only %d histories", histories)
	}
}

// enabling is the rules with authentication switched on whenever early says so.
func enabling(early func(*state.Auth) bool) rules {
	return func(s *situation.Situation) verdict.Verdict {
		if a := s.Observed.Auth; s.Git.Spec.AuthEnabled() && !a.Enabled && early(a) {
			return verdict.Do(action.ChangeAuth{AuthChange: state.AuthChange{Op: state.EnableAuth}}, "")
		}
		return allRules(s)
	}
}

// Mutants of the order are caught.
func TestMutantsOfAuthAreCaught(t *testing.T) {
	for name, c := range map[string]struct {
		rules rules
		want  string
	}{
		"on before anything": {enabling(func(*state.Auth) bool { return true }), "root has not its role"},
		"on before root has its role": {enabling(func(a *state.Auth) bool {
			_, there := a.Users["root"]
			return there && len(a.Users["root"]) == 0
		}), "root has not its role"},
		"on before users are there": {enabling(func(a *state.Auth) bool { return slices.Contains(a.Users["root"], "root") && a.NoAccess == "" }), "is not there"},
		"on whoever quorate is":     {enabling(func(a *state.Auth) bool { return a.NoAccess != "" && len(a.Users["root"]) > 0 }), "I29"},
		"never off": {func(s *situation.Situation) verdict.Verdict {
			if s.Git.Spec.AuthDisabled() {
				return verdict.Pass()
			}
			return allRules(s)
		}, "asks for authentication false"},
	} {
		t.Run(name, func(t *testing.T) {
			if broken, _ := everyHistory(c.rules, nil); !strings.Contains(broken, c.want) {
				t.Errorf("what broke is %q, want %q", broken, c.want)
			}
		})
	}
}

// 549: what is kept of root's passwords before etcd is asked decides whether quorate is let in.
func TestMutantsOfKeepingAreCaught(t *testing.T) {
	for name, keeps := range map[string]func(now string, before []string) []string{
		"nothing before":           func(_ string, before []string) []string { return before },
		"the new one alone before": func(now string, _ []string) []string { return []string{now} },
	} {
		t.Run(name, func(t *testing.T) {
			if broken, _ := everyHistory(allRules, keeps); !strings.Contains(broken, "I29") {
				t.Errorf("what broke is %q", broken)
			}
		})
	}
}
