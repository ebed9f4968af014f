package reconcilertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// EditSet does to the StatefulSet what kubectl edit does: an Update by another manager.
func (w *World) EditSet(change func(*appsv1.StatefulSet)) {
	w.Helper()
	set := w.Set()
	change(set)
	if _, err := w.API.AppsV1().StatefulSets("shop").Update(w.Context(), set, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		w.Fatal(err)
	}
}

// As lets another daemon act on the same Kubernetes cluster from now on.
func (w *World) As(o state.Owner) *reconciler.Reconciler {
	w.Helper()
	options := w.R.Options
	options.Owner = o
	was := w.R
	now := reconciler.New(w.API, w.members, w.events, report.NewMetrics(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(w.Log, nil)), options)
	// The world ends the one that it knows last.
	w.Cleanup(func() {
		was.Close()
		now.Close()
	})
	if err := now.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.R = now
	w.API.ClearActions()
	return was
}

// Owner is the owner that the record names.
func (w *World) Owner() string {
	w.Helper()
	if o := record.OwnerOf(w.Record()); o != nil {
		return o.String()
	}
	return ""
}

// AsksRestore lets Git ask for a restore.
func (w *World) AsksRestore(url string) {
	w.Sign(func(_ context.Context, _ backup.Store, objectURL string, _ time.Duration) (string, error) {
		return "https://store/" + objectURL + "&signature=x", nil
	})
	w.Wish.Restore = &desired.Restore{Name: "back", SpecHash: "r1", Source: schema.RestoreSource{ObjectURL: url}}
	w.Etcd.Members = w.Etcd.Members[:1]
}

// Begins is the action that begins the restore.
func (w *World) Begins() action.BeginRestore {
	return action.BeginRestore{
		Restore: "back", SpecHash: "r1", SourceHash: schema.SourceHash(w.Wish.Restore.Source), Source: desired.SourceText(w.Wish.Restore.Source),
		Member: "orders-0", Version: "3.6.16",
	}
}

// AdmitsClients reports whether the Service for clients is there.
func (w *World) AdmitsClients() bool {
	_, there := w.Contents()["Service orders-client"]
	return there
}

// Look is one observation, which must not fail.
func (w *World) Look() *observe.View {
	w.Helper()
	v, err := w.R.Observer.Observe(w.Context(), w.Wish)
	if err != nil {
		w.Fatal(err)
	}
	return v
}

// Rendered are the objects that a view wants.
func (w *World) Rendered(v *observe.View) manifests.Manifests {
	w.Helper()
	m, err := v.Manifests()
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// Do executes an action on what is seen now.
func (w *World) Do(action action.Action) error {
	w.Helper()
	err := w.R.Executor.Execute(w.Context(), w.Look(), action)
	synctest.Wait()
	return err
}

// MustDo is a do that must not fail.
func (w *World) MustDo(action action.Action) {
	w.Helper()
	if err := w.Do(action); err != nil {
		w.Fatal(err)
	}
}

// Contents is all that the API server stores of the resources that quorate
// writes, by resource and name.
func (w *World) Contents() map[string]runtime.Object {
	w.Helper()
	all := map[string]runtime.Object{}
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	for kind, resource := range map[string]apischema.GroupVersionResource{
		"ConfigMap": core.WithResource("configmaps"), "Secret": core.WithResource("secrets"), "Service": core.WithResource("services"),
		"Pod": core.WithResource("pods"), "StatefulSet": apps.WithResource("statefulsets"),
		"PodDisruptionBudget": {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	} {
		list, err := w.API.Tracker().List(resource, apischema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: kind}, "shop")
		if err != nil {
			w.Fatal(err)
		}
		_ = metaEach(list, func(name string, o runtime.Object) { all[kind+" "+name] = o })
	}
	return all
}

// BornOn lets the record say on which line the cluster began.
func (w *World) BornOn(line string) {
	w.Helper()
	w.edit(func(r *record.Record) { r.BornOn = line })
	w.Settle()
}

// edit changes the cluster's record.
func (w *World) edit(change func(*record.Record)) {
	w.Helper()
	_, err := (record.Store{Kube: w.API}).Update(w.Context(), w.Wish.EtcdCluster, w.R.Options.Owner, func(r *record.Record) error {
		change(r)
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

// Disks gives every claim a volume of 8Gi, of a class that lets it grow or not.
func (w *World) Disks(grow bool) {
	w.Helper()
	w.Put(storagev1.SchemeGroupVersion.WithResource("storageclasses"), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "standard"}, AllowVolumeExpansion: &grow,
	})
	for _, claim := range w.Claims() {
		full := clustertest.Claim(claim.Name, nil)
		claim.Spec, claim.Status = full.Spec, full.Status
		w.Put(ClaimsResource(), claim)
	}
	w.Settle()
}

// Provision gives every claim the size that it asks for.
func (w *World) Provision() {
	w.Helper()
	for _, claim := range w.Claims() {
		claim.Status.Capacity = claim.Spec.Resources.Requests
		w.Put(ClaimsResource(), claim)
	}
	w.Settle()
}

func (w *World) Claims() []*corev1.PersistentVolumeClaim {
	w.Helper()
	list, err := w.API.CoreV1().PersistentVolumeClaims("shop").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var claims []*corev1.PersistentVolumeClaim
	for i := range list.Items {
		claims = append(claims, &list.Items[i])
	}
	return claims
}

// Sizes are what the claims ask for.
func (w *World) Sizes() string {
	w.Helper()
	var sizes []string
	for _, claim := range w.Claims() {
		size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		sizes = append(sizes, size.String())
	}
	return strings.Join(sizes, " ")
}

// PodUIDs are the UIDs of the pods.
func (w *World) PodUIDs() string {
	w.Helper()
	var uids []string
	for _, name := range []string{"orders-0", "orders-1", "orders-2"} {
		uids = append(uids, string(w.Pod(name).UID))
	}
	return strings.Join(uids, " ")
}

// CountDeep counts the rounds with hashes from now on.
func (w *World) CountDeep() *int {
	deep := 0
	w.Etcd.Change = func(r *state.Round) {
		if r.Deep {
			deep++
		}
	}
	return &deep
}

// WantHold wants the next pass to hold the cluster, with a part of its sentence.
func (w *World) WantHold(kind decision.HoldKind, rule, part string) {
	w.Helper()
	w.MustPass()
	p, err := w.R.Plan(w.Context(), w.Wish)
	if err != nil {
		w.Fatal(err)
	}
	if p.Hold == nil || p.Hold.Kind != kind || p.Hold.Rule != rule || !strings.Contains(p.Hold.String(), part) {
		w.Fatalf("want %s by %s: %s; have\n%s", kind, rule, part, p.Text())
	}
}

// Signs lets the store, a directory, give out URLs.
func (w *World) Signs() {
	w.Sign(func(_ context.Context, _ backup.Store, objectURL string, _ time.Duration) (string, error) {
		return "https://store/" + objectURL + "&signature=x", nil
	})
}

// runDrills is the controller of the drills' Jobs, and their pods.
func (w *World) runDrills() {
	w.Helper()
	if w.Drills == nil {
		return
	}
	for _, job := range JobsOf(w) {
		s := w.Drills()
		if s.Name == "" || job.Labels[naming.LabelDrillOf] == "" {
			continue
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: "shop", Labels: map[string]string{batchv1.JobNameLabel: job.Name}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{s}
		if s.State.Terminated.ExitCode != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		if _, err := w.API.CoreV1().Pods("shop").Create(w.Context(), pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			w.Fatal(err)
		}
	}
}

// WantNoDrill wants nothing to be left of a drill.
func (w *World) WantNoDrill() {
	w.Helper()
	if all := JobsOf(w); len(all) > 0 {
		w.Errorf("there is Job %s", all[0].Name)
	}
	secrets, err := w.API.CoreV1().Secrets("shop").List(w.Context(), metav1.ListOptions{LabelSelector: naming.LabelDrillOf})
	if err != nil || len(secrets.Items) > 0 {
		w.Errorf("there are Secrets %v, %v", secrets.Items, err)
	}
}

// JobTakes does what the pod of the Job would, and ends it.
func (w *World) JobTakes(job batchv1.Job) {
	w.Helper()
	var url string
	var m backup.Manifest
	for _, arg := range job.Spec.Template.Spec.Containers[0].Args {
		if text, ok := strings.CutPrefix(arg, "--url="); ok {
			url = text
		}
		if text, ok := strings.CutPrefix(arg, "--manifest="); ok {
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				w.Fatal(err)
			}
		}
	}
	if _, err := (backup.Store{}).Save(w.Context(), url, bytes.NewReader(w.Etcd.Database), m); err != nil {
		w.Fatal(err)
	}
	w.JobEndsWith(job, batchv1.JobComplete)
}

func (w *World) JobEndsWith(job batchv1.Job, how batchv1.JobConditionType) {
	w.Helper()
	job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
	if _, err := w.API.BatchV1().Jobs("shop").UpdateStatus(w.Context(), &job, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// Notes changes the cluster's record, as quorate would.
func (w *World) Notes(change func(*record.Record)) {
	w.Helper()
	rec := w.Record()
	change(&rec)
	records := w.API.CoreV1().ConfigMaps("shop")
	cm, err := records.Get(w.Context(), naming.Record(w.Wish.Metadata.Name), metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	cm.Data = rec.ConfigMap(w.Wish.EtcdCluster).Data
	if _, err := records.Update(w.Context(), cm, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// Times are those of the backups in the store, as "01-02 15:04".
func (w *World) Times() []string {
	w.Helper()
	var list []string
	for _, m := range w.Manifests() {
		list = append(list, m.Time.Format("01-02 15:04"))
	}
	return list
}

func (w *World) WantTimes(want ...string) {
	w.Helper()
	if got := w.Times(); !slices.Equal(got, want) {
		w.Errorf("backups at %q, want %q\n%s", got, want, w.Log)
	}
}

func (w *World) MustPassRequests(q desired.Backup, during time.Duration) {
	w.Helper()
	if err := w.PassRequests(q, during); err != nil {
		w.Fatalf("%v\n%s", err, w.Log)
	}
}

// OnceElsewhere is once with another place.
func (w *World) OnceElsewhere() desired.Backup {
	return clustertest.Once(func(s *schema.BackupRequest) {
		s.Destination.ObjectURLTemplate = "file://" + w.Backups + "/elsewhere/{{ .Name }}-{{ .UID }}.db?root=" + w.Backups
	})
}

// PassRequests makes passes over a request for a time, and returns the last error.
func (w *World) PassRequests(q desired.Backup, during time.Duration) (last error) {
	w.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); {
		wait, err := w.R.Scheduler.Pass(w.Context(), q)
		if err != nil {
			last = err
			wait = time.Second
		}
		w.Settle()
		time.Sleep(min(max(wait, time.Millisecond), time.Until(end)))
	}
	return last
}

// Manifests are those of the backups in the store, oldest first.
func (w *World) Manifests() []backup.Manifest {
	w.Helper()
	var list []backup.Manifest
	err := filepath.WalkDir(w.Backups, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, backup.ManifestSuffix) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var m backup.Manifest
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		list = append(list, m)
		_, err = backup.Store{}.Verify(w.Context(), "file://"+strings.TrimSuffix(path, backup.ManifestSuffix)+"?root="+w.Backups)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	slices.SortFunc(list, func(a, b backup.Manifest) int { return a.Time.Compare(b.Time) })
	return list
}

// RequestRecord is what the API server has of a request's record.
func (w *World) RequestRecord(q desired.Backup) (rec scheduler.Record) {
	w.Helper()
	cm, err := w.API.CoreV1().ConfigMaps("shop").Get(w.Context(), scheduler.RecordName(q), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return rec
	}
	if err == nil {
		err = json.Unmarshal([]byte(cm.Data[guard.RecordFile]), &rec)
	}
	if err != nil {
		w.Fatal(err)
	}
	return rec
}

// Restart lets another process continue.
func (w *World) Restart() { w.As(w.R.Options.Owner); w.R.SetDesired([]desired.Cluster{w.Wish}) }

func (w *World) EtcdCalls(prefix string) []string {
	w.Etcd.mu.Lock()
	defer w.Etcd.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.Etcd.Calls), func(c string) bool { return !strings.HasPrefix(c, prefix) })
}

// WantMetric wants a line of the metrics.
func (w *World) WantMetric(line string) {
	w.Helper()
	families, err := w.Registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			text := fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue())
			if text == line {
				return
			}
			if strings.HasPrefix(text, "quorate_backup") {
				lines = append(lines, text)
			}
		}
	}
	w.Errorf("no metric %s in\n%s", line, strings.Join(lines, "\n"))
}

// KillAt ends the process, by its ctx, at a write of a record.
func (w *World) KillAt(n int, after bool) context.Context {
	ctx, kill := context.WithCancel(w.Context())
	writes := 0
	w.API.PrependReactor("*", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if v := action.GetVerb(); ctx.Err() != nil || v != "create" && v != "update" {
			return false, nil, nil
		}
		if writes++; writes != n {
			return false, nil, nil
		}
		kill()
		return !after, nil, context.Canceled
	})
	return ctx
}

// PassUntilKilled makes passes until the process is killed, or all is done.
func (w *World) PassUntilKilled(ctx context.Context, q desired.Backup) {
	for range 20 {
		_, _ = w.R.Scheduler.Pass(ctx, q)
		w.Settle()
		if ctx.Err() != nil {
			break
		}
		time.Sleep(state.MinRequeue)
	}
	w.Restart()
}

// KilledWhileTaking lets quorate be killed between the first byte of a backup and its
// end.
func (w *World) KilledWhileTaking(q desired.Backup) {
	w.Helper()
	ctx, kill := context.WithCancel(w.Context())
	w.Etcd.Stream = func(context.Context) io.Reader {
		kill()
		return Failing{context.Canceled}
	}
	w.PassUntilKilled(ctx, q)
	w.Etcd.Stream = nil
}

// OneBackup wants what another process makes of it to be one backup.
func (w *World) OneBackup(q desired.Backup) {
	w.Helper()
	if err := w.PassRequests(q, time.Hour); err != nil {
		w.Fatal(err)
	}
	list := w.Manifests()
	if len(list) != 1 {
		w.Fatalf("%d backups", len(list))
	}
	rec := w.RequestRecord(q)
	if rec.Last == nil || rec.Last.SHA256 != list[0].SHA256 || rec.Last.Object != list[0].Object || rec.Begun != nil || rec.Failures != 0 {
		w.Errorf("%+v", rec)
	}
}

// StatusYAML is everything that is known, as published.
func (w *World) StatusYAML() string {
	w.Helper()
	list, _ := w.R.Statuses()
	text, err := yaml.Marshal(list)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// Status is what is known of one object.
func (w *World) Status(kind, name string) schema.Status {
	w.Helper()
	list, _ := w.R.Statuses()
	for _, s := range list {
		if s.Kind == kind && s.Metadata.Name == name {
			return s
		}
	}
	w.Fatalf("nothing is known of %s %s:\n%s", kind, name, w.StatusYAML())
	return schema.Status{}
}

func (w *World) WantPhase(kind, name string, want schema.Phase, reason string) {
	w.Helper()
	if phase, why := w.Status(kind, name).Phase(); phase != want || why.Reason != reason {
		w.Errorf("%s %s is %s because of %s (%s), want %s because of %s", kind, name, phase, why.Reason, why.Message, want, reason)
	}
}

// Restless lets every number that etcd measures rise with each round.
func (w *World) Restless() {
	rounds := int64(0)
	w.Etcd.Change = func(r *state.Round) {
		rounds++
		for i := range r.Members {
			m := &r.Members[i]
			m.Revision += rounds
			m.CommitIndex, m.AppliedIndex = m.CommitIndex+uint64(rounds), m.AppliedIndex+uint64(rounds)
			m.DBSize, m.DBInUse = m.DBSize+rounds<<12, m.DBInUse+rounds<<12
			m.Snapshots += rounds
			m.Term += uint64(rounds)
			if m.Problem != "" {
				m.Problem = fmt.Sprintf("read tcp 10.0.0.1:%d->10.0.0.2:2379: i/o timeout", 40000+rounds)
			}
		}
	}
}

// PutTheirs has another program create the Secrets.
func (w *World) PutTheirs(secrets map[string]*corev1.Secret) {
	w.Helper()
	for name, s := range secrets {
		created, err := w.API.CoreV1().Secrets("shop").Create(w.Context(), s, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
		secrets[name] = created
	}
	w.API.ClearActions()
}

// WantDialledWith wants the members to be dialled with the certificate of a
// Secret, under the names that the server's certificate has.
func (w *World) WantDialledWith(secret *corev1.Secret) {
	w.Helper()
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		w.Fatal(err)
	}
	endpoints := w.Look().Endpoints
	if len(endpoints) != 3 {
		w.Fatalf("endpoints %v", endpoints)
	}
	for _, e := range endpoints {
		config, err := e.TLS()
		if err != nil {
			w.Fatal(err)
		}
		if !config.Certificates[0].Leaf.Equal(pair.Leaf) || config.ServerName != e.Member+".orders-peers.shop.svc" {
			w.Errorf("%s is dialled as %s with %v", e.Member, config.ServerName, config.Certificates[0].Leaf.Subject)
		}
	}
}

// Reconfigure restarts quorate with other options: what Git says, and what the caches
// hold, is the same.
func (w *World) Reconfigure(edit func(*reconciler.Options)) {
	was, o := w.R, w.R.Options
	edit(&o)
	w.R = was.With(o, w.members, w.events, was.Reporter.Metrics, was.Reporter.Log)
	if clusters := desired.Values(was.Desired()); len(clusters) > 0 {
		w.R.SetDesired(clusters)
	}
	if backups := slices.Collect(maps.Values(was.Backups())); len(backups) > 0 {
		w.R.SetBackups(backups)
	}
	w.Sign(was.Executor.Stores.Sign)
	w.Cleanup(was.Close)
}

// Ask has quorate ask other members.
func (w *World) Ask(members reconciler.Members) {
	w.members = members
	w.R.Observer.Members, w.R.Executor.Members, w.R.Scheduler.Members = members, members, members
}

// Sign has restores read backups by other URLs than those of the store.
func (w *World) Sign(by func(context.Context, backup.Store, string, time.Duration) (string, error)) {
	w.R.Executor.Stores.Sign, w.R.Scheduler.Stores.Sign = by, by
}

// Pass makes one pass and lets the world answer it. It must leave what Git says as it
// is: the next commit has parts of it, too.
func (w *World) Pass() (time.Duration, error) {
	w.Helper()
	before := w.json(w.Wish)
	wait, err := w.R.Pass(w.Context(), w.Wish)
	if after := w.json(w.Wish); !bytes.Equal(before, after) {
		w.Errorf("the pass has changed\n%s\nto\n%s", before, after)
	}
	w.Settle()
	return wait, err
}

func (w *World) json(v any) []byte {
	w.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		w.Fatal(err)
	}
	return text
}

// MustPass is a pass that must not fail. It returns how long until the next.
func (w *World) MustPass() time.Duration {
	w.Helper()
	wait, err := w.Pass()
	if err != nil && !errors.Is(err, queue.ErrNotYet) {
		w.Fatal(err)
	}
	return wait
}

// Settle lets the controllers act and the caches catch up.
func (w *World) Settle() {
	w.Helper()
	for w.Control() {
	}
	w.runDrills()
	synctest.Wait()
}

// UntilIdle makes passes until the cluster is what Git says.
func (w *World) UntilIdle() {
	w.Helper()
	w.Until(func(p decision.Plan) bool { return p.Idle() })
}

// Until makes passes until the plan is as wanted.
func (w *World) Until(wanted func(decision.Plan) bool) decision.Plan {
	w.Helper()
	var p decision.Plan
	for range 200 {
		wait := w.MustPass()
		var err error
		if p, err = w.R.Plan(w.Context(), w.Wish); err != nil {
			w.Fatal(err)
		}
		if wanted(p) {
			return p
		}
		time.Sleep(wait)
	}
	w.Fatalf("after 200 passes the plan is still\n%s\nand the log says\n%s", p.Text(), w.Log)
	return p
}

// Lines are the values of one attribute of the log lines with a message.
func (w *World) Lines(message, attribute string) []string {
	w.Helper()
	var list []string
	for line := range strings.Lines(w.Log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			w.Fatal(err)
		}
		if entry["msg"] == message {
			list = append(list, fmt.Sprint(entry[attribute]))
		}
	}
	return list
}

func (w *World) DrainEvents() []string {
	var list []string
	for len(w.events.Events) > 0 {
		list = append(list, <-w.events.Events)
	}
	return list
}

// Commit changes the desired state, as a new commit would.
func (w *World) Commit(edits ...func(*schema.EtcdCluster)) {
	for _, edit := range edits {
		edit(&w.Wish.EtcdCluster)
	}
	w.Wish.Commit += "+"
}

func (w *World) Set() *appsv1.StatefulSet {
	w.Helper()
	object, err := w.API.Tracker().Get(SetsResource(), "shop", "orders")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	set, _ := object.(*appsv1.StatefulSet)
	return set
}

// Scale sets the number of replicas as another writer.
func (w *World) Scale(replicas int32, manager string) {
	w.Helper()
	set := w.Set()
	set.Spec.Replicas = &replicas
	if _, err := w.API.AppsV1().StatefulSets("shop").Update(w.Context(), set, metav1.UpdateOptions{FieldManager: manager}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func (w *World) Pod(name string) *corev1.Pod {
	w.Helper()
	object, err := w.API.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "shop", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	pod, _ := object.(*corev1.Pod)
	return pod
}

// Record is what the API server has of the cluster's record.
func (w *World) Record() record.Record {
	w.Helper()
	object, err := w.API.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), "shop", "orders-record")
	if err != nil {
		w.Fatal(err)
	}
	cm, _ := object.(*corev1.ConfigMap)
	r, err := record.Read(cm)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// VersionOf is what the member's pod runs, "" while it does not.
func (w *World) VersionOf(member string) string {
	pod := w.Pod(member)
	if pod == nil || pod.Status.PodIP == "" || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil {
		return ""
	}
	return pod.Annotations[naming.AnnotationVersion]
}

// Put writes past the API, as another component's request would.
func (w *World) Put(resource apischema.GroupVersionResource, object runtime.Object) {
	w.Helper()
	o, err := meta.Accessor(object)
	if err != nil {
		w.Fatal(err)
	}
	w.API.stamp(o)
	if _, err = w.API.Tracker().Get(resource, o.GetNamespace(), o.GetName()); apierrors.IsNotFound(err) {
		err = w.API.Tracker().Create(resource, object, o.GetNamespace())
	} else if err == nil {
		// What quorate has deleted since then stays gone.
		if err = w.API.Tracker().Update(resource, object, o.GetNamespace()); apierrors.IsNotFound(err) {
			err = nil
		}
	}
	if err != nil {
		w.Fatal(err)
	}
}

// mostPods is more than any test asks for.
const mostPods = 12

// Control is one step of the StatefulSet controller and the kubelets, as the
// controller does it for Parallel with a partition. It reports whether it moved.
func (w *World) Control() bool {
	w.Helper()
	set := w.Set()
	if set == nil || set.Spec.Replicas == nil {
		return false
	}
	before := set.Status.DeepCopy()
	update := w.Revision(set)
	if set.Status.CurrentRevision == "" {
		set.Status.CurrentRevision = update
	}
	set.Status.UpdateRevision, set.Status.ObservedGeneration = update, set.Generation
	moved, updated := false, 0
	// Those below may be gone already: quorate deletes pods, too.
	for i := int(*set.Spec.Replicas); i < mostPods; i++ {
		if name := fmt.Sprintf("orders-%d", i); w.Pod(name) != nil {
			w.DeletePod(name)
			moved = true
		}
	}
	set.Status.ReadyReplicas = 0
	for i := range int(*set.Spec.Replicas) {
		pod := w.Pod(fmt.Sprintf("orders-%d", i))
		switch {
		case pod == nil:
			w.startPod(set, i)
			moved = true
		case pod.Labels[appsv1.StatefulSetRevisionLabel] == update && pods.Ready(pod):
			updated++
		}
		if pod != nil && pods.Ready(pod) {
			set.Status.ReadyReplicas++
		}
	}
	if !moved {
		moved = w.replacePod(set, update)
	}
	if updated == int(*set.Spec.Replicas) {
		set.Status.CurrentRevision = update
	}
	if !equality.Semantic.DeepEqual(before, &set.Status) {
		w.Put(SetsResource(), set)
		moved = true
	}
	return moved
}

// Revision stores the template's ControllerRevision, and returns its name.
func (w *World) Revision(set *appsv1.StatefulSet) string {
	w.Helper()
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"template": set.Spec.Template}})
	if err != nil {
		w.Fatal(err)
	}
	h := fnv.New32a()
	_, _ = h.Write(text)
	name := fmt.Sprintf("orders-%x", h.Sum32())
	resource := appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
	if _, err := w.API.Tracker().Get(resource, "shop", name); err == nil {
		return name
	}
	w.Put(resource, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: set.Spec.Template.Labels},
		Data:       runtime.RawExtension{Raw: text},
	})
	return name
}

// startPod starts a pod from the template that its ordinal is due.
func (w *World) startPod(set *appsv1.StatefulSet, ordinal int) {
	w.Helper()
	name, template := set.Status.UpdateRevision, set.Spec.Template
	if ordinal < int(observe.Partition(set)) {
		name, template = set.Status.CurrentRevision, w.templateOf(set.Status.CurrentRevision)
	}
	member := naming.Member(set.Name, int32(ordinal))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: member, Namespace: "shop", Annotations: template.Annotations,
			Labels: naming.OverlayMaps(template.Labels, map[string]string{appsv1.StatefulSetRevisionLabel: name, appsv1.StatefulSetPodNameLabel: member}),
		},
		Spec: template.Spec,
	}
	etcd := corev1.ContainerStatus{Name: naming.ContainerEtcd, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
	ready := corev1.ConditionTrue
	if waiting, broken := w.Broken[pod.Annotations[naming.AnnotationVersion]]; broken {
		etcd.State, ready = corev1.ContainerState{Waiting: &waiting}, corev1.ConditionFalse
	}
	pod.Status = corev1.PodStatus{
		PodIP: fmt.Sprintf("10.0.0.%d", ordinal), ContainerStatuses: []corev1.ContainerStatus{etcd},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()}},
	}
	if w.Starting != nil {
		w.Starting(pod)
	}
	w.Put(PodsResource(), pod)
	w.claim(pod, template.Labels)
}

func (w *World) templateOf(revision string) corev1.PodTemplateSpec {
	w.Helper()
	object, err := w.API.Tracker().Get(appsv1.SchemeGroupVersion.WithResource("controllerrevisions"), "shop", revision)
	if err != nil {
		w.Fatal(err)
	}
	r, _ := object.(*appsv1.ControllerRevision)
	var set appsv1.StatefulSet
	if err := json.Unmarshal(r.Data.Raw, &set); err != nil {
		w.Fatal(err)
	}
	return set.Spec.Template
}

// replacePod deletes the outdated pod with the highest ordinal that the
// partition lets go, when all that were updated are ready.
func (w *World) replacePod(set *appsv1.StatefulSet, update string) bool {
	w.Helper()
	for i := int(*set.Spec.Replicas) - 1; i >= int(observe.Partition(set)); i-- {
		pod := w.Pod(fmt.Sprintf("orders-%d", i))
		if pod.Labels[appsv1.StatefulSetRevisionLabel] != update {
			w.DeletePod(pod.Name)
			return true
		}
		if !pods.Ready(pod) {
			return false
		}
	}
	return false
}

func (w *World) DeletePod(name string) {
	w.Helper()
	w.release(name)
	if err := w.API.Tracker().Delete(PodsResource(), "shop", name); err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
}
