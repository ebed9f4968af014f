package observe_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// withUsers lets the file say who may do what.
func withUsers(c *schema.EtcdCluster) {
	c.Spec.Auth = &schema.AuthSpec{
		Enabled: new(true),
		Roles:   []schema.AuthRole{{Name: "rw", Permissions: []schema.AuthPermission{{Access: schema.AuthReadWrite, Prefix: new("/orders/")}}}},
		Users:   []schema.AuthUser{{Name: "app", Roles: []string{"rw"}}, {Name: "reports", PasswordSecret: schema.AuthPasswordSecret{Name: "reports"}}},
	}
}

// passwordSecret is the Secret of the user reports.
func passwordSecret(password string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reports", Labels: labels}, Data: map[string][]byte{"password": []byte(password)}}
}

var mayBeUsed = map[string]string{naming.LabelUse: naming.UsePasswords}

// 150, 151: users come to be as the file says, and another password in the Secret in etcd.
func TestUsersComeToBe(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		withUsers(&w.Wish.EtcdCluster)
		w.Wish.Digest = ""
		for range 20 {
			w.MustPass()
		}
		if w.Etcd.Users.Enabled || w.Etcd.Users.Users["app"] == nil {
			t.Fatalf("without the Secret: %+v", w.Etcd.Users)
		}
		if why := w.Look().Observed.Auth.NoSecret["reports"]; !strings.Contains(why, "create the Secret shop/reports with the key password and the label quorate.dev/use=passwords") {
			t.Errorf("the reason is %q", why)
		}
		w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), passwordSecret("first", map[string]string{naming.LabelUse: naming.UseBackups}))
		if why := w.Look().Observed.Auth.NoSecret["reports"]; !strings.Contains(why, "label secret reports quorate.dev/use=passwords") {
			t.Errorf("for another use: %q", why)
		}
		w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), passwordSecret("", mayBeUsed))
		if why := w.Look().Observed.Auth.NoSecret["reports"]; !strings.Contains(why, "has nothing at the key password") {
			t.Errorf("an empty one: %q", why)
		}
		w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), passwordSecret("first", mayBeUsed))
		w.UntilIdle()
		if !w.Etcd.Users.Enabled || w.Etcd.Passwords["reports"] != "first" || !slices.Equal(w.Etcd.Users.Users["root"], []string{"root"}) {
			t.Fatalf("with it: %+v, %d passwords", w.Etcd.Users, len(w.Etcd.Passwords))
		}

		// At rest etcd is asked once a minute.
		asked := w.Etcd.Questions
		for range 5 {
			w.Look()
		}
		if n := w.Etcd.Questions - asked; n > 1 {
			t.Errorf("at rest it was asked %d times in a moment", n)
		}
		// An answer by a clock that is set back is no answer of this minute.
		w.Look()
		w.R.Observer.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		asked = w.Etcd.Questions
		w.Look()
		if n := w.Etcd.Questions - asked; n != 1 {
			t.Errorf("after the clock was set back it was asked %d times", n)
		}
		w.R.Observer.Now = time.Now
		w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), passwordSecret("second", mayBeUsed))
		time.Sleep(2 * time.Minute)
		w.UntilIdle()
		if w.Etcd.Passwords["reports"] != "second" {
			t.Error("the new password was not set")
		}
		for _, secret := range []string{"first", "second"} {
			if strings.Contains(w.Log.String(), secret) {
				t.Errorf("the log has the password %s", secret)
			}
		}
	})
}

// 545: the certificate and the pods must let quorate in.
func TestNoAccessIsSeen545(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		withUsers(&w.Wish.EtcdCluster)
		w.Wish.Digest = ""
		if why := w.Look().Observed.Auth.NoAccess; why != "" {
			t.Fatalf("all is well: %q", why)
		}
		pod, _ := w.Contents()["Pod orders-1"].(*corev1.Pod)
		pod = pod.DeepCopy()
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return arg == "--client-cert-auth=true" })
		}
		w.Put(reconcilertest.PodsResource(), pod)
		w.Settle()
		if why := w.Look().Observed.Auth.NoAccess; !strings.Contains(why, "the pod orders-1 runs etcd without --client-cert-auth=true") {
			t.Errorf("a pod that asks for none: %q", why)
		}
		server, _ := w.Contents()["Secret orders-server"].(*corev1.Secret)
		client, _ := w.Contents()["Secret orders-client"].(*corev1.Secret)
		client = client.DeepCopy()
		client.Data = server.Data
		w.Put(corev1.SchemeGroupVersion.WithResource("secrets"), client)
		w.Settle()
		if why := w.Look().Observed.Auth.NoAccess; !strings.Contains(why, `the certificate in the Secret orders-client has the common name "orders-server"`) {
			t.Errorf("another name: %q", why)
		}
	})
}

// 540: whether authentication is on is asked of a cluster whose file says nothing of it where
// that decides, each time, and else not at all.
func TestAuthIsAskedWhereItDecides540(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		asked := w.Etcd.Questions
		if auth := w.Look().Observed.Auth; auth != nil || w.Etcd.Questions != asked {
			t.Errorf("asked although nothing is due: %+v", auth)
		}
		w.Etcd.Users = state.Auth{Enabled: true}
		w.Wish.Spec.Version, w.Wish.Digest = "3.5.35", ""
		for range 3 {
			if auth := w.Look().Observed.Auth; auth == nil || !auth.Enabled {
				t.Errorf("from 3.4 to 3.5: %+v", auth)
			}
		}
		if n := w.Etcd.Questions - asked; n < 3 {
			t.Errorf("asked %d times, and each time counts", n)
		}
	}, clustertest.SetVersion("3.4.45"))
}

// 585: so it is where members are to speak plain text, in which quorate has no name.
func TestAuthIsAskedBeforePlainText(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Users = state.Auth{Enabled: true}
		w.Wish.Spec.TLS.Mode, w.Wish.Digest = schema.TLSDisabled, ""
		if auth := w.Look().Observed.Auth; auth == nil || !auth.Enabled {
			t.Errorf("from TLS to plain text: %+v", auth)
		}
		for range 5 {
			w.MustPass()
		}
		if v := w.Look(); v.Observed.Transport.Also != "" {
			t.Errorf("members listen to %+v", v.Observed.Transport)
		}
	})
}

// 594: and where another program issues the certificate by which quorate comes in.
func TestAuthIsAskedBeforeAnotherIssuer(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.Etcd.Users = state.Auth{Enabled: true}
		w.Wish.Spec.TLS.Mode, w.Wish.Digest = schema.TLSSecrets, ""
		w.Wish.Spec.TLS.Secrets = schema.TLSSecretNames{Server: "their-server", Peer: "their-peer", Client: "their-client"}
		if auth := w.Look().Observed.Auth; auth == nil || !auth.Enabled {
			t.Errorf("from quorate's certificates to another program's: %+v", auth)
		}
	})
}

// 549: without TLS quorate comes in with a password. It keeps it before etcd is asked to take it, and
// alone after, so that it is let in whatever becomes of the Secret.
func TestRootComesInByAPassword(t *testing.T) {
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		withUsers(&w.Wish.EtcdCluster)
		w.Wish.Spec.Auth.Users = w.Wish.Spec.Auth.Users[1:]
		w.Wish.Spec.Auth.RootPasswordSecret.Name = "root"
		w.Wish.Digest = ""
		secrets := corev1.SchemeGroupVersion.WithResource("secrets")
		put := func(password string) {
			secret := passwordSecret(password, mayBeUsed)
			secret.Name = "root"
			w.Put(secrets, secret)
		}
		kept := func() []string {
			secret, _ := w.Contents()["Secret orders-root"].(*corev1.Secret)
			if secret == nil {
				return nil
			}
			var all []string
			for _, p := range etcd.Passwords(secret.Data) {
				all = append(all, string(p))
			}
			return all
		}
		w.Put(secrets, passwordSecret("theirs", mayBeUsed))
		for range 20 {
			w.MustPass()
		}
		if a := w.Look().Observed.Auth; a.Enabled || !strings.Contains(a.NoSecret["root"], "create the Secret shop/root with the key password") || w.Etcd.Users.Users["root"] != nil {
			t.Fatalf("without the Secret: %+v", a)
		}
		put("first")
		w.UntilIdle()
		if !w.Etcd.Users.Enabled || w.Etcd.Passwords["root"] != "first" || !slices.Equal(kept(), []string{"first"}) {
			t.Fatalf("with it: %+v, kept %q", w.Etcd.Users, kept())
		}
		put("second")
		time.Sleep(2 * time.Minute)
		w.UntilIdle()
		if w.Etcd.Passwords["root"] != "second" || !slices.Equal(kept(), []string{"second"}) {
			t.Errorf("another one: etcd has %q, kept are %q", string(w.Etcd.Passwords["root"]), kept())
		}

		// Etcd refuses the next one: it is kept beside, and the Secret goes.
		put("third")
		w.Etcd.Refuse = errors.New("no leader")
		set := action.ChangeAuth{AuthChange: state.AuthChange{Op: state.SetPassword, User: "root"}}
		if err := w.Do(set); err == nil || !slices.Equal(kept(), []string{"third", "second"}) {
			t.Errorf("while etcd refuses it: %v, kept are %q", err, kept())
		}
		w.Etcd.Refuse = nil
		must(t, w.API.Tracker().Delete(secrets, "shop", "root"))
		time.Sleep(2 * time.Minute)
		if a := w.Look().Observed.Auth; a.Problem != "" || !strings.Contains(a.NoSecret["root"], "create the Secret shop/root") {
			t.Errorf("without the Secret quorate is not let in, or does not tell: %+v", a)
		}
		// It was taken after all, and noted neither before nor after.
		w.Etcd.Passwords["root"] = "third"
		put("fourth")
		time.Sleep(2 * time.Minute)
		w.UntilIdle()
		if w.Etcd.Passwords["root"] != "fourth" || !slices.Equal(kept(), []string{"fourth"}) {
			t.Errorf("in the end etcd has %q, and kept are %q", string(w.Etcd.Passwords["root"]), kept())
		}
		// One that is right and not kept alone is set once more, so that the next one can come.
		must(t, w.API.Tracker().Delete(secrets, "shop", "orders-root"))
		time.Sleep(2 * time.Minute)
		w.UntilIdle()
		if !slices.Equal(kept(), []string{"fourth"}) {
			t.Errorf("after the loss of what was kept, %q is", kept())
		}
		theirs, _ := w.Contents()["Secret orders-root"].(*corev1.Secret)
		theirs = theirs.DeepCopy()
		theirs.Labels = nil
		w.Put(secrets, theirs)
		put("fifth")
		if err := w.Do(set); err == nil || !strings.Contains(err.Error(), "the Secret shop/orders-root, in which quorate keeps the password of user root, is not quorate's") || w.Etcd.Passwords["root"] != "fourth" {
			t.Errorf("at the place of another one's: %v", err)
		}
		for _, secret := range []string{"first", "second", "third", "fourth", "fifth"} {
			if strings.Contains(w.Log.String(), secret) {
				t.Errorf("the log has the password %s", secret)
			}
		}
	}, clustertest.DisableTLS)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
