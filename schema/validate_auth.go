package schema

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits of users and roles. A look at them costs an entry in etcd's log for each.
const (
	maxAuth        = 100
	maxAuthName    = 64
	maxAuthKey     = 1024
	authNamesLimit = "use 1 to 64 printable ASCII characters, without a space at either end"
)

// auth checks users and roles.
func (v *validator) auth(spec ClusterSpec) {
	a := spec.Auth
	if a == nil {
		return
	}
	if a.Enabled == nil {
		v.fail("auth.enabled", "is missing: write true or false; to leave authentication as it is, leave out spec.auth")
	}
	v.authRootPassword(spec)
	roles := v.authRoles(a.Roles)
	v.authUsers(a.Users, roles)
}

// authRootPassword checks how quorate comes in as user root: by a password, where no certificate
// lets it in.
func (v *validator) authRootPassword(spec ClusterSpec) {
	const field = "auth.rootPasswordSecret"
	from := spec.Auth.RootPasswordSecret
	if spec.TLS.Mode != TLSDisabled {
		if from != (AuthPasswordSecret{}) {
			v.fail(field, "is for tls.mode Disabled: with certificates quorate comes in as user root by the common name of its own, and user root has no password; leave it out")
		}
		return
	}
	v.authPassword(field, from)
	if !spec.AuthEnabled() {
		return
	}
	if from == (AuthPasswordSecret{}) {
		v.fail(field, "is missing: with tls.mode Disabled no certificate lets quorate in, so name the Secret with a password for user root")
	}
	for i, u := range spec.Auth.Users {
		if u.PasswordSecret == (AuthPasswordSecret{}) {
			v.fail(fmt.Sprintf("auth.users[%d].passwordSecret", i), "is missing: with tls.mode Disabled no certificate tells who a client is")
		}
	}
	v.warn(IDAuthInClear, "auth.enabled", "is true and tls.mode is Disabled: passwords, and all that they protect, pass the network in clear, for everybody on the way to read; restore a backup into a cluster with certificates")
}

// authRoles checks the roles, and returns their names.
func (v *validator) authRoles(list []AuthRole) (names []string) {
	if n := len(list); n > maxAuth {
		v.fail("auth.roles", "has %d roles and may have %d", n, maxAuth)
		return nil
	}
	for i, r := range list {
		at := fmt.Sprintf("auth.roles[%d]", i)
		v.authName(at+".name", r.Name)
		switch {
		case r.Name == AuthRoot:
			v.fail(at+".name", "is root, the role of etcd's own that may do everything: name another one, and list root in the roles of a user who may")
		case slices.Contains(names, r.Name):
			v.fail(at+".name", "%s is listed twice: write all permissions of the role in one place", clip(r.Name))
		}
		names = append(names, r.Name)
		v.authPermissions(at+".permissions", r.Permissions)
	}
	return names
}

// authPermissions checks the permissions of one role.
func (v *validator) authPermissions(field string, list []AuthPermission) {
	if n := len(list); n > maxAuth {
		v.fail(field, "has %d permissions and may have %d: grant a prefix above them", n, maxAuth)
		return
	}
	type keys struct{ start, end string }
	seen := map[keys]bool{}
	for i, p := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if !v.authPermission(at, p) {
			continue
		}
		start, end := p.Range()
		if seen[keys{start, end}] {
			v.fail(at, "is for the same keys as another permission of the role, and etcd keeps one for each range: write ReadWrite for both")
		}
		seen[keys{start, end}] = true
	}
}

// authPermission checks one permission, and reports whether its keys are right.
func (v *validator) authPermission(at string, p AuthPermission) bool {
	oneOf(v, at+".access", p.Access, AuthRead, AuthWrite, AuthReadWrite)
	for _, f := range []struct{ name, value string }{{"key", p.Key}, {"rangeEnd", p.RangeEnd}} {
		if len(f.value) > maxAuthKey {
			v.fail(at+"."+f.name, "has %d bytes and may have %d", len(f.value), maxAuthKey)
			return false
		}
	}
	switch {
	case p.Prefix != nil && (p.Key != "" || p.RangeEnd != ""):
		v.fail(at+".prefix", "is given beside a key: write a prefix, a key, or a key and a rangeEnd")
	case p.Prefix != nil && len(*p.Prefix) > maxAuthKey:
		v.fail(at+".prefix", "has %d bytes and may have %d", len(*p.Prefix), maxAuthKey)
	case p.Prefix == nil && p.Key == "":
		v.fail(at, `names no keys: write a key, a key and a rangeEnd, or a prefix; prefix: "" is every key`)
	case p.RangeEnd != "" && p.RangeEnd <= p.Key:
		v.fail(at+".rangeEnd", "is not behind the key, so that the range has no keys: it is the first key that is no longer in it")
	default:
		return true
	}
	return false
}

// authUsers checks the users, who have roles of these names.
func (v *validator) authUsers(list []AuthUser, roles []string) {
	if n := len(list); n > maxAuth {
		v.fail("auth.users", "has %d users and may have %d", n, maxAuth)
		return
	}
	var names []string
	for i, u := range list {
		at := fmt.Sprintf("auth.users[%d]", i)
		v.authName(at+".name", u.Name)
		switch {
		case u.Name == AuthRoot:
			v.fail(at+".name", "is root, which is quorate itself: give another user the role root")
		case slices.Contains(names, u.Name):
			v.fail(at+".name", "%s is listed twice: write all roles of the user in one place", clip(u.Name))
		}
		names = append(names, u.Name)
		for j, role := range u.Roles {
			switch {
			case slices.Contains(u.Roles[:j], role):
				v.fail(fmt.Sprintf("%s.roles[%d]", at, j), "%s is listed twice", clip(role))
			case role != AuthRoot && !slices.Contains(roles, role):
				v.fail(fmt.Sprintf("%s.roles[%d]", at, j), "%s is not in auth.roles%s: list the role there", clip(role), didYouMean(role, roles))
			}
		}
		v.authPassword(at+".passwordSecret", u.PasswordSecret)
	}
}

// authPassword checks where a password is. A name is not repeated: it may be the secret itself.
func (v *validator) authPassword(field string, s AuthPasswordSecret) {
	if s == (AuthPasswordSecret{}) {
		return
	}
	if s.Name == "" {
		v.fail(field+".name", "is missing: name the Secret with the password")
	}
	v.secret(field+".name", s.Name)
	if s.Key != "" && len(validation.IsConfigMapKey(s.Key)) > 0 {
		v.fail(field+".key", "is not a key of a Secret: use letters, digits, dashes, dots and underscores")
	}
}

// authName checks the name of a user or a role.
func (v *validator) authName(field, name string) {
	printable := !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
	switch {
	case name == "":
		v.fail(field, "is missing: %s", authNamesLimit)
	case len(name) > maxAuthName || !printable || strings.TrimSpace(name) != name:
		v.fail(field, "%s is not a name that quorate takes: %s", clip(name), authNamesLimit)
	}
}
