package scheduler_test

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/reconciler/etcd/memberstest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/schema"
)

// stranger is a real cluster that quorate does not run, and the backup of it.
func stranger(t *testing.T, s *etcdtest.Servers, secrets ...*corev1.Secret) (*reconciler.Reconciler, desired.Backup, *bytes.Buffer) {
	t.Helper()
	api := reconcilertest.NewFakeAPI()
	for _, secret := range secrets {
		if _, err := api.CoreV1().Secrets("shop").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	dir, log := t.TempDir(), &bytes.Buffer{}
	r := reconciler.New(api, etcd.New(), eventrecord.NewFakeRecorder(100), report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(log, nil)), reconciler.Options{
		BackupURL: "file://" + dir + "/{{ .Name }}/{{ .Version }}-{{ .UID }}.db?root=" + dir,
	})
	t.Cleanup(r.Close)
	_, port, err := net.SplitHostPort(s.Members[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	q := clustertest.Once()
	q.Spec.Source.ClusterName, q.Spec.Source.ClusterURL = "", "http://127.0.0.1:"+port
	if s.Secret != nil {
		q.Spec.Source.ClusterURL = "https://localhost:" + port
	}
	return r, q, log
}

// 95, 116: a cluster that quorate does not run is backed up through its URL, with
// the certificates of a Secret.
func TestClusterByURLIsBackedUp(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 3, true)
	s.MustPut("colour", "green")
	secret := clustertest.StoreSecret("elsewhere", s.Secret.Data)
	r, q, log := stranger(t, s, secret)
	q.Spec.Source.TLS.SecretName = "elsewhere"
	done := passes(t, r, q).Last
	if done == nil {
		t.Fatal(log)
	}
	m, err := backup.Store{}.Verify(t.Context(), done.URL)
	if err != nil {
		t.Fatal(err)
	}
	round := memberstest.Round(t, s, true)
	if m.ClusterID != round.ClusterID || m.Member != "orders-0" || m.EtcdVersion != strings.TrimPrefix(etcdtest.V36, "v") || m.Name != "before-sale" ||
		m.Hash != round.Members[0].Hash || m.HashRevision != round.Members[0].HashRevision || m.Revision < 2 || m.Keys != 1 {
		t.Errorf("%+v\n%+v", m, round)
	}
	if !strings.Contains(m.Object, "/before-sale/3.6.16-") {
		t.Errorf("stored at %s", m.Object)
	}
	for key, value := range s.Secret.Data {
		if strings.Contains(log.String(), strings.Split(string(value), "\n")[1]) {
			t.Errorf("the log has %s", key)
		}
	}
}

// A cluster by URL that cannot be reached as it should is waited for, with the
// reason, and no failure of the backup.
func TestClusterByURLIsAwaited(t *testing.T) {
	s := etcdtest.Start(t, etcdtest.V36, 1, true)
	named := func(data map[string][]byte) *corev1.Secret {
		return clustertest.StoreSecret("elsewhere", data)
	}
	for name, c := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"no Secret":         {nil, "the Secret shop/elsewhere of source.tls does not exist"},
		"another's Secret":  {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "elsewhere"}, Data: s.Secret.Data}, "kubectl -n shop label secret elsewhere quorate.dev/use=backups"},
		"no certificate":    {named(map[string][]byte{naming.AuthorityCertKey: s.Secret.Data[naming.AuthorityCertKey]}), "the members cannot be listed"},
		"a bad authority":   {named(map[string][]byte{naming.AuthorityCertKey: []byte("x")}), "has no usable ca.crt"},
		"a bad certificate": {named(map[string][]byte{corev1.TLSCertKey: []byte("x")}), "has no usable tls.crt and tls.key"},
	} {
		t.Run(name, func(t *testing.T) {
			var secrets []*corev1.Secret
			if c.secret != nil {
				secrets = append(secrets, c.secret)
			}
			r, q, log := stranger(t, s, secrets...)
			q.Spec.Source.TLS.SecretName = "elsewhere"
			if k := passes(t, r, q); k.Last != nil || k.Failures != 0 || !strings.Contains(log.String(), c.want) {
				t.Errorf("%+v\n%s", k, log)
			}
		})
	}
}

// A cluster's URL says how it is reached; what is no URL is an error, and half a
// certificate is no certificate.
func TestAStrangerIsReachedByItsURL(t *testing.T) {
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		for text, want := range map[string]struct {
			address string
			secured bool
		}{
			"http://etcd.example.com":     {"etcd.example.com:2379", false},
			"http://etcd.example.com:1":   {"etcd.example.com:1", false},
			"https://etcd.example.com":    {"etcd.example.com:2379", true},
			"https://[2001:db8::1]:2380/": {"[2001:db8::1]:2380", true},
		} {
			q := clustertest.Once()
			q.Spec.Source = schema.BackupSource{ClusterURL: text}
			e, awaited, err := w.R.Scheduler.ExternalEndpoint(w.Context(), q)
			if err != nil || awaited != "" || e.Address != want.address || (e.TLS != nil) != want.secured {
				t.Errorf("%s: %+v, %q, %v", text, e, awaited, err)
			}
		}
		q := clustertest.Once()
		q.Spec.Source = schema.BackupSource{ClusterURL: "http://a b"}
		if _, _, err := w.R.Scheduler.FindExternal(w.Context(), q); err == nil || !strings.Contains(err.Error(), "clusterURL is not a URL") {
			t.Errorf("%v", err)
		}
	})
	for _, half := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if _, problem := etcd.ExternalTLS(&corev1.Secret{Data: map[string][]byte{half: []byte("x")}}, "etcd.example.com"); !strings.Contains(problem, "has no usable") {
			t.Errorf("with %s alone: %q", half, problem)
		}
	}
}

// passes makes some passes, and returns the record.
func passes(t *testing.T, r *reconciler.Reconciler, q desired.Backup) scheduler.Record {
	t.Helper()
	for range 4 {
		if _, err := r.Scheduler.Pass(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	rec, _, err := r.Scheduler.ReadRequest(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
