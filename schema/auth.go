package schema

// AuthSpec is who may read and write which keys: etcd's own users and roles. Members know
// a client by the common name of its certificate, or by a name and a password. quorate
// itself comes in as user root: by the common name of its own certificate, or, with tls.mode
// Disabled, by a password.
type AuthSpec struct {
	// Enabled switches authentication on, after all roles, users and quorate's own access
	// are there; false switches it off, and leaves users and roles. Without spec.auth it is left
	// as it is. While it is on, etcd supports no rollout from 3.4 to 3.5: set it to false for
	// that rollout.
	Enabled *bool `json:"enabled"`
	// Prune deletes the users and roles that are not listed here, user root and role root
	// excepted. Default false: they are left, and told as drift.
	Prune bool `json:"prune,omitempty"`
	// RootPasswordSecret has the password of user root, as whom quorate comes in with tls.mode
	// Disabled; it is needed there, and refused in other modes, in which its certificate lets
	// quorate in. quorate keeps the password that it has set in the Secret CLUSTER-root, and
	// takes another one up when this Secret changes.
	RootPasswordSecret AuthPasswordSecret `json:"rootPasswordSecret,omitzero"`
	// Roles of the cluster. What a listed role has been granted beside is revoked. At
	// most 100.
	Roles []AuthRole `json:"roles,omitempty" jsonschema:"maxItems=100"`
	// Users of the cluster. A role that a listed user has beside is taken away. At most 100.
	Users []AuthUser `json:"users,omitempty" jsonschema:"maxItems=100"`
}

// AuthRole is a set of permissions.
type AuthRole struct {
	// Name of the role, for example "orders-rw"; root is etcd's own.
	Name string `json:"name" jsonschema:"form=authName"`
	// Permissions of the role. At most 100.
	Permissions []AuthPermission `json:"permissions,omitempty" jsonschema:"maxItems=100"`
}

// AuthPermission lets a role read or write some keys: exactly one of a key, of a prefix, and
// of a range from a key to a rangeEnd.
type AuthPermission struct {
	// Access is Read, Write or ReadWrite.
	Access AuthAccess `json:"access"`
	// Key alone is one key; with rangeEnd it is the first one of a range.
	Key string `json:"key,omitempty" jsonschema:"maxLength=1024"`
	// RangeEnd is the first key that is no longer in the range.
	RangeEnd string `json:"rangeEnd,omitempty" jsonschema:"maxLength=1024"`
	// Prefix of all keys that begin with it; "" is every key.
	Prefix *string `json:"prefix,omitempty" jsonschema:"maxLength=1024"`
}

// AuthAccess is what may be done with keys.
type AuthAccess string

// The kinds of access.
const (
	// AuthRead lets read and watch.
	AuthRead AuthAccess = "Read"
	// AuthWrite lets write and delete.
	AuthWrite AuthAccess = "Write"
	// AuthReadWrite lets do both.
	AuthReadWrite AuthAccess = "ReadWrite"
)

// AuthUser is one user.
type AuthUser struct {
	// Name of the user; without a password, the common name of its client certificate.
	Name string `json:"name" jsonschema:"form=authName"`
	// Roles of the user, which spec.auth.roles lists, or root.
	Roles []string `json:"roles,omitempty" jsonschema:"unique,maxItems=100"`
	// PasswordSecret has the password of a user who shows one. etcd has one password for
	// each user: to change it while clients have the old one, list a second user and move
	// them to it. Without it the user comes in by certificate only.
	PasswordSecret AuthPasswordSecret `json:"passwordSecret,omitzero"`
}

// AuthPasswordSecret names a key of a Secret of the cluster's namespace. Its owner lets it be
// used with the label quorate.dev/use: passwords.
type AuthPasswordSecret struct {
	// Name of the Secret.
	Name string `json:"name" jsonschema:"form=subdomain"`
	// Key of the Secret that holds the password. Default: password.
	Key string `json:"key,omitempty" jsonschema:"form=secretKey"`
}

// KeyOrDefault is the key that holds the password.
func (s AuthPasswordSecret) KeyOrDefault() string {
	if s.Key == "" {
		return "password"
	}
	return s.Key
}

// AuthRoot is the name of etcd's own user and role that may do everything. quorate comes in
// as this user.
const AuthRoot = "root"

// Range is the keys of a permission as etcd has them: from start up to, and not including,
// end. An end of "" is the key alone, and one of "\x00" has no end.
func (p AuthPermission) Range() (start, end string) {
	switch {
	case p.Prefix == nil:
		return p.Key, p.RangeEnd
	case *p.Prefix == "":
		return "\x00", "\x00"
	}
	return *p.Prefix, afterPrefix(*p.Prefix)
}

// afterPrefix is the first key behind all that begin with a prefix.
func afterPrefix(prefix string) string {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return string(end[:i+1])
		}
	}
	return "\x00"
}

// AuthEnabled reports whether the file switches authentication on.
func (s ClusterSpec) AuthEnabled() bool {
	return s.Auth != nil && s.Auth.Enabled != nil && *s.Auth.Enabled
}

// AuthDisabled reports whether the file switches authentication off. One that says nothing
// of it does neither.
func (s ClusterSpec) AuthDisabled() bool {
	return s.Auth != nil && s.Auth.Enabled != nil && !*s.Auth.Enabled
}
