package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/lab"
)

// users is spec.auth of the tests, on or off, in one line.
func users(enabled bool) string {
	return fmt.Sprintf("{enabled: %t, roles: [{name: lab, permissions: [{access: ReadWrite, prefix: lab/}]}, {name: all, permissions: [{access: Read, prefix: \"\"}]}], "+
		"users: [{name: writer, roles: [lab], passwordSecret: {name: writer-etcd}}, {name: reports, roles: [all], passwordSecret: {name: reports-etcd, key: word}}, {name: by-certificate, roles: [lab]}]}", enabled)
}

// TestUsers switches authentication on under Git's word, changes a password, takes manual changes
// back, and goes from 3.4 to 3.7, which waits until authentication is off for the step to 3.5, under
// the load of a user with a password. At the end the cluster is restored from a backup with
// authentication on, and it is switched off again (150, 151, 540, 543, 548).
func TestUsers(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "users")
	want := spec{version: "3.4.34", replicas: 3, backup: "Required"}
	w.create(want)
	w.setPassword("writer-etcd", "password", "w-first")
	from := w.daemon.Log.Mark()
	want.more = "  auth: " + users(true) + "\n"
	w.commit("Enable authentication", want)
	// 547: it stays off until every user can be there.
	w.awaitHold("Refused", holdLimit, "the password of user reports cannot be read, and authentication stays off")
	w.expectUser("writer", "w-first", "lab/probe", true, true)
	w.setPassword("reports-etcd", "word", "r-first")
	w.awaitDone(holdLimit)
	w.expectOrder(from, "add user root", "give user root role root", "add user writer", "add user reports", "enable authentication")
	w.expectUser("reports", "r-first", "lab/probe", true, false)
	w.expectUser("writer", "w-first", "elsewhere", false, false)
	w.expectUser("writer", "wrong", "lab/probe", false, false)

	// The load goes on through all that follows, as a user with a password.
	client, err := w.cluster.DialAs(t.Context(), w.namespace, name, "writer", "w-first")
	w.must(err)
	writer := lab.StartWriter(client, lab.WriterOptions{Prefix: "lab/load/", Pace: 50 * time.Millisecond, Limit: 40 * time.Minute})
	t.Cleanup(writer.Close)

	// 151: another password of another user.
	w.setPassword("reports-etcd", "word", "r-second")
	w.await("the new password to be set", holdLimit, lab.Done("set the password of user reports"))
	w.expectUser("reports", "r-second", "lab/probe", true, false)
	w.expectUser("reports", "r-first", "lab/probe", false, false)

	// 543: manual changes of what Git lists do not last, and others do.
	root := w.root()
	_, err = root.RoleAdd(t.Context(), "stray")
	w.must(err)
	_, err = root.UserGrantRole(t.Context(), "reports", "lab")
	w.must(err)
	w.await("the role to be taken again", holdLimit, lab.Done("take role lab from user reports"))
	if _, err := root.RoleGet(t.Context(), "stray"); err != nil {
		t.Errorf("a role that Git does not list is gone: %v", err)
	}

	// 540: to 3.5 only with authentication off, which the next commit says.
	want.version, want.more = "3.7.3", "    path: Stepwise\n"+want.more
	w.commit("Upgrade with authentication on", want)
	w.awaitHold("Refused", holdLimit, "authentication is on, and etcd supports no rollout between 3.4 and 3.5")
	w.expectVersion(3, "3.4.34")
	from = w.daemon.Log.Mark()
	want.more = strings.Replace(want.more, users(true), users(false), 1)
	w.apply("Upgrade without", want)
	w.expectVersion(3, "3.7.3")
	w.expectOrder(from, "disable authentication", "3.5.35", "3.6.16", "3.7.3 is applied")
	want.more = "  auth: " + users(true) + "\n"
	w.apply("Enable authentication again", want)
	w.expectUser("writer", "wrong", "lab/probe", false, false)

	// With authentication on, members come and go, too.
	want.replicas = 5
	w.apply("Grow", want)
	want.replicas = 3
	w.apply("Shrink", want)
	w.expectVersion(3, "3.7.3")
	w.finishLoad(writer)

	// 548: deleted after a backup, and restored with its users.
	deleted := want
	deleted.state = "Deleted"
	restore := strings.TrimSuffix(w.restoreFile("{clusterName: orders}", want), "}\n") + ", auth: " + users(true) + "}\n"
	w.commitFiles("Delete it, and restore it in its place", map[string]string{file: w.text(deleted), "clusters/restore.yaml": restore})
	w.awaitIdle(want.version, 2*rollLimit)
	w.expectUser("writer", "w-first", "lab/probe", true, true)
	w.expectUser("reports", "r-second", "lab/probe", true, false)
	w.expectUser("reports", "wrong", "lab/probe", false, false)

	// 150: off again.
	want.more, want.backup = "  auth: {enabled: false}\n", "Skip"
	w.commitFiles("Disable authentication", map[string]string{file: w.text(want), "clusters/restore.yaml": ""})
	w.awaitDone(holdLimit)
	w.expectUser("", "", "elsewhere", true, true)
	if status, err := w.root().AuthStatus(t.Context()); err != nil || status.Enabled {
		t.Errorf("authentication is %+v, %v", status, err)
	}
	for _, l := range w.daemon.Log.Lines(0) {
		for _, secret := range []string{"w-first", "r-first", "r-second"} {
			if strings.Contains(l.Raw, secret) {
				t.Errorf("a password is in the log: %s", l.Raw)
			}
		}
	}
}

// TestUsersWithoutTLS has everybody come in by a password, quorate too: it takes up another one of
// user root, and where the Secret is gone after it, it backs up, upgrades and grows all the same, under
// the load of a user (549, 550).
func TestUsersWithoutTLS(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "plain")
	byPassword := func(enabled bool) string {
		return fmt.Sprintf("{enabled: %t, rootPasswordSecret: {name: root-etcd}, roles: [{name: lab, permissions: [{access: ReadWrite, prefix: lab/}]}], users: [{name: writer, roles: [lab], passwordSecret: {name: writer-etcd}}]}", enabled)
	}
	want := spec{version: "3.6.16", replicas: 3, tls: "Disabled", backup: "Required"}
	w.create(want)
	w.setPassword("writer-etcd", "password", "w-first")
	from := w.daemon.Log.Mark()
	want.more = "  auth: " + byPassword(true) + "\n"
	w.commit("Enable authentication", want)
	w.awaitHold("Refused", holdLimit, "the password of user root cannot be read, and authentication stays off")
	w.setPassword("root-etcd", "password", "r-first")
	w.awaitDone(holdLimit)
	w.expectOrder(from, "add user root", "give user root role root", "add role lab", "add user writer", "enable authentication")
	w.expectUser("", "", "lab/probe", false, false)
	w.expectUser("root", "r-first", "elsewhere", true, true)
	client, err := w.cluster.DialAs(t.Context(), w.namespace, name, "writer", "w-first")
	w.must(err)
	writer := lab.StartWriter(client, lab.WriterOptions{Prefix: "lab/load/", Pace: 50 * time.Millisecond, Limit: 40 * time.Minute})
	t.Cleanup(writer.Close)

	w.mark = w.daemon.Log.Mark()
	w.setPassword("root-etcd", "password", "r-second")
	w.await("the new password to be set", holdLimit, lab.Done("set the password of user root"))
	w.expectUser("root", "r-second", "elsewhere", true, true)
	w.expectUser("root", "r-first", "elsewhere", false, false)

	// What quorate keeps lets it in where the Secret is gone, and another quorate as well.
	w.must(w.cluster.Client.CoreV1().Secrets(w.namespace).Delete(t.Context(), "root-etcd", metav1.DeleteOptions{}))
	w.must(w.daemon.Stop())
	w.mark = w.daemon.Log.Mark()
	w.must(w.daemon.Start())
	w.awaitHold("Refused", holdLimit, "the password of user root cannot be read")
	want.version, want.replicas = "3.7.3", 4
	w.commit("Upgrade and grow", want)
	w.awaitHold("Refused", changeLimit, "the password of user root cannot be read")
	if pods := w.uids(); len(pods) != 4 {
		t.Errorf("the pods are %v", pods)
	}
	w.expectOrder(from, "back up", "3.7.3", "promote orders-3")
	w.finishLoad(writer)
	for _, l := range w.daemon.Log.Lines(0) {
		for _, secret := range []string{"w-first", "r-first", "r-second"} {
			if strings.Contains(l.Raw, secret) {
				t.Errorf("a password is in the log: %s", l.Raw)
			}
		}
	}
}

// setPassword writes a Secret that quorate may use for users.
func (w *world) setPassword(secret, key, password string) {
	w.Helper()
	secrets := w.cluster.Client.CoreV1().Secrets(w.namespace)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret, Labels: map[string]string{naming.LabelUse: naming.UsePasswords}}, Data: map[string][]byte{key: []byte(password)}}
	_ = secrets.Delete(w.Context(), secret, metav1.DeleteOptions{}) // there may be none
	_, err := secrets.Create(w.Context(), s, metav1.CreateOptions{})
	w.must(err)
}

// root is a client as quorate itself is one.
func (w *world) root() *clientv3.Client {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	w.Cleanup(func() { _ = client.Close() })
	return client
}

// expectUser wants a user to come in with a password, and to read and write a key, or not.
func (w *world) expectUser(user, password, key string, reads, writes bool) {
	w.Helper()
	var got string
	err := lab.Poll(w.Context(), holdLimit, func(ctx context.Context) (bool, error) {
		read, wrote := w.tryUser(ctx, user, password, key)
		got = fmt.Sprintf("reads %t, writes %t", read, wrote)
		return read == reads && wrote == writes, nil
	})
	if err != nil {
		w.Fatalf("user %s with the password that is tried: %s %s, want %t, %t", user, key, got, reads, writes)
	}
}

func (w *world) tryUser(ctx context.Context, user, password, key string) (reads, writes bool) {
	client, err := w.cluster.DialAs(ctx, w.namespace, name, user, password)
	if err != nil {
		return false, false
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, errRead := client.Get(ctx, key)
	_, errWrite := client.Put(ctx, key, "x")
	return errRead == nil, errWrite == nil
}
