package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/grants"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/needs"
)

// errKilled is what a process hears that is killed.
var errKilled = errors.New("killed")

// mortal is etcd's users and roles for a process that is killed at one of its changes: before
// it, or after it was made and before it is told so.
type mortal struct {
	clientv3.Auth
	left  *int
	after bool
}

// change makes a change, unless the process is killed.
func change[T any](m mortal, do func() (*T, error)) (*T, error) {
	*m.left--
	if *m.left < 0 || *m.left == 0 && !m.after {
		return nil, errKilled
	}
	answer, err := do()
	if *m.left == 0 {
		return nil, errKilled
	}
	return answer, err
}

func (m mortal) AuthEnable(ctx context.Context) (*clientv3.AuthEnableResponse, error) {
	return change(m, func() (*clientv3.AuthEnableResponse, error) { return m.Auth.AuthEnable(ctx) })
}

func (m mortal) AuthDisable(ctx context.Context) (*clientv3.AuthDisableResponse, error) {
	return change(m, func() (*clientv3.AuthDisableResponse, error) { return m.Auth.AuthDisable(ctx) })
}

func (m mortal) UserAddWithOptions(ctx context.Context, name, password string, o *clientv3.UserAddOptions) (*clientv3.AuthUserAddResponse, error) {
	return change(m, func() (*clientv3.AuthUserAddResponse, error) {
		return m.Auth.UserAddWithOptions(ctx, name, password, o)
	})
}

func (m mortal) UserDelete(ctx context.Context, name string) (*clientv3.AuthUserDeleteResponse, error) {
	return change(m, func() (*clientv3.AuthUserDeleteResponse, error) { return m.Auth.UserDelete(ctx, name) })
}

func (m mortal) UserChangePassword(ctx context.Context, name, password string) (*clientv3.AuthUserChangePasswordResponse, error) {
	return change(m, func() (*clientv3.AuthUserChangePasswordResponse, error) {
		return m.Auth.UserChangePassword(ctx, name, password)
	})
}

func (m mortal) UserGrantRole(ctx context.Context, user, role string) (*clientv3.AuthUserGrantRoleResponse, error) {
	return change(m, func() (*clientv3.AuthUserGrantRoleResponse, error) { return m.Auth.UserGrantRole(ctx, user, role) })
}

func (m mortal) UserRevokeRole(ctx context.Context, user, role string) (*clientv3.AuthUserRevokeRoleResponse, error) {
	return change(m, func() (*clientv3.AuthUserRevokeRoleResponse, error) { return m.Auth.UserRevokeRole(ctx, user, role) })
}

func (m mortal) RoleAdd(ctx context.Context, name string) (*clientv3.AuthRoleAddResponse, error) {
	return change(m, func() (*clientv3.AuthRoleAddResponse, error) { return m.Auth.RoleAdd(ctx, name) })
}

func (m mortal) RoleDelete(ctx context.Context, name string) (*clientv3.AuthRoleDeleteResponse, error) {
	return change(m, func() (*clientv3.AuthRoleDeleteResponse, error) { return m.Auth.RoleDelete(ctx, name) })
}

func (m mortal) RoleGrantPermission(ctx context.Context, name, key, end string, p clientv3.PermissionType) (*clientv3.AuthRoleGrantPermissionResponse, error) {
	return change(m, func() (*clientv3.AuthRoleGrantPermissionResponse, error) {
		return m.Auth.RoleGrantPermission(ctx, name, key, end, p)
	})
}

func (m mortal) RoleRevokePermission(ctx context.Context, name, key, end string) (*clientv3.AuthRoleRevokePermissionResponse, error) {
	return change(m, func() (*clientv3.AuthRoleRevokePermissionResponse, error) {
		return m.Auth.RoleRevokePermission(ctx, name, key, end)
	})
}

// authWorld is a cluster with users, and what the file and the Secrets say of them.
type authWorld struct {
	*etcdServers
	want      *schema.AuthSpec
	passwords map[string]Password
	id        string
	// kept are the passwords that root may have, where quorate comes in by one.
	kept []Password
}

// startPlain is startAuth without TLS: everybody comes in by a password, quorate too.
func startPlain(t *testing.T, version string, n int) *authWorld {
	t.Helper()
	s := startEtcd(t, version, n, false, "--bcrypt-cost=4")
	w := withUsers(s)
	w.passwords["orders-app"], w.passwords[rootUser] = "mine", "root's first"
	w.want.RootPasswordSecret = schema.AuthPasswordSecret{Name: "root"}
	w.want.Users[0].PasswordSecret = schema.AuthPasswordSecret{Name: "app"}
	s.clients.Forget("shop/orders")
	for i := range w.endpoints {
		w.endpoints[i].Login = func(context.Context) ([]Password, error) {
			return append([]Password{w.passwords[rootUser]}, w.kept...), nil
		}
	}
	return w
}

func startAuth(t *testing.T, version string, n int) *authWorld {
	t.Helper()
	return withUsers(startEtcd(t, version, n, true, "--bcrypt-cost=4"))
}

func withUsers(s *etcdServers) *authWorld {
	w := &authWorld{etcdServers: s, id: s.clusterID(), passwords: map[string]Password{"reports": "first"}}
	w.want = &schema.AuthSpec{
		Enabled: new(true),
		Roles: []schema.AuthRole{
			{Name: "orders-rw", Permissions: []schema.AuthPermission{{Access: schema.AuthReadWrite, Prefix: new("/orders/")}}},
			{Name: "all-r", Permissions: []schema.AuthPermission{{Access: schema.AuthRead, Prefix: new("")}, {Access: schema.AuthWrite, Key: "/a", RangeEnd: "/b"}}},
		},
		Users: []schema.AuthUser{
			{Name: "orders-app", Roles: []string{"orders-rw"}},
			{Name: "reports", Roles: []string{"all-r"}, PasswordSecret: schema.AuthPasswordSecret{Name: "reports"}},
		},
	}
	return w
}

// look asks for all that the file lists.
func (w *authWorld) look(c *Client) state.Auth {
	q := AuthQuestion{ClusterID: w.id, Listed: true, Passwords: w.passwords}
	for _, r := range w.want.Roles {
		q.Roles = append(q.Roles, r.Name)
	}
	for _, u := range w.want.Users {
		q.Users = append(q.Users, u.Name)
	}
	found := c.Auth(w.Context(), "shop/orders", w.endpoints, q)
	if root, has := w.passwords[rootUser]; has && found.Enabled && found.Passwords[rootUser] == state.PasswordRight && !slices.Equal(w.kept, []Password{root}) {
		found.Passwords[rootUser] = state.PasswordWrong // as the observer has it
	}
	return found
}

// change makes a change as the executor does: root's password is kept before, and alone after.
func (w *authWorld) change(c *Client, change state.AuthChange) error {
	user := change.User
	if change.Op == state.EnableAuth {
		user = rootUser
	}
	password, has := w.passwords[user]
	if has && user == rootUser && !slices.Contains(w.kept, password) {
		w.kept = append([]Password{password}, w.kept...)
	}
	err := c.ChangeAuth(w.Context(), "shop/orders", w.endpoints, AuthWork{AuthChange: change, ClusterID: w.id, Password: password, HasPassword: has})
	if err == nil && has && user == rootUser && (change.Op == state.EnableAuth || change.Op == state.SetPassword) {
		w.kept = []Password{password}
	}
	return err
}

// process is a new quorate.
func (w *authWorld) process() *Client {
	c := New()
	w.Cleanup(func() { c.Forget("shop/orders") })
	return c
}

// work lets a process do all that is due, one by one. It returns what it did, and whether it
// was killed.
func (w *authWorld) work(c *Client) (done []string, killed bool) {
	w.Helper()
	for range 100 {
		is := w.look(c)
		if is.Problem != "" {
			w.Fatalf("after %q: %s", done, is.Problem)
		}
		changes := grants.Changes(w.want, &is)
		if len(changes) == 0 {
			return done, false
		}
		err := w.change(c, changes[0])
		if err != nil && strings.Contains(err.Error(), errKilled.Error()) {
			return done, true
		}
		if err != nil {
			w.Fatalf("after %q: %v", done, err)
		}
		done = append(done, changes[0].String())
	}
	w.Fatalf("it does not come to rest: %q", done)
	return nil, false
}

// let reports what a client may do, as a user with a password, or by quorate's certificate.
func (w *authWorld) let(user, password, key string) (reads, writes bool) {
	w.Helper()
	config := clientv3.Config{Username: user, Password: password, DialTimeout: askTimeout, Logger: zap.NewNop()}
	tls, err := w.Members[0].TLS()
	if err != nil {
		w.Fatal(err)
	}
	config.Endpoints, config.TLS = []string{"http://" + w.Members[0].Address}, tls
	if tls != nil {
		config.Endpoints = []string{"https://" + w.Members[0].Address}
	}
	c, err := clientv3.New(config)
	if err != nil {
		return false, false
	}
	defer func() { _ = c.Close() }()
	_, errRead := c.Get(w.Context(), key)
	_, errWrite := c.Put(w.Context(), key, "x")
	return errRead == nil, errWrite == nil
}

// wipe takes all users and roles away.
func (w *authWorld) wipe() {
	w.Helper()
	c, err := w.clients.client("shop/orders", w.endpoints[0])
	if err != nil {
		w.Fatal(err)
	}
	if _, err := c.etcd.AuthDisable(w.Context()); err != nil {
		w.Fatal(err)
	}
	users, err := c.etcd.UserList(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, user := range users.Users {
		if _, err := c.etcd.UserDelete(w.Context(), user); err != nil {
			w.Fatal(err)
		}
	}
	roles, err := c.etcd.RoleList(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, role := range roles.Roles {
		if _, err := c.etcd.RoleDelete(w.Context(), role); err != nil {
			w.Fatal(err)
		}
	}
	w.commit()
}

// commit has each member write down what it has applied, as it does before a snapshot: until then it
// may read a user as it was.
func (w *authWorld) commit() {
	w.Helper()
	for _, e := range w.endpoints {
		c, err := w.clients.client("shop/orders", e)
		if err != nil {
			w.Fatal(err)
		}
		snapshot, err := c.etcd.Snapshot(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		if _, err := snapshot.Read(make([]byte, 1)); err != nil {
			w.Fatal(err)
		}
		_ = snapshot.Close()
	}
}

// 542: quorate is killed at each change, before it and after it, of switching authentication on,
// of a new password, of another kind of user, and of switching it off. It never locks itself
// out, and the next one comes to the same end.
func TestAuthAtEachKill542(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		w := startAuth(t, version, 1)
		w.untilItLives(w.lives)
	}, etcdtest.V34, etcdtest.V37)
}

// untilItLives kills quorate at each change in turn, before it and after it.
func (w *authWorld) untilItLives(lives func(dies int, after bool) (killed bool)) {
	w.Helper()
	for _, after := range []bool{false, true} {
		for dies, alive := 1, false; !alive; dies++ {
			w.wipe()
			if alive = !lives(dies, after); dies > 60 {
				w.Fatal("it is killed again and again")
			}
		}
	}
}

// 549: without TLS quorate comes in as user root with a password. It is killed at each change of
// switching authentication on, of another password of root, and of switching it off; whenever it is,
// the Secret has changed once more before the next one begins. It never locks itself out.
func TestRootPasswordAtEachKill(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		w := startPlain(t, version, 1)
		on, off := w.want, &schema.AuthSpec{Enabled: new(false)}
		w.untilItLives(func(dies int, after bool) (killed bool) {
			left := dies
			w.kept = nil
			for i, want := range []*schema.AuthSpec{on, on, on, off} {
				w.want, w.passwords[rootUser] = want, Password(fmt.Sprintf("root's %d", i))
				c := w.process()
				w.mortal(c, &left, after)
				if _, dead := w.work(c); dead {
					killed, left = true, 1<<30
					w.passwords[rootUser] += " once more"
					w.work(w.process())
				}
				if is := w.look(w.clients); is.Problem != "" || is.Enabled != *want.Enabled {
					t.Fatalf("step %d, killed at change %d (after it: %t): %+v", i, dies, after, is)
				}
				if want == off {
					continue
				}
				if reads, writes := w.let(rootUser, string(w.passwords[rootUser]), "/else"); !reads || !writes {
					t.Fatalf("step %d, killed at change %d (after it: %t): root's password is another", i, dies, after)
				}
				if reads, _ := w.let(rootUser, fmt.Sprintf("root's %d", i-1), "/else"); reads {
					t.Fatalf("step %d, killed at change %d (after it: %t): root's password from before is taken", i, dies, after)
				}
				if reads, _ := w.let("", "", "/orders/1"); reads {
					t.Fatalf("step %d: who shows nothing is let in", i)
				}
			}
			w.want = on
			return killed
		})
	}, etcdtest.V34, etcdtest.V37)
}

// 549: a member asks who is there in the words of the API, or before 3.5 in those of its store of users.
func TestAMemberAsksWhoIsThere(t *testing.T) {
	for said, asks := range map[string]bool{
		"etcdserver: user name is empty": true, "etcdserver: invalid auth token": true, "etcdserver: revision of auth store is old": true,
		"auth: user name is empty": true, "auth: invalid auth token": true, "auth: revision in header is old": true,
		"etcdserver: permission denied": false, "auth: authentication is not enabled": false, "etcdserver: request timed out": false,
	} {
		if wantsToken(status.Error(codes.Unknown, said)) != asks {
			t.Errorf("%q: asks %t", said, !asks)
		}
	}
	if wantsToken(nil) {
		t.Error("an answer asks")
	}
}

// 549: of a cluster in plain text without users, which has no password of root, a snapshot is taken; once
// somebody has switched authentication on, it says what is missing.
func TestSnapshotsNeedAPasswordWithAuthenticationOnly(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		w := startPlain(t, version, 1)
		none := w.endpoints[0]
		none.Login = func(context.Context) ([]Password, error) { return nil, nil }
		read := func() (int64, error) {
			c := New()
			defer c.Forget("shop/orders")
			m, err := c.Snapshot(t.Context(), "shop/orders", w.target(w.round(false), none))
			if err != nil {
				return 0, err
			}
			defer func() { _ = m.Close() }()
			return io.Copy(io.Discard, m)
		}
		if n, err := read(); err != nil || n == 0 {
			t.Errorf("with authentication off: %d bytes, %v", n, err)
		}
		w.work(w.clients)
		if n, err := read(); !errors.Is(err, ErrNoPassword) {
			t.Errorf("with authentication on: %d bytes, %v", n, err)
		}
	}, etcdtest.V34, etcdtest.V37)
}

// 550: with no password that is right, quorate is denied, and says why; it does not try all of
// them at each request; and it comes in with the next right one.
func TestRootPasswordIsRefused(t *testing.T) {
	t.Parallel()
	w := startPlain(t, etcdtest.V37, 3)
	w.work(w.clients)
	right, tried := w.passwords[rootUser], 0
	c := New()
	t.Cleanup(func() { c.Forget("shop/orders") })
	endpoints := slices.Clone(w.endpoints)
	for i := range endpoints {
		endpoints[i].Login = func(context.Context) ([]Password, error) { tried++; return []Password{"wrong", "worse"}, nil }
	}
	for range 3 {
		r := c.Round(t.Context(), "shop/orders", endpoints[:1], false)
		if m := r.Members[0]; !m.Denied || !strings.Contains(m.Problem, "quorate has no password with which etcd lets it in as user root, of 2") {
			t.Errorf("it is %+v", m)
		}
	}
	if tried != 1 {
		t.Errorf("the passwords were read %d times in a moment", tried)
	}
	w.passwords[rootUser], w.kept = "wrong, beside what is kept", []Password{right}
	c.Forget("shop/orders")
	if trouble := troubleOf(c.Round(t.Context(), "shop/orders", w.endpoints, true)); trouble != "" {
		t.Errorf("with the one that is kept: %s", trouble)
	}
	// A member that restarts knows no token, and a stream cannot be begun again.
	r := w.round(false)
	follower := w.followerFirst()[0]
	for _, m := range w.Members {
		if m.Name == follower.Member {
			m.Kill()
			m.Start()
		}
	}
	w.await("the member to be back", func(r state.Round) bool { return troubleOf(r) == "" })
	stream, err := c.Snapshot(t.Context(), "shop/orders", w.target(r, follower))
	if err == nil {
		_, err = stream.Read(make([]byte, 512))
		_ = stream.Close()
	}
	if err != nil {
		t.Errorf("a snapshot of a member that has restarted: %v", err)
	}
}

// mortal has a process killed at one of its changes.
func (w *authWorld) mortal(c *Client, left *int, after bool) {
	w.Helper()
	for _, e := range w.endpoints {
		m, err := c.client("shop/orders", e)
		if err != nil {
			w.Fatal(err)
		}
		m.etcd.Auth = mortal{m.etcd.Auth, left, after}
	}
}

// lives lets a cluster go through all that can be asked for, by processes of which one is
// killed, and reports whether one was.
func (w *authWorld) lives(dies int, after bool) (killed bool) {
	w.Helper()
	full := *w.want
	defer func() { w.want, w.passwords = &full, map[string]Password{"reports": "first"} }()
	left := dies
	step := func(name string, holds func() error) {
		w.Helper()
		c := w.process()
		w.mortal(c, &left, after)
		if _, dead := w.work(c); dead {
			killed = true
			left = 1 << 30
			if is := w.look(w.clients); is.Problem != "" {
				w.Fatalf("%s: killed at change %d (after it: %t), quorate is locked out: %s", name, dies, after, is.Problem)
			}
			w.work(w.process())
		}
		if err := holds(); err != nil {
			w.Fatalf("%s, killed at change %d (after it: %t): %v", name, dies, after, err)
		}
	}
	users := func(want map[string]string) func() error {
		return func() error {
			for _, user := range slices.Sorted(maps.Keys(want)) {
				password, may, _ := strings.Cut(want[user], " ")
				name, _, _ := strings.Cut(user, "#")
				reads, writes := w.let(name, password, "/orders/1")
				if got := fmt.Sprint(reads, writes); got != may {
					return fmt.Errorf("%s reads and writes: %s, want %s", user, got, may)
				}
			}
			return nil
		}
	}
	step("switched on", users(map[string]string{"reports": "first true false", "reports#2": "second false false"}))
	w.passwords = map[string]Password{"reports": "second"}
	step("another password", users(map[string]string{"reports": "second true false", "reports#2": "first false false"}))
	w.want.Users = slices.Clone(w.want.Users)
	w.want.Users[0], w.want.Users[1] = schema.AuthUser{Name: "orders-app", Roles: []string{"orders-rw"}}, schema.AuthUser{Name: "reports", Roles: []string{"orders-rw"}}
	w.passwords = map[string]Password{"orders-app": "third"}
	step("passwords for other users", users(map[string]string{"orders-app": "third true true", "reports": "second false false"}))
	w.want = &schema.AuthSpec{Enabled: new(false)}
	step("switched off", func() error {
		if is := w.look(w.clients); is.Enabled {
			return errors.New("it is on")
		}
		return nil
	})
	return killed
}

// Changes beside Git are found and taken back, and what Git does not list is told.
func TestAuthDrift543(t *testing.T) {
	t.Parallel()
	etcdtest.ForEach(t, func(t *testing.T, version string) {
		w := startAuth(t, version, 3)
		w.work(w.clients)
		m, err := w.clients.client("shop/orders", w.endpoints[1])
		if err != nil {
			t.Fatal(err)
		}
		a := m.etcd.Auth
		for _, beside := range []func() error{
			func() error { _, err := a.RoleAdd(t.Context(), "stray"); return err },
			func() error { _, err := a.UserAdd(t.Context(), "alice", "secret"); return err },
			func() error { _, err := a.UserGrantRole(t.Context(), "reports", "orders-rw"); return err },
			func() error {
				write := clientv3.PermissionType(clientv3.PermWrite)
				_, err := a.RoleGrantPermission(t.Context(), "all-r", "/orders/", "/orders0", write)
				return err
			},
			func() error { _, err := a.UserRevokeRole(t.Context(), "orders-app", "orders-rw"); return err },
			func() error { _, err := a.UserChangePassword(t.Context(), "reports", "other"); return err },
		} {
			if err := beside(); err != nil {
				t.Fatal(err)
			}
		}
		w.clients.passwords.forget("shop/orders") // an hour later
		done, _ := w.work(w.clients)
		want := []string{
			"give user orders-app role orders-rw", "set the password of user reports",
			`no longer let role all-r write "/orders/"*`, "take role orders-rw from user reports",
		}
		if !slices.Equal(done, want) {
			t.Errorf("it does %q, want %q", done, want)
		}
		is := w.look(w.clients)
		if !slices.Equal(is.OtherUsers, []string{"alice"}) || !slices.Equal(is.OtherRoles, []string{"stray"}) {
			t.Errorf("others are %q and %q", is.OtherUsers, is.OtherRoles)
		}
		w.want.Prune = true
		if done, _ := w.work(w.clients); !slices.Equal(done, []string{"delete user alice", "delete role stray"}) {
			t.Errorf("with prune it does %q", done)
		}
	}, etcdtest.V34, etcdtest.V37)
}

// Whatever quorate asks of members, it is answered with authentication on, by its certificate and by
// a password (549).
func TestEverythingWithAuthentication544(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	for name, start := range map[string]func(t *testing.T, version string, n int) *authWorld{
		"certificate": startAuth, "password": startPlain,
	} {
		t.Run(name, func(t *testing.T) {
			etcdtest.ForEach(t, func(t *testing.T, version string) {
				everythingWithAuthentication(start(t, version, 3), version)
			})
		})
	}
}

func everythingWithAuthentication(w *authWorld, version string) {
	t := w.T
	t.Helper()
	w.work(w.clients)
	ctx, c := t.Context(), w.clients
	r := c.Round(ctx, "shop/orders", w.endpoints, true)
	if trouble := troubleOf(r); trouble != "" || r.Incomparable != "" {
		t.Fatalf("round: %s%s", trouble, r.Incomparable)
	}
	leader := r.Leader()
	var led, follower Endpoint
	for _, e := range w.endpoints {
		if e.Member == leader.Name {
			led = e
		} else {
			follower = e
		}
	}
	peer := "http://" + backuptest.FreeAddress(t)
	for _, ask := range []struct {
		name string
		do   func() error
	}{
		{"noop", func() error { return c.AppendNoops(ctx, "shop/orders", w.target(r, led)) }},
		{"snapshots saved", func() error { _, err := c.SnapshotCount(ctx, "shop/orders", led); return err }},
		{"snapshot", func() error {
			stream, err := c.Snapshot(ctx, "shop/orders", w.target(r, follower))
			if err == nil {
				_ = stream.Close()
			}
			return err
		}},
		{"compact", func() error { return c.Compact(ctx, "shop/orders", w.target(r, led), 1) }},
		{"defragment", func() error { return c.Defragment(ctx, "shop/orders", w.target(r, follower)) }},
		{"disarm", func() error {
			return c.Disarm(ctx, "shop/orders", w.endpoints, state.Alarm{Kind: state.NoSpace, MemberID: leader.ID})
		}},
		{"move the leader", func() error {
			return c.MoveLeader(ctx, "shop/orders", w.target(r, led), r.Member(follower.Member).ID)
		}},
		{"learner", func() error {
			id, err := c.AddLearner(ctx, "shop/orders", w.id, w.endpoints, peer)
			for tries := 0; errors.Is(err, ErrUnhealthyCluster) && tries < 20; tries++ {
				time.Sleep(500 * time.Millisecond) // the members must have been in touch for five seconds
				id, err = c.AddLearner(ctx, "shop/orders", w.id, w.endpoints, peer)
			}
			if err != nil {
				return err
			}
			return w.promoted(peer, id)
		}},
		{"downgrade", func() error {
			if version == etcdtest.V34 || version == etcdtest.V35 {
				return nil // they have none
			}
			line := map[string]string{etcdtest.V36: "3.5", etcdtest.V37: "3.6"}[version]
			w.awaitLine(version)
			if err := c.EnableDowngrade(ctx, "shop/orders", w.target(r, led), line); err != nil {
				return err
			}
			return c.CancelDowngrade(ctx, "shop/orders", w.target(r, led))
		}},
	} {
		if err := ask.do(); err != nil {
			t.Errorf("%s: %v", ask.name, err)
		}
	}
}

// promoted starts a learner, promotes it through a follower, and removes it.
func (w *authWorld) promoted(peer, id string) error {
	w.Helper()
	orders := clustertest.Orders()
	initial := append(slices.Clone(w.Initial), naming.Member(orders.Metadata.Name, 3)+"="+peer)
	w.dial(w.Add(orders, 3, peer, "--initial-cluster="+strings.Join(initial, ","), "--initial-cluster-state=existing"))
	defer func() { w.endpoints = w.endpoints[:3] }()
	w.endpoints[3].Login = w.endpoints[0].Login
	// A learner gives no token, and may want one (3.7).
	w.await("the learner to tell how it is", func(r state.Round) bool {
		i := slices.IndexFunc(r.Members, func(m state.Member) bool { return m.ID == id })
		return i >= 0 && r.Members[i].Version != "" && r.Members[i].Learner
	})
	follower := w.followerFirst()
	err := ErrLearnerNotReady
	for tries := 0; errors.Is(err, ErrLearnerNotReady) && tries < 100; tries++ {
		time.Sleep(100 * time.Millisecond)
		err = w.clients.PromoteMember(w.Context(), "shop/orders", w.id, follower, id)
	}
	if err != nil {
		return err
	}
	return w.clients.RemoveMember(w.Context(), "shop/orders", w.id, follower, id)
}

// followerFirst are the first three members, of which the first does not lead.
func (w *authWorld) followerFirst() []Endpoint {
	w.Helper()
	r := w.round(false)
	leader := r.Leader()
	all := slices.Clone(w.endpoints[:3])
	if leader != nil && leader.Name == all[0].Member {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// awaitLine waits until the members have agreed on their own minor.
func (w *authWorld) awaitLine(version string) {
	w.Helper()
	w.await("the cluster version", func(r state.Round) bool { return r.ClusterVersion == version[1:4]+".0" })
}

// Authentication stays off where quorate's certificate is not that of root, or user root has
// not its role: etcd would lock everyone out.
func TestAuthIsNotEnabledWithoutAccess545(t *testing.T) {
	t.Parallel()
	w := startAuth(t, etcdtest.V37, 1)
	enable := AuthWork{AuthChange: state.AuthChange{Op: state.EnableAuth}, ClusterID: w.id}
	backuptest.WantError(t, w.clients.ChangeAuth(t.Context(), "shop/orders", w.endpoints, enable), "enable authentication", "user root", "not found")
	root := func(op state.AuthOp) AuthWork {
		return AuthWork{AuthChange: state.AuthChange{Op: op, User: rootUser, Role: rootUser}, ClusterID: w.id}
	}
	if err := w.clients.ChangeAuth(t.Context(), "shop/orders", w.endpoints, root(state.AddUser)); err != nil {
		t.Fatal(err)
	}
	backuptest.WantError(t, w.clients.ChangeAuth(t.Context(), "shop/orders", w.endpoints, enable), "quorate would lock itself out: user root has not the role root")
	if err := w.clients.ChangeAuth(t.Context(), "shop/orders", w.endpoints, root(state.GrantRole)); err != nil {
		t.Fatal(err)
	}
	plain := startEtcd(t, etcdtest.V37, 1, false)
	backuptest.WantError(t, plain.clients.enableAuth(t.Context(), "shop/orders", mustConn(t, plain), plain.endpoints, AuthWork{}), "quorate would lock itself out: it has neither a certificate nor a password")
	if is := w.look(w.clients); is.Enabled {
		t.Error("it is on")
	}
	// 550: nor where another process has given root its password, which cannot be tried.
	byPassword := startPlain(t, etcdtest.V37, 1)
	for _, op := range []state.AuthOp{state.AddUser, state.GrantRole} {
		if err := byPassword.change(byPassword.clients, root(op).AuthChange); err != nil {
			t.Fatal(err)
		}
	}
	other := byPassword.process()
	err := byPassword.change(other, state.AuthChange{Op: state.EnableAuth})
	backuptest.WantError(t, err, "user root may have another password than the one in the Secret")
	if !errors.Is(err, state.ErrChanged) {
		t.Error("it is not looked at again")
	}
}

func mustConn(t *testing.T, s *etcdServers) *Conn {
	t.Helper()
	m, err := s.clients.client("shop/orders", s.endpoints[0])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A password is in no text that a person, or a log, may see.
func TestPasswordIsNotPrinted(t *testing.T) {
	work := AuthWork{Password: "S3cret", HasPassword: true}
	question := AuthQuestion{Passwords: map[string]Password{"a": "S3cret"}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(format+format, work, question); strings.Contains(text, "S3cret") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
