package scheduler_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/schema"
)

// backsUp is a daemon with a cluster that it does not run, and a namespace shop with the
// Secret keys.
func backsUp(t *testing.T, o reconciler.Options) (*reconciler.Reconciler, *reconcilertest.FakeAPI) {
	t.Helper()
	api := reconcilertest.NewFakeAPI()
	secret := clustertest.StoreSecret("keys", backuptest.S3Secret())
	if _, err := api.CoreV1().Secrets("shop").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o.Drivers = clouds.Drivers()
	r := reconciler.New(api, standAlone{&reconcilertest.FakeEtcd{Database: backuptest.Snapshot(8 << 10)}}, eventrecord.NewFakeRecorder(1000),
		report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(&bytes.Buffer{}, nil)), o)
	t.Cleanup(r.Close)
	return r, api
}

// asked makes the passes by which a backup to a destination is begun, and returns what the
// record says then, and how many Jobs there are.
func asked(t *testing.T, r *reconciler.Reconciler, api *reconcilertest.FakeAPI, name string, to schema.Destination) (problem string, jobs int) {
	t.Helper()
	q := clustertest.Once(func(b *schema.BackupRequest) {
		b.Source.ClusterName, b.Source.ClusterURL, b.Destination = "", "http://127.0.0.1:1", to
	})
	q.Metadata.Name = name
	for range 2 { // the first one makes the record
		if _, err := r.Scheduler.Pass(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	rec, _, err := r.Scheduler.ReadRequest(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	made, err := api.BatchV1().Jobs("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rec.Problem, len(made.Items)
}

// A backup that no validation has seen does not go where the daemon's identity would be
// taken, neither by the daemon nor by a Job.
func TestNoBackupSendsTheDaemonsIdentityElsewhere(t *testing.T) {
	a := backuptest.StartAttacker(t)
	for _, runner := range []scheduler.Runner{scheduler.InDaemon, scheduler.InJob} {
		r, api := backsUp(t, reconciler.Options{BackupRunner: runner, InsecureStores: true})
		n := 0
		for template, parameter := range a.Steering("{{ .UID }}.db") {
			n++
			to := schema.Destination{ObjectURLTemplate: template, PodAccess: schema.PodAccess{ServiceAccountName: "writer"}}
			problem, jobs := asked(t, r, api, "backup-"+strings.Repeat("i", n), to)
			if !strings.Contains(problem, "is not used: the parameter "+parameter+" ") || jobs > 0 || a.Asked() > 0 {
				t.Fatalf("%s: %q, %d Jobs, the attacker was asked %d times", template, problem, jobs, a.Asked())
			}
		}
	}
}

// A Job is given no URL that the daemon itself would not use, also where the store has
// answered before.
func TestAJobIsGivenNoURLThatTheDaemonRefuses(t *testing.T) {
	server := backuptest.StartS3(t)
	r, api := backsUp(t, reconciler.Options{BackupRunner: scheduler.InJob, InsecureStores: true})
	to := schema.Destination{ObjectURLTemplate: server.URL("{{ .UID }}.db"), Credentials: schema.CredentialsSpec{SecretName: "keys"}}
	if problem, jobs := asked(t, r, api, "allowed", to); problem != "" || jobs != 1 {
		t.Fatalf("%q, %d Jobs", problem, jobs)
	}
	if known := r.Scheduler.Stores.Calls.Known(server.URL("1.db")); !known.Answers {
		t.Fatalf("%+v", known)
	}
	r.Scheduler.Stores.Insecure = false
	problem, jobs := asked(t, r, api, "refused", to)
	if !strings.Contains(problem, "--insecure-stores") || jobs != 1 {
		t.Errorf("%q, %d Jobs", problem, jobs)
	}
}

// A drill that Git asks for again reads nothing elsewhere, either.
func TestNoDrillSendsTheDaemonsIdentityElsewhere(t *testing.T) {
	found := func() corev1.ContainerStatus { return corev1.ContainerStatus{} }
	const url = "s3://backups/1.db?region=us-east-1&endpoint=https://attacker.example"
	drilled(t, found, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(), 3*time.Hour)
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill, func(s *schema.BackupScheduleSpec) { s.Verify.Again = url }), time.Minute)
		if k := w.RequestRecord(clustertest.Nightly()); !strings.Contains(k.DrillProblem, "is not used: the parameter endpoint ") || len(reconcilertest.JobsOf(w)) > 0 {
			t.Errorf("%+v, %d Jobs", k, len(reconcilertest.JobsOf(w)))
		}
	})
}

// A backup that an earlier quorate has begun elsewhere is not asked for there.
func TestABackupThatWasBegunElsewhereIsNotAskedFor(t *testing.T) {
	a := backuptest.StartAttacker(t)
	r, api := backsUp(t, reconciler.Options{})
	to := schema.Destination{ObjectURLTemplate: "s3://backups/{{ .UID }}.db?region=us-east-1&endpoint=http://" + a.Address}
	if problem, _ := asked(t, r, api, "begun", to); problem == "" {
		t.Fatal("it was taken")
	}
	maps := api.CoreV1().ConfigMaps("shop")
	q := clustertest.Once()
	q.Metadata.Name = "begun"
	cm, err := maps.Get(t.Context(), scheduler.RecordName(q), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for key, text := range cm.Data {
		at := `"begun": {"url": "` + strings.Replace(to.ObjectURLTemplate, "{{ .UID }}", "1", 1) + `", "to": {"template": "` + to.ObjectURLTemplate + `"}, "specHash": "", "at": "2026-01-01T00:00:00Z", "since": "2026-01-01T00:00:00Z"},`
		cm.Data[key] = strings.Replace(text, "{", "{"+at, 1)
	}
	if _, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if problem, _ := asked(t, r, api, "begun", to); !strings.Contains(problem, "is not used: the parameter endpoint ") || a.Asked() > 0 {
		t.Errorf("%q, %d requests", problem, a.Asked())
	}
}
