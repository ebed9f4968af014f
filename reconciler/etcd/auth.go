package etcd

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/reconciler/starvation"
	"github.com/quorate/quorate/reconciler/state"
)

const (
	// authTimeout bounds one look at users and roles: each is asked for through etcd's log.
	authTimeout = 10 * askTimeout
	// maxTried is how many passwords one look tries. etcd spends a tenth of a second of a
	// processor on each.
	maxTried = 10
	// triedFor is how long a password that was right is not tried again.
	triedFor = time.Hour
	// maxNames bounds the users, or roles, that are not in the file and are named.
	maxNames = 1000
	// rootUser is the user that quorate comes in as, and the role that may do everything.
	rootUser = "root"
)

// Password is a password, which no format prints.
type Password string

// String implements fmt.Stringer.
func (Password) String() string { return "(a password)" }

// GoString implements fmt.GoStringer.
func (Password) GoString() string { return "(a password)" }

// Passwords are those in the data of a Secret in which quorate keeps what user root may have, the
// newest first.
func Passwords(data map[string][]byte) []Password {
	var all []Password
	for _, key := range slices.Sorted(maps.Keys(data)) {
		all = append(all, Password(data[key]))
	}
	return all
}

// AuthQuestion is what is asked of users and roles.
type AuthQuestion struct {
	// ClusterID is the cluster's, in hexadecimal.
	ClusterID string
	// Listed says that users and roles are asked for; else only whether authentication is on.
	Listed bool
	// Roles and Users are those that the file lists.
	Roles, Users []string
	// Passwords are those of listed users that have one, and of user root where quorate comes in
	// by a password, as far as they can be read; Unread are the users whose password cannot.
	Passwords map[string]Password
	Unread    map[string]string
}

// Auth asks for users, roles, and whether authentication is on. What cannot be found out is in
// the answer as a problem.
func (c *Client) Auth(ctx context.Context, cluster string, members []Endpoint, q AuthQuestion) state.Auth {
	ctx, cancel := starvation.WithTimeout(ctx, authTimeout)
	defer cancel()
	found := state.Auth{At: time.Now(), NoSecret: q.Unread}
	m, err := c.voter(ctx, cluster, q.ClusterID, members)
	if err == nil {
		found.Enabled, err = m.authEnabled(ctx)
	}
	if err == nil && q.Listed {
		err = m.list(ctx, q, &found)
	}
	if err == nil && q.Listed {
		found.Passwords, err = c.tryPasswords(ctx, cluster, m, q, found)
	}
	if err != nil {
		found.Problem = err.Error()
	}
	return found
}

// voter is a connection to the first voter of the cluster that answers.
func (c *Client) voter(ctx context.Context, cluster, clusterID string, members []Endpoint) (*Conn, error) {
	problem := errors.New("no member has an address")
	for _, e := range members {
		m, err := c.client(cluster, e)
		if err == nil {
			err = m.isVoter(ctx, clusterID)
		}
		if err == nil {
			return m, nil
		}
		problem = fmt.Errorf("%s: %w", e.Member, err)
	}
	return nil, problem
}

func (m *Conn) isVoter(ctx context.Context, clusterID string) error {
	ctx, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := m.maintenance().Status(ctx, &pb.StatusRequest{})
	switch {
	case err != nil:
		return fmt.Errorf("status: %w", plainError(err))
	case hexID(s.Header.ClusterId) != clusterID:
		return fmt.Errorf("%w: it answers for cluster %s, not %s", ErrOtherCluster, hexID(s.Header.ClusterId), clusterID)
	case s.IsLearner:
		return errors.New("it is a learner")
	}
	return nil
}

// authEnabled reports whether authentication is on. 3.4 cannot be asked that: it tells by how
// it refuses a user without a name, of which there is none.
func (m *Conn) authEnabled(ctx context.Context) (bool, error) {
	ctx, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := m.etcd.AuthStatus(ctx)
	if err == nil {
		return s.Enabled, nil
	}
	if status.Code(err) != codes.Unimplemented {
		return false, fmt.Errorf("status of authentication: %w", plainError(err))
	}
	switch _, err = m.etcd.Authenticate(ctx, "", ""); {
	case errors.Is(err, rpctypes.ErrAuthNotEnabled):
		return false, nil
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return true, nil
	case err == nil:
		return false, errors.New("status of authentication: it lets in a user without a name: find out what listens at its address")
	}
	return false, fmt.Errorf("status of authentication: %w", plainError(err))
}

// list asks for the listed users and roles, and for the names of the others.
func (m *Conn) list(ctx context.Context, q AuthQuestion, found *state.Auth) error {
	roles, err := m.etcd.RoleList(ctx)
	if err != nil {
		return fmt.Errorf("roles: %w", plainError(err))
	}
	users, err := m.etcd.UserList(ctx)
	if err != nil {
		return fmt.Errorf("users: %w", plainError(err))
	}
	found.Roles, found.Users = map[string][]state.Permission{}, map[string][]string{}
	for _, name := range q.Roles {
		if !slices.Contains(roles.Roles, name) {
			continue
		}
		r, err := m.etcd.RoleGet(ctx, name)
		if err != nil {
			return fmt.Errorf("role %s: %w", name, plainError(err))
		}
		found.Roles[name] = permissions(r.Perm)
	}
	for _, name := range append(slices.Clone(q.Users), rootUser) {
		if !slices.Contains(users.Users, name) {
			continue
		}
		u, err := m.etcd.UserGet(ctx, name)
		if err != nil {
			return fmt.Errorf("user %s: %w", name, plainError(err))
		}
		found.Users[name] = u.Roles
	}
	found.OtherRoles, found.OtherUsers = others(roles.Roles, q.Roles), others(users.Users, q.Users)
	return nil
}

// others are the names that are not listed, at most maxNames. One that does not fit on one line
// is none that quorate would name, and is left.
func others(all, listed []string) []string {
	var names []string
	for _, name := range all {
		if name != rootUser && !slices.Contains(listed, name) && word(name) == name && len(names) < maxNames {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tryPasswords finds out how each user comes in: with the password of the file, or with none. It
// tries a few at a time, and one that was right not again for an hour.
func (c *Client) tryPasswords(ctx context.Context, cluster string, m *Conn, q AuthQuestion, found state.Auth) (map[string]state.PasswordState, error) {
	states := map[string]state.PasswordState{}
	tried := 0
	users := q.Users
	if _, has := q.Passwords[rootUser]; has {
		users = append([]string{rootUser}, users...)
	}
	for _, user := range users {
		_, there := found.Users[user]
		if _, unread := q.Unread[user]; unread || !there {
			continue
		}
		password, has := q.Passwords[user]
		if c.passwords.right(cluster, q.ClusterID, user, password, has) {
			states[user] = state.PasswordRight
			continue
		}
		if !found.Enabled || tried == maxTried {
			continue // etcd tries no password while authentication is off
		}
		tried++
		is, err := m.tryPassword(ctx, user, password, has)
		if err != nil {
			return nil, fmt.Errorf("try the password of user %s: %w", user, err)
		}
		if states[user] = is; is == state.PasswordRight {
			c.passwords.note(cluster, q.ClusterID, user, password, has)
		}
	}
	return states, nil
}

// tryPassword lets a user come in. One who should have no password is tried with one that is
// wrong in any case: etcd tells apart why it refuses it.
func (m *Conn) tryPassword(ctx context.Context, user string, password Password, has bool) (state.PasswordState, error) {
	ctx, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	if !has {
		password = Password(rand.Text())
	}
	_, err := m.etcd.Authenticate(ctx, user, string(password))
	none := hasNone(err)
	switch {
	case none && has, !none && !has && (err == nil || errors.Is(err, rpctypes.ErrAuthFailed)):
		return state.PasswordOtherKind, nil
	case err == nil, none:
		return state.PasswordRight, nil
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return state.PasswordWrong, nil
	}
	return state.PasswordUnknown, plainError(err)
}

// hasNone reports whether etcd refuses a password because the user has none.
func hasNone(err error) bool {
	return err != nil && strings.Contains(plainError(err).Error(), "no password user")
}

// permissions are those of a role.
func permissions(perms []*authpb.Permission) []state.Permission {
	var all []state.Permission
	for _, p := range perms {
		all = append(all, state.Permission{Access: p.PermType.String(), Key: string(p.Key), End: string(p.RangeEnd)})
	}
	return all
}

// AuthWork is a change, and what it needs that is in no plan.
type AuthWork struct {
	state.AuthChange
	// ClusterID is the cluster's, in hexadecimal.
	ClusterID string
	// Password of the user, where HasPassword says that there is one; to enable authentication,
	// that of user root.
	Password    Password
	HasPassword bool
}

// ChangeAuth makes one change. That it was made before is success. Authentication is switched
// on only where quorate's certificate lets it in, or the password that this process has given root,
// and that is tried through every member.
func (c *Client) ChangeAuth(ctx context.Context, cluster string, members []Endpoint, w AuthWork) error {
	ctx, cancel := context.WithTimeout(ctx, authTimeout)
	defer cancel()
	if err := c.changeAuth(ctx, cluster, members, w); err != nil {
		return fmt.Errorf("%s: %w", w.AuthChange, err)
	}
	return nil
}

func (c *Client) changeAuth(ctx context.Context, cluster string, members []Endpoint, w AuthWork) error {
	m, err := c.voter(ctx, cluster, w.ClusterID, members)
	if err != nil {
		return err
	}
	switch w.Op {
	case state.AddUser:
		err = m.addUser(ctx, w)
	case state.RenewUser:
		err = m.renewUser(ctx, w)
	case state.EnableAuth:
		return c.enableAuth(ctx, cluster, m, members, w)
	default:
		err = m.change(ctx, w)
	}
	if err == nil && slices.Contains([]state.AuthOp{state.AddUser, state.RenewUser, state.SetPassword}, w.Op) {
		c.passwords.note(cluster, w.ClusterID, w.User, w.Password, w.HasPassword)
	}
	return err
}

// change makes a change that is one request. What is so already is success.
func (m *Conn) change(ctx context.Context, w AuthWork) error {
	auth, p := m.etcd.Auth, w.Permission
	done, err := error(nil), error(nil)
	switch w.Op {
	case state.AddRole:
		done = rpctypes.ErrRoleAlreadyExist
		_, err = auth.RoleAdd(ctx, w.Role)
	case state.DeleteRole:
		done = rpctypes.ErrRoleNotFound
		_, err = auth.RoleDelete(ctx, w.Role)
	case state.GrantPermission:
		access, known := authpb.Permission_Type_value[p.Access]
		if !known {
			return fmt.Errorf("etcd has no permission %q", p.Access)
		}
		_, err = auth.RoleGrantPermission(ctx, w.Role, p.Key, p.End, clientv3.PermissionType(access))
	case state.RevokePermission:
		done = rpctypes.ErrPermissionNotGranted
		_, err = auth.RoleRevokePermission(ctx, w.Role, p.Key, p.End)
	case state.SetPassword:
		_, err = auth.UserChangePassword(ctx, w.User, string(w.Password))
	case state.GrantRole:
		_, err = auth.UserGrantRole(ctx, w.User, w.Role)
	case state.RevokeRole:
		done = rpctypes.ErrRoleNotGranted
		_, err = auth.UserRevokeRole(ctx, w.User, w.Role)
	case state.DeleteUser:
		done = rpctypes.ErrUserNotFound
		_, err = auth.UserDelete(ctx, w.User)
	case state.DisableAuth:
		_, err = auth.AuthDisable(ctx)
	default:
		return fmt.Errorf("there is no such change: %s", w.Op)
	}
	if err == nil || done != nil && errors.Is(err, done) {
		return nil
	}
	return plainError(err)
}

// addUser adds a user with the password of the work, or with none. One that is there keeps what
// it has, which the next look tells.
func (m *Conn) addUser(ctx context.Context, w AuthWork) error {
	_, err := m.etcd.UserAddWithOptions(ctx, w.User, string(w.Password), &clientv3.UserAddOptions{NoPassword: !w.HasPassword})
	if err != nil {
		return plainError(err)
	}
	return nil
}

// renewUser deletes a user, and adds it again with its roles.
func (m *Conn) renewUser(ctx context.Context, w AuthWork) error {
	remove := w
	remove.Op = state.DeleteUser
	if err := m.change(ctx, remove); err != nil {
		return err
	}
	if err := m.addUser(ctx, w); err != nil {
		return err
	}
	for _, role := range w.Roles {
		if _, err := m.etcd.UserGrantRole(ctx, w.User, role); err != nil {
			return fmt.Errorf("role %s: %w", role, plainError(err))
		}
	}
	return nil
}

// enableAuth switches authentication on. Before, it asks etcd for quorate's own access, and its
// certificate for the name by which it comes in, or itself whether it has given root the password,
// which cannot be tried before: there would be no way back without. After, quorate comes in through
// each member.
func (c *Client) enableAuth(ctx context.Context, cluster string, m *Conn, members []Endpoint, w AuthWork) error {
	for _, e := range members {
		if err := c.comesInAsRoot(cluster, e, w); err != nil {
			return fmt.Errorf("quorate would lock itself out: %w", err)
		}
	}
	root, err := m.etcd.UserGet(ctx, rootUser)
	if err != nil {
		return fmt.Errorf("user root: %w", plainError(err))
	}
	if !slices.Contains(root.Roles, rootUser) {
		return errors.New("quorate would lock itself out: user root has not the role root")
	}
	if _, err := m.etcd.AuthEnable(ctx); err != nil {
		return plainError(err)
	}
	for _, e := range members {
		if err := c.awaitAccess(ctx, cluster, e); err != nil {
			return fmt.Errorf("it is on, and through %s quorate is not let in: %w", e.Member, err)
		}
	}
	return nil
}

// comesInAsRoot returns an error where the certificate that a member is shown has another name, and
// where there is none, and root is not known to have the password.
func (c *Client) comesInAsRoot(cluster string, e Endpoint, w AuthWork) error {
	switch {
	case e.TLS == nil && (e.Login == nil || !w.HasPassword):
		return errors.New("it has neither a certificate nor a password")
	case e.TLS == nil && !c.passwords.right(cluster, w.ClusterID, rootUser, w.Password, true):
		return fmt.Errorf("user root may have another password than the one in the Secret: %w", state.ErrChanged)
	case e.TLS == nil:
		return nil
	}
	config, err := e.TLS()
	if err != nil {
		return err
	}
	for _, pair := range config.Certificates {
		leaf := pair.Leaf
		if leaf == nil && len(pair.Certificate) > 0 {
			if leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
				return fmt.Errorf("its certificate cannot be read: %w", err)
			}
		}
		if leaf != nil && leaf.Subject.CommonName == rootUser {
			return nil
		}
	}
	return errors.New("the common name of its certificate is not root")
}

// awaitAccess asks a member for what only user root is told, for a moment: it may not have
// heard yet that authentication is on.
func (c *Client) awaitAccess(ctx context.Context, cluster string, e Endpoint) error {
	ctx, cancel := starvation.WithTimeout(ctx, askTimeout)
	defer cancel()
	m, err := c.client(cluster, e)
	if err != nil {
		return err
	}
	for {
		_, err := m.etcd.UserGet(ctx, rootUser)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return plainError(err)
		case <-time.After(state.Between):
		}
	}
}

// passwords remembers which passwords were right, or were set, and when: etcd is slow to try
// one, and while authentication is off tries none. It has no password, only what this process
// alone can tell one by.
type passwords struct {
	mu    sync.Mutex
	key   []byte
	known map[string]map[string]knownPassword
}

type knownPassword struct {
	digest string
	at     time.Time
}

// digest tells a user's password in a cluster by a key of this process.
func (p *passwords) digest(clusterID, user string, password Password, has bool) string {
	if p.key == nil {
		p.key = []byte(rand.Text())
	}
	h := hmac.New(sha256.New, p.key)
	fmt.Fprintf(h, "%q %q %t %q", clusterID, user, has, string(password))
	return string(h.Sum(nil))
}

func (p *passwords) note(cluster, clusterID, user string, password Password, has bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]map[string]knownPassword{}
	}
	if p.known[cluster] == nil {
		p.known[cluster] = map[string]knownPassword{}
	}
	p.known[cluster][user] = knownPassword{p.digest(clusterID, user, password, has), time.Now()}
}

func (p *passwords) right(cluster, clusterID, user string, password Password, has bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, there := p.known[cluster][user]
	return there && k.digest == p.digest(clusterID, user, password, has) && time.Since(k.at) < triedFor
}

func (p *passwords) forget(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, cluster)
}
