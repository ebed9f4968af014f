package schema

import (
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestValidateAuth541(t *testing.T) {
	with := func(change func(*AuthSpec)) func(*EtcdCluster) {
		return func(c *EtcdCluster) {
			c.Spec.Auth = &AuthSpec{
				Enabled: new(true),
				Roles:   []AuthRole{{Name: "orders-rw", Permissions: []AuthPermission{{Access: AuthReadWrite, Prefix: new("/orders/")}}}},
				Users:   []AuthUser{{Name: "orders-app", Roles: []string{"orders-rw"}}},
			}
			change(c.Spec.Auth)
		}
	}
	plain := func(change func(*AuthSpec)) func(*EtcdCluster) {
		return func(c *EtcdCluster) {
			with(func(a *AuthSpec) {
				a.RootPasswordSecret.Name, a.Users[0].PasswordSecret.Name = "root", "app"
				change(a)
			})(c)
			c.Spec.TLS.Mode = TLSDisabled
		}
	}
	permission := func(p AuthPermission) func(*EtcdCluster) {
		return with(func(a *AuthSpec) { a.Roles[0].Permissions = []AuthPermission{p} })
	}
	user := func(change func(*AuthUser)) func(*EtcdCluster) {
		return with(func(a *AuthSpec) { change(&a.Users[0]) })
	}
	for _, c := range []struct {
		name   string
		change func(*EtcdCluster)
		want   string // "" for nothing at all
	}{
		{"a role and a user", with(func(*AuthSpec) {}), ""},
		{"switched off", with(func(a *AuthSpec) { a.Enabled = new(false) }), ""},
		{"neither on nor off", with(func(a *AuthSpec) { a.Enabled = nil }), "spec.auth.enabled: is missing"},
		{"551 without TLS", plain(func(*AuthSpec) {}), "spec.auth.enabled: is true and tls.mode is Disabled: passwords, and all that they protect, pass the network in clear"},
		{"551 without TLS and a password of root", plain(func(a *AuthSpec) { a.RootPasswordSecret = AuthPasswordSecret{} }), "spec.auth.rootPasswordSecret: is missing: with tls.mode Disabled no certificate lets quorate in"},
		{"551 without TLS and a password of a user", plain(func(a *AuthSpec) { a.Users[0].PasswordSecret = AuthPasswordSecret{} }), "spec.auth.users[0].passwordSecret: is missing"},
		{"551 a key and no name", plain(func(a *AuthSpec) { a.RootPasswordSecret = AuthPasswordSecret{Key: "a"} }), "spec.auth.rootPasswordSecret.name: is missing"},
		{"551 a password of root beside a certificate", with(func(a *AuthSpec) { a.RootPasswordSecret.Name = "root" }), "spec.auth.rootPasswordSecret: is for tls.mode Disabled"},
		{"551 off without TLS, with a password of root", plain(func(a *AuthSpec) { a.Enabled = new(false) }), ""},
		{"off without TLS", func(c *EtcdCluster) {
			with(func(a *AuthSpec) { a.Enabled = new(false) })(c)
			c.Spec.TLS.Mode = TLSDisabled
		}, ""},
		{"role root", with(func(a *AuthSpec) { a.Roles[0].Name, a.Users[0].Roles = "root", nil }), "spec.auth.roles[0].name: is root"},
		{"user root", user(func(u *AuthUser) { u.Name = "root" }), "spec.auth.users[0].name: is root, which is quorate itself"},
		{"another who may do everything", user(func(u *AuthUser) { u.Roles = []string{"root"} }), ""},
		{"a role twice", with(func(a *AuthSpec) { a.Roles = append(a.Roles, a.Roles[0]) }), `spec.auth.roles[1].name: "orders-rw" is listed twice`},
		{"a user twice", with(func(a *AuthSpec) { a.Users = append(a.Users, a.Users[0]) }), `spec.auth.users[1].name: "orders-app" is listed twice`},
		{"a role of a user twice", user(func(u *AuthUser) { u.Roles = append(u.Roles, u.Roles[0]) }), `spec.auth.users[0].roles[1]: "orders-rw" is listed twice`},
		{"a role that is not there", user(func(u *AuthUser) { u.Roles = []string{"order-rw"} }), `spec.auth.users[0].roles[0]: "order-rw" is not in auth.roles, did you mean orders-rw?`},
		{"no name", user(func(u *AuthUser) { u.Name = "" }), "spec.auth.users[0].name: is missing"},
		{"a name of two words", user(func(u *AuthUser) { u.Name = "Jane Doe" }), ""},
		{"a name of Kubernetes", user(func(u *AuthUser) { u.Name = "system:node:node-1" }), ""},
		{"a name with a space before it", user(func(u *AuthUser) { u.Name = " app" }), "is not a name that quorate takes"},
		{"a name with a line", user(func(u *AuthUser) { u.Name = "a\nb" }), "is not a name that quorate takes"},
		{"a long name", user(func(u *AuthUser) { u.Name = strings.Repeat("a", 65) }), "is not a name that quorate takes"},
		{"a password", user(func(u *AuthUser) { u.PasswordSecret = AuthPasswordSecret{Name: "reports"} }), ""},
		{"a password in a key", user(func(u *AuthUser) { u.PasswordSecret = AuthPasswordSecret{Name: "reports", Key: "etcd.password"} }), ""},
		{"a password without a Secret", user(func(u *AuthUser) { u.PasswordSecret = AuthPasswordSecret{Key: "password"} }), "spec.auth.users[0].passwordSecret.name: is missing"},
		{"a password itself", user(func(u *AuthUser) { u.PasswordSecret = AuthPasswordSecret{Name: "S3cret!"} }), "is not the name of a Secret"},
		{"a bad key", user(func(u *AuthUser) { u.PasswordSecret = AuthPasswordSecret{Name: "a", Key: "a/b"} }), "spec.auth.users[0].passwordSecret.key: is not a key"},
		{"no access", permission(AuthPermission{Prefix: new("/a")}), `spec.auth.roles[0].permissions[0].access: "" is not one of Read, Write, ReadWrite`},
		{"a key", permission(AuthPermission{Access: AuthRead, Key: "/a"}), ""},
		{"a range", permission(AuthPermission{Access: AuthWrite, Key: "/a", RangeEnd: "/b"}), ""},
		{"every key", permission(AuthPermission{Access: AuthRead, Prefix: new("")}), ""},
		{"no keys", permission(AuthPermission{Access: AuthRead}), `names no keys: write a key, a key and a rangeEnd, or a prefix; prefix: "" is every key`},
		{"an end without a key", permission(AuthPermission{Access: AuthRead, RangeEnd: "/b"}), "names no keys"},
		{"a prefix and a key", permission(AuthPermission{Access: AuthRead, Key: "/a", Prefix: new("/a")}), "is given beside a key"},
		{"an empty range", permission(AuthPermission{Access: AuthRead, Key: "/b", RangeEnd: "/a"}), "is not behind the key"},
		{"the same keys twice", with(func(a *AuthSpec) {
			a.Roles[0].Permissions = []AuthPermission{{Access: AuthRead, Prefix: new("/a")}, {Access: AuthWrite, Key: "/a", RangeEnd: "/b"}}
		}), "spec.auth.roles[0].permissions[1]: is for the same keys"},
		{"many roles", with(func(a *AuthSpec) { a.Roles = make([]AuthRole, 101) }), "spec.auth.roles: has 101 roles and may have 100"},
		{"many users", with(func(a *AuthSpec) { a.Users = make([]AuthUser, 101) }), "spec.auth.users: has 101 users and may have 100"},
		{"many permissions", with(func(a *AuthSpec) { a.Roles[0].Permissions = make([]AuthPermission, 101) }), "has 101 permissions and may have 100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := valid()
			c.change(e)
			got := lines(Validate(e))
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("it says %q, want %q", got, c.want)
			}
			if strings.Contains(got, "S3cret") {
				t.Error("a password that stands in the place of a name is repeated")
			}
		})
	}
}

// The file of one who forgets enabled must not switch authentication off.
func TestParse541AuthWithoutEnabledIsHeld(t *testing.T) {
	set := one(clusterText("orders", "auth: {users: [{name: app}]}"))
	if len(set.Clusters) != 0 || len(set.Held) != 1 {
		t.Errorf("it is taken: %v", counts(set))
	}
}

// The range of a prefix is the one that etcd's own client takes for it.
func TestRangeOfAPrefix(t *testing.T) {
	for _, prefix := range []string{"", "/", "/orders/", "a\xff", "\xff\xff", "ä"} {
		start, end := AuthPermission{Prefix: &prefix}.Range()
		op := clientv3.OpGet(prefix, clientv3.WithPrefix())
		if want := [][]byte{op.KeyBytes(), op.RangeBytes()}; !slices.Equal([]string{start, end}, []string{string(want[0]), string(want[1])}) {
			t.Errorf("prefix %q is from %q to %q, etcd has %q", prefix, start, end, want)
		}
	}
}
