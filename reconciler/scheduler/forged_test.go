package scheduler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/jobs/jobstest"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/scheduler"
)

// forges writes fields into the record of a request, as whoever may write ConfigMaps can.
func forges(w *reconcilertest.World, q desired.Backup, fields map[string]any) {
	w.Helper()
	edited(w, q, func(text string) string {
		var rec map[string]any
		if err := json.Unmarshal([]byte(text), &rec); err != nil {
			w.Fatal(err)
		}
		maps.Copy(rec, fields)
		out, err := json.Marshal(rec)
		if err != nil {
			w.Fatal(err)
		}
		return string(out)
	})
}

// theirs is a backup that cluster bank/users has at a place below the directory of all backups,
// and the files of it.
func theirs(w *reconcilertest.World, at string) (objectURL string, files []string) {
	w.Helper()
	path := filepath.Join(w.Backups, at)
	objectURL = "file://" + path + "?root=" + w.Backups
	m := backup.Manifest{Namespace: "bank", Name: "users", ClusterID: "c9", EtcdVersion: "3.6.16", Revision: 3, Time: time.Now().UTC()}
	if _, err := (backup.Store{}).Save(w.Context(), objectURL, bytes.NewReader(backuptest.Snapshot(8<<10)), m); err != nil {
		w.Fatal(err)
	}
	return objectURL, []string{path, path + backup.ManifestSuffix}
}

// signed notes what is signed.
func signed(w *reconcilertest.World) *[]string {
	var urls []string
	w.Sign(func(_ context.Context, _ backup.Store, objectURL string, _ time.Duration) (string, error) {
		urls = append(urls, objectURL)
		return "https://store/" + objectURL + "&signature=x", nil
	})
	return &urls
}

func wantFiles(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
}

// passed is a drill that finds the backup good.
func passed() corev1.ContainerStatus {
	return jobstest.Ended(jobs.DrillContainer, 0, `{"keys":3,"revision":7}`)
}

const theirBackup = "bank/users/20260101T000000Z-0a1b2c.db"

// 470: a record that names a backup of somebody else has it neither signed nor restored:
// not one at another place, nor another cluster's at the same place, nor one that is
// reached by another way than Git says. It is told what is wrong, and the next backup is
// restored on trial again.
func TestAForgedDrillGivesNothingOut(t *testing.T) {
	for name, c := range map[string]struct{ at, url, want string }{
		"another's place":                {at: theirBackup, want: "Git puts those of shop/orders at"},
		"another's, at the same place":   {at: "shop/orders/20260101T000000Z-0a1b2c.db", want: "says that it is of bank/users"},
		"another's place, by dots":       {at: theirBackup, url: "/shop/orders/../../" + theirBackup, want: "Git puts those of shop/orders at"},
		"another's place, by other dots": {at: theirBackup, url: "/shop/orders/%2e%2e/%2e%2e/" + theirBackup, want: "Git puts those of shop/orders at"},
		"beside the place":               {at: "shop/orders-2/1.db", want: "Git puts those of shop/orders at"},
	} {
		for _, field := range []string{"drill", "last"} {
			t.Run(name+", as "+field, func(t *testing.T) {
				drilled(t, passed, func(w *reconcilertest.World) {
					q := clustertest.Nightly(scheduler.EveryDrill)
					w.MustPassRequests(q, 3*time.Hour)
					urls := signed(w)
					objectURL, files := theirs(w, c.at)
					if c.url != "" {
						objectURL = "file://" + w.Backups + c.url + "?root=" + w.Backups
					}
					now := time.Now().UTC()
					forges(w, q, map[string]any{field: map[string]any{
						"job": "nightly-drill-00112233", "url": objectURL, "object": desired.WithoutQuery(objectURL), "backup": now, "time": now, "since": now,
					}})
					w.MustPassRequests(q, 20*time.Second)
					k := w.RequestRecord(q)
					if len(*urls) > 0 || k.Drill != nil || k.DrillFailures != 1 || !strings.Contains(k.DrillProblem, c.want) || !strings.Contains(k.DrillProblem, "spec.verify.again") {
						t.Errorf("signed %q, %+v", *urls, k)
					}
					w.WantNoDrill()
					wantFiles(t, files...)
					if field == "last" {
						return // it stays the last one until the next
					}
					w.MustPassRequests(q, 24*time.Hour)
					k = w.RequestRecord(q)
					if k.DrillFailures != 0 || !k.Proven.Backup.Equal(k.Last.Time) || slices.ContainsFunc(*urls, func(u string) bool { return strings.Contains(u, c.at) }) {
						t.Errorf("signed %q, %+v", *urls, k)
					}
				})
			})
		}
	}
}

// 470: how a store is reached, Git says: what a record has of that is not used.
func TestAForgedWayIsNotGone(t *testing.T) {
	drilled(t, passed, func(w *reconcilertest.World) {
		q := clustertest.Nightly(scheduler.EveryDrill)
		w.MustPassRequests(q, 3*time.Hour)
		urls := signed(w)
		now := time.Now().UTC()
		forges(w, q, map[string]any{"drill": map[string]any{
			"job": "nightly-drill-00112233", "url": w.Manifests()[0].Object + "?root=/&endpoint=http://169.254.169.254", "backup": now, "since": now,
		}})
		w.MustPassRequests(q, time.Minute)
		if want := w.Manifests()[0].Object + "?root=" + w.Backups; len(*urls) != 1 || (*urls)[0] != want {
			t.Errorf("signed %q, want %s", *urls, want)
		}
	})
}

// 470: while a drill runs, a record that is changed to name another's backup has no URL of
// that signed, and no verdict noted in its manifest.
func TestADrillThatIsForgedMeanwhileIsNotNoted(t *testing.T) {
	running := true
	says := func() corev1.ContainerStatus {
		if running {
			return corev1.ContainerStatus{}
		}
		return jobstest.Ended(jobs.DrillContainer, 0, `{"problem":"the hash differs","revision":7}`)
	}
	drilled(t, says, func(w *reconcilertest.World) {
		q := clustertest.Nightly(scheduler.EveryDrill)
		w.MustPassRequests(q, 2*time.Hour+10*time.Second)
		urls := signed(w)
		objectURL, _ := theirs(w, theirBackup)
		d := *w.RequestRecord(q).Drill
		forges(w, q, map[string]any{"drill": map[string]any{"job": d.Job, "url": objectURL, "backup": d.Backup, "since": d.Since}})
		if err := w.PassRequests(q, 10*time.Minute); err == nil || !strings.Contains(err.Error(), "Git puts those of shop/orders at") || len(*urls) > 0 {
			t.Errorf("signed %q: %v", *urls, err)
		}
		running = false
		w.Settle()
		w.MustPassRequests(q, 20*time.Second)
		for _, m := range w.Manifests() {
			if m.Namespace == "bank" && m.Drill.Result != "" {
				t.Errorf("their manifest says %+v", m.Drill)
			}
		}
		if k := w.RequestRecord(q); !strings.Contains(k.DrillProblem, "Git puts those of shop/orders at") {
			t.Errorf("%+v", k)
		}
	})
}

// 471: of what a record says was begun nothing is removed or believed that is not where Git
// puts the backups of this object, by the name of one, and by its manifest. It is told once and
// forgotten, and a backup is taken.
func TestAForgedBeginningRemovesNothing(t *testing.T) {
	const own = "shop/orders/20260101T000000Z-0a1b2c.db"
	for name, c := range map[string]struct {
		at   string
		good bool
		url  string
	}{
		"another's backup":                      {at: theirBackup, good: true},
		"what another takes just now":           {at: theirBackup},
		"another's manifest":                    {at: theirBackup, good: true, url: theirBackup + backup.ManifestSuffix},
		"another's backup at the same place":    {at: own, good: true},
		"its manifest":                          {at: own, good: true, url: own + backup.ManifestSuffix},
		"a file of this directory, no backup":   {at: "shop/orders/keep.db"},
		"what another takes, reached by dots":   {at: theirBackup, url: "shop/orders/../../" + theirBackup},
		"what another takes, by escaped dots":   {at: theirBackup, url: "shop/orders/%2e%2e/%2e%2e/" + theirBackup},
		"what another takes, by a longer name":  {at: own + ".old", url: own + ".old"},
		"what another takes, by another bucket": {at: "other/" + own},
	} {
		for kind, q := range map[string]desired.Backup{"a backup": clustertest.Once(), "a schedule": clustertest.Nightly()} {
			t.Run(name+", of "+kind, func(t *testing.T) {
				reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
					w.MustPassRequests(clustertest.Nightly(), 3*time.Hour)
					w.MustPassRequests(clustertest.Once(), time.Minute)
					files := []string{filepath.Join(w.Backups, c.at)}
					if c.good {
						_, files = theirs(w, c.at)
					} else {
						if err := os.MkdirAll(filepath.Dir(files[0]), 0o700); err != nil {
							t.Fatal(err)
						}
						if err := os.WriteFile(files[0], []byte("half"), 0o600); err != nil {
							t.Fatal(err)
						}
					}
					url := c.url
					if url == "" {
						url = c.at
					}
					now, before := time.Now().UTC(), w.RequestRecord(q).Last.Object
					forges(w, q, map[string]any{"done": nil, "begun": map[string]any{
						"url": "file://" + w.Backups + "/" + url + "?root=" + w.Backups, "specHash": q.Hash(), "at": now, "since": now,
						"to": map[string]any{"template": w.R.Options.BackupURL},
					}})
					w.MustPassRequests(q, 25*time.Hour)
					wantFiles(t, files...)
					k := w.RequestRecord(q)
					if k.Begun != nil || k.Failures != 0 || k.Last.Object == before || !strings.Contains(k.Last.Object, "/shop/orders/") || strings.HasSuffix(k.Last.Object, c.at) {
						t.Errorf("%+v\n%s", k, w.Log)
					}
					if told := w.Lines("backup given up", "url"); len(told) != 1 {
						t.Errorf("told of %q", told)
					}
				})
			})
		}
	}
}

// 471: while the file of the cluster has errors, nobody knows where its backups belong: what
// was begun is left until that is known.
func TestWhatWasBegunWaitsForTheFileOfItsCluster(t *testing.T) {
	reconcilertest.BackedUp(t, func(w *reconcilertest.World) {
		goesTo(w, madeDirectory(w, "own"))
		q := clustertest.Once()
		w.KilledWhileTaking(q)
		bad := w.Wish
		bad.Problems = []string{"bad"}
		w.R.SetDesired([]desired.Cluster{bad})
		w.MustPassRequests(q, time.Hour)
		if said := w.Lines("backup waits", "reason"); len(said) != 1 || !strings.Contains(said[0], "the file of shop/orders has errors") || w.RequestRecord(q).Begun == nil {
			t.Errorf("%q, %+v", said, w.RequestRecord(q))
		}
		w.R.SetDesired([]desired.Cluster{w.Wish})
		w.MustPassRequests(q, time.Hour)
		if k := w.RequestRecord(q); k.Begun != nil || k.Last == nil || len(w.Lines("backup given up", "url")) > 0 {
			t.Errorf("%+v", k)
		}
	})
}

// 472: what a record says that quorate cannot have written ends no process, and is told once.
func TestAForgedRecordEndsNoProcess(t *testing.T) {
	now := time.Now().UTC()
	drill := map[string]any{"job": "before-sale-drill-00112233", "url": "file:///x/1.db", "backup": now, "since": now}
	for name, c := range map[string]struct {
		q      desired.Backup
		fields map[string]any
		told   string
	}{
		"a drill of a backup":            {clustertest.Once(), map[string]any{"drill": drill}, "a restore drill of what is no schedule"},
		"a drill that failed, of one":    {clustertest.Once(), map[string]any{"drillFailures": 3}, "a restore drill of what is no schedule"},
		"failures below zero":            {clustertest.Once(), map[string]any{"failures": -3, "done": nil}, ""},
		"a schedule's below zero":        {clustertest.Nightly(scheduler.EveryDrill), map[string]any{"failures": -3, "drillFailures": -3}, ""},
		"no last one, and a drill":       {clustertest.Nightly(scheduler.EveryDrill), map[string]any{"last": nil, "drill": map[string]any{}}, `a restore drill by a Job ""`},
		"an empty beginning":             {clustertest.Nightly(), map[string]any{"begun": map[string]any{}}, ""},
		"a backup by any Job":            {clustertest.Nightly(), map[string]any{"begun": map[string]any{"job": "victim"}}, `a backup by a Job "victim"`},
		"done, and drilled, and nothing": {clustertest.Nightly(scheduler.EveryDrill), map[string]any{"drilled": map[string]any{}, "proven": map[string]any{}, "last": map[string]any{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			drilled(t, passed, func(w *reconcilertest.World) {
				w.MustPassRequests(c.q, 3*time.Hour)
				forges(w, c.q, c.fields)
				w.DrainEvents()
				w.MustPassRequests(c.q, 25*time.Hour)
				told := w.Lines("record names what quorate has not made", "named")
				if c.told == "" && len(told) > 0 || c.told != "" && (len(told) != 1 || !strings.Contains(told[0], c.told)) {
					t.Errorf("told of %q", told)
				}
				if k := w.RequestRecord(c.q); k.Begun != nil || k.Drill != nil || k.Last == nil || c.q.Schedule != nil && k.Failures != 0 {
					t.Errorf("%+v", k)
				}
			})
		})
	}
}

// planted is a Job with a pod that has ended, and a Secret, of one name: with the marks of
// the Jobs of q, or without.
func planted(w *reconcilertest.World, q desired.Backup, name, label string, marked bool) {
	w.Helper()
	_, live, err := w.R.Scheduler.ReadRequest(w.Context(), q)
	if err != nil {
		w.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{label: q.Metadata.Name}}
	if marked {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: live.Name, UID: live.UID}}
	}
	if _, err := w.API.BatchV1().Jobs("shop").Create(w.Context(), &batchv1.Job{ObjectMeta: *meta.DeepCopy()}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.API.CoreV1().Secrets("shop").Create(w.Context(), &corev1.Secret{ObjectMeta: *meta.DeepCopy(), Data: map[string][]byte{"password": []byte("x")}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// wantPlanted wants both to be what they were.
func wantPlanted(w *reconcilertest.World, name string) {
	w.Helper()
	if _, err := w.API.BatchV1().Jobs("shop").Get(w.Context(), name, metav1.GetOptions{}); err != nil {
		w.Error(err)
	}
	if s, err := w.API.CoreV1().Secrets("shop").Get(w.Context(), name, metav1.GetOptions{}); err != nil || len(s.Data) != 1 || string(s.Data["password"]) != "x" || s.Annotations[naming.AnnotationOffered] != "" {
		w.Errorf("%+v, %v", s, err)
	}
}

// 473: a Job and a Secret that a record names are followed, written and removed only where
// the name is one that quorate gives, and both carry its label and go with this record.
func TestAForgedNameReachesNoOtherJob(t *testing.T) {
	for name, c := range map[string]struct {
		job    string
		marked bool
	}{
		"another name":                      {"victim", false},
		"another name, marked":              {"victim", true},
		"a longer name, marked":             {"before-sale-backup-00112233-2", true},
		"a name of its own, of nobody":      {"before-sale-backup-00112233", false},
		"a name of the backup of a sibling": {"before-backup-00112233", false},
	} {
		t.Run(name+", for a backup", func(t *testing.T) {
			byJobs(t, func(w *reconcilertest.World) {
				q := clustertest.Once()
				w.MustPassRequests(q, time.Minute)
				w.JobTakes(reconcilertest.JobsOf(w)[0])
				w.MustPassRequests(q, time.Minute)
				planted(w, q, c.job, naming.LabelBackupOf, c.marked)
				now := time.Now().UTC()
				forges(w, q, map[string]any{"done": nil, "begun": map[string]any{"url": w.Manifests()[0].Object, "specHash": q.Hash(), "at": now, "since": now, "job": c.job}})
				w.MustPassRequests(q, time.Minute)
				if k := w.RequestRecord(q); k.Begun != nil && k.Begun.Job == c.job {
					t.Errorf("it is waited for: %+v", k)
				}
				w.MustPassRequests(q, time.Hour)
				wantPlanted(w, c.job)
			})
		})
		t.Run(name+", for a drill", func(t *testing.T) {
			job := strings.NewReplacer("before-sale-backup", "nightly-drill", "before-backup", "night-drill").Replace(c.job)
			drilled(t, passed, func(w *reconcilertest.World) {
				q := clustertest.Nightly(scheduler.EveryDrill)
				w.MustPassRequests(q, 3*time.Hour)
				urls := signed(w)
				planted(w, q, job, naming.LabelDrillOf, c.marked)
				now := time.Now().UTC()
				forges(w, q, map[string]any{"drill": map[string]any{"job": job, "url": w.Manifests()[0].Object, "backup": now, "since": now}})
				w.MustPassRequests(q, time.Hour)
				wantPlanted(w, job)
				if k := w.RequestRecord(q); k.Drill != nil || len(*urls) > 0 {
					t.Errorf("signed %q, %+v", *urls, k)
				}
			})
		})
	}
}

// 473: the Secret of a drill's name that is not quorate's is not written, nor removed.
func TestADrillWritesNoOtherSecret(t *testing.T) {
	drilled(t, passed, func(w *reconcilertest.World) {
		q := clustertest.Nightly(scheduler.EveryDrill)
		w.MustPassRequests(q, 3*time.Hour)
		const name = "nightly-drill-00112233"
		planted(w, q, name, naming.LabelDrillOf, false)
		if err := w.API.BatchV1().Jobs("shop").Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		now := time.Now().UTC()
		forges(w, q, map[string]any{"drill": map[string]any{"job": name, "url": w.Manifests()[0].Object, "backup": now, "since": now}})
		w.MustPassRequests(q, time.Hour)
		if s, err := w.API.CoreV1().Secrets("shop").Get(w.Context(), name, metav1.GetOptions{}); err != nil || len(s.Data) != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		if k := w.RequestRecord(q); !strings.Contains(k.DrillProblem, "a Secret of this name exists") {
			t.Errorf("%+v", k)
		}
	})
}

// 473, I3: what is removed of a drill is exactly what was looked at.
func TestWhatADrillLeavesIsRemovedByItsUID(t *testing.T) {
	drilled(t, passed, func(w *reconcilertest.World) {
		w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 3*time.Hour)
		deleted := 0
		for _, a := range w.API.Actions() {
			if d, ok := a.(clienttesting.DeleteActionImpl); ok && (d.Resource.Resource == "jobs" || d.Resource.Resource == "secrets") {
				deleted++
				if p := d.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID == "" {
					t.Errorf("%s %s is deleted whatever its UID", d.Resource.Resource, d.Name)
				}
			}
		}
		if deleted != 2 {
			t.Errorf("%d objects are deleted", deleted)
		}
	})
}

// 474: an image is made of a release and of nothing else that a manifest may say.
func TestAManifestNamesNoImage(t *testing.T) {
	for i, version := range []string{"latest", "3.6.16@sha256:" + strings.Repeat("0a", 32), "3.6.16-evil", "", "3.6", "3.6.16 ", "../evil:1"} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			drilled(t, passed, func(w *reconcilertest.World) {
				q := clustertest.Nightly()
				w.MustPassRequests(q, 3*time.Hour)
				path := strings.TrimPrefix(w.Manifests()[0].Object, "file://") + backup.ManifestSuffix
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				var m map[string]any
				if err := json.Unmarshal(text, &m); err != nil {
					t.Fatal(err)
				}
				m["etcdVersion"] = version
				if text, err = json.Marshal(m); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
				urls := signed(w)
				w.MustPassRequests(clustertest.Nightly(scheduler.EveryDrill), 10*time.Second)
				if k := w.RequestRecord(q); len(*urls) > 0 || len(reconcilertest.JobsOf(w)) > 0 || k.DrillFailures == 0 || !strings.Contains(k.DrillProblem, "is not an etcd release") {
					t.Errorf("signed %q, %+v", *urls, k)
				}
			})
		})
	}
}
