// Package grants compares users, roles and authentication with what the file says. It is
// pure: what it finds, the planner does one by one, and the observer asks etcd more seldom
// while it finds nothing.
package grants

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Changes lists what is to be done until all is as the file says, in a safe order: each change
// may be the last one for a while, and quorate is let in after any of them.
//
//	off again                          nothing else: users and roles are left
//	user root with role root           quorate's own access, and its password where no certificate lets it in
//	roles, permissions, users, roles of users     what lets in
//	permissions, roles of users        what was granted beside is taken away
//	users and roles that are not listed           with prune only
//	on                                 last of all
//
// Authentication is switched on only when every user can be there, and quorate is let in.
//
// Root comes before all other users for etcd's sake. For a tenth of a second it may read a user
// as it was before, where another one was written beside it (measured on 3.5.35, whose
// bucketBuffer.Range reads behind its end; etcd issue 21986): root as it was without its role,
// had both been written beside other users.
func Changes(want *schema.AuthSpec, is *state.Auth) []state.AuthChange {
	switch {
	case want == nil || want.Enabled == nil:
		return nil
	case !*want.Enabled && is.Enabled:
		return []state.AuthChange{{Op: state.DisableAuth}}
	case !*want.Enabled:
		return nil
	}
	if _, unread := is.NoSecret[schema.AuthRoot]; unread && !is.Enabled {
		return nil // root comes first
	}
	c := &comparison{want: want, is: is}
	c.addRoot()
	c.addRoles()
	c.addUsers()
	c.takeAway()
	if want.Prune {
		c.prune()
	}
	if !is.Enabled && is.NoAccess == "" && len(is.NoSecret) == 0 {
		c.do(state.AuthChange{Op: state.EnableAuth})
	}
	return c.changes
}

// comparison gathers changes.
type comparison struct {
	want    *schema.AuthSpec
	is      *state.Auth
	changes []state.AuthChange
}

func (c *comparison) do(change state.AuthChange) { c.changes = append(c.changes, change) }

// addRoles adds roles, and what they permit.
func (c *comparison) addRoles() {
	for _, r := range c.want.Roles {
		has, there := c.is.Roles[r.Name]
		if !there {
			c.do(state.AuthChange{Op: state.AddRole, Role: r.Name})
		}
		for _, p := range Permissions(r) {
			if !slices.Contains(has, p) {
				c.do(state.AuthChange{Op: state.GrantPermission, Role: r.Name, Permission: p})
			}
		}
	}
}

// Permissions are those of a role, as etcd has them.
func Permissions(r schema.AuthRole) []state.Permission {
	access := map[schema.AuthAccess]string{schema.AuthRead: state.AccessRead, schema.AuthWrite: state.AccessWrite, schema.AuthReadWrite: state.AccessReadWrite}
	var all []state.Permission
	for _, p := range r.Permissions {
		start, end := p.Range()
		all = append(all, state.Permission{Access: access[p.Access], Key: start, End: end})
	}
	return all
}

// addUsers adds users, with the password that they have in the file, and their roles. One whose
// password cannot be read is left as it is.
func (c *comparison) addUsers() {
	for _, u := range c.want.Users {
		if _, unread := c.is.NoSecret[u.Name]; unread {
			continue
		}
		has, there := c.is.Users[u.Name]
		password := c.is.Passwords[u.Name]
		switch {
		case !there:
			c.do(state.AuthChange{Op: state.AddUser, User: u.Name})
		case password == state.PasswordOtherKind, password == state.PasswordUnknown && !c.is.Enabled:
			c.do(state.AuthChange{Op: state.RenewUser, User: u.Name, Roles: u.Roles})
			continue
		case password == state.PasswordWrong:
			c.do(state.AuthChange{Op: state.SetPassword, User: u.Name})
		}
		for _, role := range u.Roles {
			if !slices.Contains(has, role) {
				c.do(state.AuthChange{Op: state.GrantRole, User: u.Name, Role: role})
			}
		}
	}
}

// addRoot gives quorate its own access. Where it comes in by a password, root has that of the file: as
// with other users, one that cannot be tried is given by adding root anew, while authentication is off.
func (c *comparison) addRoot() {
	has, there := c.is.Users[schema.AuthRoot]
	if c.want.RootPasswordSecret.Name != "" {
		switch password := c.is.Passwords[schema.AuthRoot]; {
		case !there:
		case password == state.PasswordWrong:
			c.do(state.AuthChange{Op: state.SetPassword, User: schema.AuthRoot})
		case password == state.PasswordUnknown && !c.is.Enabled:
			c.do(state.AuthChange{Op: state.RenewUser, User: schema.AuthRoot, Roles: []string{schema.AuthRoot}})
			return
		}
	}
	if !there {
		c.do(state.AuthChange{Op: state.AddUser, User: schema.AuthRoot})
	}
	if !slices.Contains(has, schema.AuthRoot) {
		c.do(state.AuthChange{Op: state.GrantRole, User: schema.AuthRoot, Role: schema.AuthRoot})
	}
}

// takeAway revokes what listed roles and users have beside. A permission for the same keys
// that is granted anew takes the place of the old one by itself.
func (c *comparison) takeAway() {
	for _, r := range c.want.Roles {
		wanted := Permissions(r)
		for _, p := range c.is.Roles[r.Name] {
			if !slices.ContainsFunc(wanted, func(w state.Permission) bool { return w.Key == p.Key && w.End == p.End }) {
				c.do(state.AuthChange{Op: state.RevokePermission, Role: r.Name, Permission: p})
			}
		}
	}
	for _, u := range c.want.Users {
		for _, role := range c.is.Users[u.Name] {
			if !slices.Contains(u.Roles, role) {
				c.do(state.AuthChange{Op: state.RevokeRole, User: u.Name, Role: role})
			}
		}
	}
}

// prune deletes what the file does not list. User root is quorate's.
func (c *comparison) prune() {
	for _, user := range c.is.OtherUsers {
		c.do(state.AuthChange{Op: state.DeleteUser, User: user})
	}
	for _, role := range c.is.OtherRoles {
		c.do(state.AuthChange{Op: state.DeleteRole, Role: role})
	}
}

// Assume is what is found where all is as the file says; for a plan without a cluster. Without
// spec.auth authentication is taken to be off.
func Assume(want *schema.AuthSpec) *state.Auth {
	is := &state.Auth{}
	changes := Changes(want, is)
	for ; len(changes) > 0; changes = Changes(want, is) {
		is = After(is, changes[0])
	}
	return is
}

// After is what is found when a change went well.
func After(is *state.Auth, c state.AuthChange) *state.Auth {
	now := *is
	now.Roles, now.Users, now.Passwords = cloned(is.Roles), cloned(is.Users), cloned(is.Passwords)
	sameKeys := func(p state.Permission) bool { return p.Key == c.Permission.Key && p.End == c.Permission.End }
	switch c.Op {
	case state.AddRole:
		now.Roles[c.Role] = nil
	case state.GrantPermission:
		now.Roles[c.Role] = append(slices.DeleteFunc(slices.Clone(now.Roles[c.Role]), sameKeys), c.Permission)
	case state.RevokePermission:
		now.Roles[c.Role] = slices.DeleteFunc(slices.Clone(now.Roles[c.Role]), sameKeys)
	case state.DeleteRole:
		now.OtherRoles = without(now.OtherRoles, c.Role)
		for user, roles := range now.Users {
			now.Users[user] = without(roles, c.Role)
		}
	case state.AddUser:
		now.Users[c.User], now.Passwords[c.User] = nil, state.PasswordRight
	case state.RenewUser:
		now.Users[c.User], now.Passwords[c.User] = slices.Clone(c.Roles), state.PasswordRight
	case state.SetPassword:
		now.Passwords[c.User] = state.PasswordRight
	case state.GrantRole:
		now.Users[c.User] = append(slices.Clone(now.Users[c.User]), c.Role)
	case state.RevokeRole:
		now.Users[c.User] = without(now.Users[c.User], c.Role)
	case state.DeleteUser:
		now.OtherUsers = without(now.OtherUsers, c.User)
	case state.EnableAuth:
		now.Enabled = true
	case state.DisableAuth:
		now.Enabled = false
	}
	return &now
}

// cloned is a copy of a map, never nil.
func cloned[V any](m map[string]V) map[string]V {
	c := map[string]V{}
	maps.Copy(c, m)
	return c
}

// without is a list without one name.
func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return n == name })
}
