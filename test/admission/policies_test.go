package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/statuses"
	"github.com/quorate/quorate/schema"
)

// 522: what people and Kubernetes have to do with records they can do: approve a held commit,
// repair a record with the right for it, delete a namespace, and all else with their own ConfigMaps.
func TestWhatIsNotQuoratesToRefuse(t *testing.T) {
	const ns = "people"
	h := newHouse(t)
	h.furnish(ns)
	h.refuse(attacksOnRecords(ns)[:1])
	del := func(ns, name string) func(context.Context, kubernetes.Interface) error {
		return func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps(ns).Delete(ctx, name, metav1.DeleteOptions{DryRun: dryRun})
		}
	}
	restored := createConfigMap(ns, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lost-record", Labels: own()}, Data: map[string]string{"record.json": "{}"}})
	repairs := []attack{
		{what: "edits a record", user: repairer, try: patch(ns, ownRecord, `{"data":{"record.json":"{\"x\":1}"}}`)},
		{what: "restores a record", user: repairer, try: restored},
		{what: "deletes a record", user: repairer, try: del(ns, "nightly-backup-schedule")},
		{what: "deletes the commit in force", user: repairer, try: del(quorateSystem, inForce)},
	}
	for _, a := range repairs {
		a.policy = "quorate-records"
		h.refuse([]attack{a})
	}
	h.bind(ns, ofAll, "ClusterRole", "edit")
	override := object(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding", "", "quorate-override", binding(repairer, "ClusterRole", "quorate-override"))
	h.apply(override)
	t.Cleanup(func() { h.remove(override) })
	for _, a := range append(repairs,
		attack{what: "approves a commit", user: tenant, try: patch(quorateSystem, inForce, `{"metadata":{"annotations":{"quorate.dev/approve":"a..b"}}}`)},
		attack{what: "takes an approval back", user: tenant, try: patch(quorateSystem, inForce, `{"metadata":{"annotations":{"quorate.dev/approve":null}}}`)},
		attack{what: "migrates the storage of a record", user: tenant, try: patch(ns, ownRecord, `{}`)},
		attack{what: "has a ConfigMap that is called a record", user: tenant, try: createConfigMap(ns, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "my-record"}, Data: map[string]string{"song": "x"}})},
		attack{what: "changes its own ConfigMap", user: tenant, try: patch(ns, "theirs", `{"data":{"x":"y"},"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"}}}`)},
		attack{what: "deletes its own ConfigMap", user: tenant, try: del(ns, "theirs")},
		attack{what: "deletes what is in a namespace", user: ofNamespaces, try: del(ns, ownRecord)},
		attack{what: "deletes what belonged to an object", user: ofOwners, try: del(ns, ownRecord)},
		attack{what: "deletes for all controllers", user: ofAll, try: del(ns, ownRecord)},
	) {
		client := clientOf(t, a.user)
		h.await(a.user+" "+a.what, func() error { return a.try(t.Context(), client) }, allowed)
	}
}

// What quorate has to do it may do: offer backups by Secrets that carry one label, delete the claim
// that somebody has labelled anew, write a record that was restored, keep what people have set, and label what others have changed.
func TestWhatThePoliciesLetQuorateDo(t *testing.T) {
	const ns = "mine"
	h := newHouse(t)
	h.furnish(ns)
	h.refuse(attacksWithTheToken(ns)[:1])
	admin := h.kube
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-client", Labels: own()},
		Spec:       corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"}, Ports: []corev1.ServicePort{{Port: 2379}}},
	}
	_, err := admin.CoreV1().Services(ns).Create(t.Context(), service, metav1.CreateOptions{})
	h.must(err)
	unlabelled := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "orders-peers"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 2380}}}}
	_, err = admin.CoreV1().Services(ns).Create(t.Context(), unlabelled, metav1.CreateOptions{FieldManager: naming.FieldManager})
	h.must(err)
	pod := harmless()
	mount(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}})(&pod)
	set := statefulSet(pod, own())
	set.Name, set.Spec.Replicas = "changed", new(int32(0))
	_, err = admin.AppsV1().StatefulSets(ns).Create(t.Context(), set, metav1.CreateOptions{})
	h.must(err)
	_, err = admin.CoreV1().PersistentVolumeClaims(ns).Patch(t.Context(), "theirs", types.MergePatchType, []byte(`{"metadata":{"labels":{"quorate.dev/cluster":"orders","app.kubernetes.io/managed-by":"x"}}}`), metav1.PatchOptions{})
	h.must(err)
	restored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "weekly-backup-schedule", Labels: map[string]string{"app.kubernetes.io/managed-by": "quorate", naming.LabelSchedule: "weekly"}}}
	_, err = admin.CoreV1().ConfigMaps(ns).Create(t.Context(), restored, metav1.CreateOptions{})
	h.must(err)
	offer := func(label string) func(context.Context, kubernetes.Interface) error {
		return func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "offer", Labels: map[string]string{label: "x"}}}, metav1.CreateOptions{DryRun: dryRun})
			return err
		}
	}
	change := metav1.PatchOptions{DryRun: dryRun, FieldManager: naming.FieldManager}
	client := clientOf(t, quorate)
	for what, try := range map[string]func(context.Context, kubernetes.Interface) error{
		"offers a backup to a restore": offer(naming.LabelRestoreOf),
		"offers a backup to a drill":   offer(naming.LabelDrillOf),
		"deletes a claim of a cluster": func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().PersistentVolumeClaims(ns).Delete(ctx, "theirs", metav1.DeleteOptions{DryRun: dryRun})
		},
		"writes a record that a person has restored": relabel(ns, restored.Name, restored.Labels),
		"keeps the external IPs of a Service": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Services(ns).Patch(ctx, "orders-client", types.MergePatchType, []byte(`{"spec":{"selector":{"app":"etcd"}}}`), change)
			return err
		},
		"changes its own Service that has lost its labels": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Services(ns).Patch(ctx, "orders-peers", types.MergePatchType, []byte(`{"spec":{"selector":{"app":"etcd"}}}`), change)
			return err
		},
		"labels a StatefulSet that others have changed": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.AppsV1().StatefulSets(ns).Patch(ctx, "changed", types.MergePatchType, []byte(`{"metadata":{"labels":{"quorate.dev/phase":"Ready"}}}`), change)
			return err
		},
		"runs a Job as the account of podAccess": createJob(ns, func(p *corev1.PodSpec) { p.ServiceAccountName = "writer" }),
		"runs members as the default account":    createSet(ns, func(p *corev1.PodSpec) { p.ServiceAccountName = "default" }),
	} {
		h.await("quorate "+what, func() error { return try(t.Context(), client) }, allowed)
	}
}

// Where quorate has another namespace, the policies follow it as the comment of the kustomization
// says. Where they do not, quorate writes no record, and is told which account they are for.
func TestThePoliciesAreForTheAccountOfQuorate(t *testing.T) {
	const ns, elsewhere = "followed", "system:serviceaccount:etcd:quorate"
	h := emptyHouse(t)
	h.namespace(ns)
	record := createConfigMap(ns, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "orders-record", Labels: own()}, Data: map[string]string{"record.json": "{}"}})
	theirs := createConfigMap(ns, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}})
	for _, c := range []struct {
		what, more string
		may, other string
		words      []string
	}{
		{"with the transformer", "transformers: [" + deployFrom + "/admission/account]\n", elsewhere, quorate, []string{"as " + elsewhere}},
		{"without it", "", quorate, elsewhere, []string{"as " + quorate}},
	} {
		t.Run(c.what, func(t *testing.T) {
			h := &house{T: t, kube: h.kube, dynamic: h.dynamic}
			for _, o := range deployed(t, overlayOf(t, "namespace: etcd\nresources: ["+deployFrom+"/base, "+deployFrom+"/admission]\n"+c.more)) {
				switch o.GetKind() {
				case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
					o.SetNamespace("") // kustomize takes them for namespaced
					h.apply(o)
					t.Cleanup(func() { h.remove(o) })
				case "ClusterRole":
					h.apply(o)
				}
			}
			for _, user := range []string{quorate, elsewhere} {
				h.bind(ns, user, "ClusterRole", "quorate")
			}
			may, other := clientOf(t, c.may), clientOf(t, c.other)
			h.await(c.other+" writes a record", func() error { return record(t.Context(), other) }, refusedBy("quorate-records", c.words...))
			h.await(c.may+" writes a record", func() error { return record(t.Context(), may) }, allowed)
			h.await(c.may+" writes what is not quorate's", func() error { return theirs(t.Context(), may) }, refusedBy("quorate-daemon-objects"))
		})
	}
}

// A binding can leave namespaces out, as the comment of the kustomization says.
func TestABindingLeavesNamespacesOut(t *testing.T) {
	h := newHouse(t)
	h.furnish("held")
	h.furnish("legacy")
	for _, ns := range []string{"held", "legacy"} {
		h.refuse(attacksOnRecords(ns)[:1])
	}
	h.apply(object("v1", "Namespace", "", "legacy", map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "legacy"}}}))
	limited := h.bindings["quorate-records"].DeepCopy()
	h.must(unstructured.SetNestedField(limited.Object, []any{map[string]any{"key": "team", "operator": "NotIn", "values": []any{"legacy"}}}, "spec", "matchResources", "namespaceSelector", "matchExpressions"))
	h.apply(limited)
	client := clientOf(t, tenant)
	h.await("in a namespace that is left out", func() error { return attacksOnRecords("legacy")[0].try(t.Context(), client) }, allowed)
	h.refuse(attacksOnRecords("held")[:1])
}

// The API server finds no fault in the types of the expressions, and has checked all of them.
func TestTheExpressionsOfThePoliciesHaveTheirTypes(t *testing.T) {
	h := newHouse(t)
	// One that has a fault, to see that faults are found.
	wrong := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "quorate-wrong"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match("", "configmaps"), Validations: []admissionv1.Validation{{Expression: "object.spec.replicas > 1"}},
	}}
	_, err := h.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), wrong, metav1.CreateOptions{})
	h.must(err)
	t.Cleanup(func() {
		_ = h.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(context.Background(), wrong.Name, metav1.DeleteOptions{})
	})
	unchecked := func(p admissionv1.ValidatingAdmissionPolicy) bool {
		return p.Status.TypeChecking == nil || p.Status.ObservedGeneration != p.Generation
	}
	if !within(30*time.Second, func() bool { return !slices.ContainsFunc(h.policies(), unchecked) }) {
		t.Fatal("the policies are not checked")
	}
	for _, p := range h.policies() {
		warnings := p.Status.TypeChecking.ExpressionWarnings
		if p.Name == wrong.Name {
			if len(warnings) == 0 {
				t.Error("a fault is not found")
			}
			continue
		}
		for _, w := range warnings {
			t.Errorf("%s: %s: %s", p.Name, w.FieldRef, w.Warning)
		}
		if *p.Spec.FailurePolicy != admissionv1.Fail {
			t.Errorf("%s lets pass what it cannot judge", p.Name)
		}
	}
}

// Whatever the roles of deploy/base let quorate write, a policy holds to what is quorate's, but
// for what grants nothing: its lease, Events, and questions about others.
func TestThePoliciesAreAboutAllThatQuorateMayWrite(t *testing.T) {
	free := []string{"coordination.k8s.io/leases", "/events", "authentication.k8s.io/tokenreviews", "authorization.k8s.io/subjectaccessreviews"}
	held := map[string]bool{}
	for _, o := range deployed(t, deploy("admission")) {
		if o.GetName() != "quorate-daemon-objects" || o.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		for _, r := range typed[admissionv1.ValidatingAdmissionPolicy](t, o).Spec.MatchConstraints.ResourceRules {
			for _, resource := range r.Resources {
				held[r.APIGroups[0]+"/"+resource] = len(r.Operations) == 3
			}
		}
	}
	written := 0
	for _, o := range deployed(t, deploy("base")) {
		if !slices.Contains([]string{"quorate", "quorate-cluster-scoped"}, o.GetName()) || !slices.Contains([]string{"ClusterRole", "Role"}, o.GetKind()) {
			continue
		}
		for _, r := range typed[rbacv1.ClusterRole](t, o).Rules {
			if !slices.ContainsFunc(r.Verbs, func(v string) bool { return !slices.Contains([]string{"get", "list", "watch"}, v) }) {
				continue
			}
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					if written++; !held[group+"/"+resource] && !slices.Contains(free, group+"/"+resource) {
						t.Errorf("quorate may write %s/%s, and no policy is about that", group, resource)
					}
				}
			}
		}
	}
	if written < 12 {
		t.Errorf("%d resources were found", written)
	}
}

// The overlays in the comment of deploy/admission have the policies hold another service account, and
// leave namespaces out.
func TestTheOverlaysOfThePoliciesAreAsTheirCommentSays(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploy("admission"), "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policies, bindings := 0, 0
	for block := range strings.SplitSeq(string(text), "\n#\n") {
		if block = strings.ReplaceAll("\n"+block, "\n#   ", "\n"); !strings.Contains(block, "\nresources:") || strings.Contains(block, "\n#") {
			continue
		}
		elsewhere, leftOut := strings.Contains(block, "namespace: etcd"), strings.Contains(block, "matchResources")
		for _, o := range deployed(t, overlayOf(t, strings.ReplaceAll(block, "../..", deployFrom))) {
			text, _ := json.Marshal(o.Object)
			switch o.GetKind() {
			case "ValidatingAdmissionPolicy":
				if !elsewhere {
					continue
				}
				if policies++; bytes.Contains(text, []byte("quorate-system")) || !bytes.Contains(text, []byte("'system:serviceaccount:' + 'etcd' + ':' + 'quorate'")) {
					t.Errorf("%s is about another account", o.GetName())
				}
			case "ValidatingAdmissionPolicyBinding":
				if !leftOut {
					continue
				}
				if bindings++; typed[admissionv1.ValidatingAdmissionPolicyBinding](t, o).Spec.MatchResources == nil {
					t.Errorf("%s is about all namespaces", o.GetName())
				}
			}
		}
	}
	if policies != 5 || bindings != 5 {
		t.Errorf("%d policies, %d bindings", policies, bindings)
	}
}

// 523: with the rights of deploy/base and under the policies quorate does its work: it makes a
// cluster with certificates, labels it, upgrades, scales, takes labels back, has a backup taken, and
// deletes the cluster, and is refused nothing.
func TestQuorateWorksUnderThePolicies(t *testing.T) {
	h := newHouse(t)
	h.furnish("furnished")
	h.refuse(attacksWithTheToken("furnished"))
	w := newWorldAs(t, "governed", as(quorate), clustertest.SetReplicas(1), func(c *schema.EtcdCluster) {
		c.Spec.TLS.Mode = schema.TLSManaged
		c.Spec.Backup.Destination.PodAccess.ClaimName = "backups"
	})
	w.backsUpTo(t.TempDir())
	w.untilIdle()
	if _, err := w.kube.CoreV1().Secrets(w.namespace).Get(t.Context(), "orders-server", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	w.commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.17" })
	w.untilIdle()
	w.commit(clustertest.SetReplicas(3))
	w.untilIdle()
	w.tellStatus()

	services := w.kube.CoreV1().Services(w.namespace)
	service, err := services.Get(t.Context(), "orders-client", metav1.GetOptions{})
	w.must(err)
	service.Labels, service.Spec.Selector["x"] = nil, "y"
	_, err = services.Update(t.Context(), service, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	w.must(err)
	w.until("the labels to be back", func(decision.Plan) bool {
		s, err := services.Get(t.Context(), "orders-client", metav1.GetOptions{})
		return err == nil && naming.Owns(s, w.wish.EtcdCluster) && s.Spec.Selector["x"] == ""
	})

	w.haveBackupTaken()
	w.commit(clustertest.SetReplicas(1))
	w.untilIdle()
	w.commit(func(c *schema.EtcdCluster) {
		c.Spec.State, c.Spec.Deletion.Backup, c.Spec.Deletion.Volumes = schema.StateDeleted, schema.BackupSkip, schema.VolumesDelete
	})
	w.untilIdle()
	w.refusedNothing()
}

// 523: neither in a restore, whose Secret and volume it makes.
func TestQuorateRestoresUnderThePolicies(t *testing.T) {
	h := newHouse(t)
	h.furnish("beside")
	h.refuse(attacksWithTheToken("beside"))
	dir := t.TempDir()
	url := "file://" + dir + "/restored/1.db?root=" + dir
	_, err := (backup.Store{}).Save(t.Context(), url, bytes.NewReader(backuptest.Snapshot(8<<10)), backup.Manifest{ClusterID: "c0", EtcdVersion: "3.6.16", Revision: 7})
	h.must(err)
	w := newWorldAs(t, "restored", as(quorate), clustertest.SetReplicas(1))
	w.wish.Restore = &desired.Restore{Name: "back", SpecHash: "r1", Source: schema.RestoreSource{ObjectURL: url, PodAccess: schema.PodAccess{ClaimName: "backups"}}}
	w.backsUpTo(dir)
	jobs := w.kube.BatchV1().Jobs(w.namespace)
	var begun []batchv1.Job
	w.until("the Job of the restore", func(decision.Plan) bool {
		list, err := jobs.List(t.Context(), metav1.ListOptions{LabelSelector: naming.LabelRestoreOf})
		w.must(err)
		begun = list.Items
		return len(begun) == 1
	})
	if _, err := w.kube.CoreV1().Secrets(w.namespace).Get(t.Context(), begun[0].Name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	cm, err := w.kube.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), ownRecord, metav1.GetOptions{})
	w.must(err)
	rec, err := record.Read(cm)
	w.must(err)
	g := rec.Recovering
	w.etcd.Change = func(r *state.Round) {
		*r = state.Round{At: r.At, Deep: r.Deep, ClusterID: g.NewClusterID, ClusterVersion: r.ClusterVersion, Members: []state.Member{{
			ID: g.NewMemberID, Name: g.Member, Leader: g.NewMemberID, Revision: 7 + state.RevisionBump, Version: w.version(g.Member), Term: 2,
		}}}
	}
	w.ends(&begun[0], batchv1.JobComplete)
	w.untilIdle()
	w.refusedNothing()
}

// backsUpTo has quorate keep the backups of each namespace in a directory.
func (w *world) backsUpTo(dir string) {
	w.Helper()
	w.backups = "file://" + dir + "/{{ .Namespace }}/{{ .Name }}-{{ .UID }}.db?root=" + dir
	w.restart()
}

// tellStatus has the status written, and the StatefulSet labelled.
func (w *world) tellStatus() {
	w.Helper()
	w.r.SetDesired([]desired.Cluster{w.wish})
	writer := &statuses.Writer{Kube: w.client, By: "x", Lease: func() error { return nil }, Now: time.Now, Log: slog.New(slog.NewJSONHandler(w.log, nil))}
	w.must(writer.Round(w.Context(), w.r.Own()))
	if set := w.set(); set.Labels[naming.LabelPhase] == "" {
		w.Errorf("the StatefulSet has the labels %v", set.Labels)
	}
	_, err := w.kube.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), naming.Status(schema.KindCluster, "orders"), metav1.GetOptions{})
	w.must(err)
}

// haveBackupTaken has a Job take a backup, which fails and is removed.
func (w *world) haveBackupTaken() {
	w.Helper()
	w.r.SetDesired([]desired.Cluster{w.wish})
	q := clustertest.Once()
	q.Metadata.Namespace = w.namespace
	jobs := w.kube.BatchV1().Jobs(w.namespace)
	taken := func() []batchv1.Job {
		_, err := w.r.Scheduler.Pass(w.Context(), q)
		if err != nil {
			w.Log(err)
		}
		list, err := jobs.List(w.Context(), metav1.ListOptions{LabelSelector: naming.LabelBackupOf})
		w.must(err)
		return list.Items
	}
	w.eventually("the Job of the backup", func() bool { return len(taken()) == 1 })
	first := taken()[0]
	w.ends(&first, batchv1.JobFailed)
	w.eventually("the Job to be removed", func() bool {
		return !slices.ContainsFunc(taken(), func(j batchv1.Job) bool { return j.UID == first.UID })
	})
}

func (w *world) eventually(what string, is func() bool) {
	w.Helper()
	if !within(time.Minute, is) {
		w.Fatalf("waited for %s; the log says\n%s", what, w.log)
	}
}

// ends lets a Job end, as its controller would.
func (w *world) ends(job *batchv1.Job, how batchv1.JobConditionType) {
	w.Helper()
	now, before := metav1.Now(), batchv1.JobSuccessCriteriaMet
	job.Status.StartTime = &now
	if how == batchv1.JobComplete {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	} else {
		before, job.Status.Failed = batchv1.JobFailureTarget, 1
	}
	conditions := []batchv1.JobConditionType{before, how}
	if before == batchv1.JobSuccessCriteriaMet && w.older("v1.31.0") { // which refuses it without a success policy
		conditions = conditions[1:]
	}
	for _, c := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	job.Status.UncountedTerminatedPods = nil
	_, err := w.kube.BatchV1().Jobs(w.namespace).UpdateStatus(w.Context(), job, metav1.UpdateOptions{})
	w.must(err)
}

// older reports whether the API server is of an earlier release.
func (w *world) older(than string) bool {
	w.Helper()
	is, err := w.kube.Discovery().ServerVersion()
	w.must(err)
	return version.MustParseGeneric(is.GitVersion).LessThan(version.MustParseGeneric(than))
}

// refusedNothing wants quorate to have done all that it tried.
func (w *world) refusedNothing() {
	w.Helper()
	if refused := w.writes.refused(); len(refused) > 0 || strings.Contains(w.log.String(), "denied request") {
		w.Errorf("it was refused %v\n%s", refused, w.log)
	}
	if len(w.writes.take()) == 0 {
		w.Error("it wrote nothing")
	}
}

// 524: the API server takes the policies of deploy/network as kubectl makes them.
func TestTheNetworkPoliciesAreTaken(t *testing.T) {
	h := newHouse(t)
	h.namespace("networked")
	for dir, want := range map[string]int{"network/daemon": 1, "network/clusters": 3} {
		objects := deployed(t, deploy(dir))
		if len(objects) != want {
			t.Errorf("%s has %d objects", dir, len(objects))
		}
		for _, o := range objects {
			if o.GetNamespace() == "" {
				o.SetNamespace("networked")
			}
			h.apply(o)
		}
	}
}

// The commands of the pages run, in their order.
func TestTheCommandsOfThePagesRun(t *testing.T) {
	h := newHouse(t)
	h.furnish("shop")
	h.namespace("monitoring")
	for page, least := range map[string]int{"admission.md": 5, "network.md": 3} {
		if ran := h.follow(page); ran < least {
			t.Errorf("%s has %d commands", page, ran)
		}
	}
}

// follow runs the commands of a page, as an administrator.
func (h *house) follow(page string) (ran int) {
	h.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	h.must(err)
	dir := h.TempDir()
	h.must(os.Symlink(kubectl, filepath.Join(dir, "kubectl")))
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		"clusters": []any{map[string]any{"name": "lab", "cluster": map[string]any{"server": api.Host, "insecure-skip-tls-verify": true}}},
		"users":    []any{map[string]any{"name": "lab", "user": map[string]any{"token": api.BearerToken}}},
		"contexts": []any{map[string]any{"name": "lab", "context": map[string]any{"cluster": "lab", "user": "lab"}}},
	})
	h.must(err)
	h.must(os.WriteFile(filepath.Join(dir, "config"), config, 0o600))
	for i, block := range strings.Split(string(text), "```") {
		commands, shell := strings.CutPrefix(block, "sh\n")
		if i%2 == 0 || !shell {
			continue
		}
		for command := range strings.Lines(commands) {
			h.await(command, func() error {
				run := exec.CommandContext(h.Context(), "bash", "-c", command)
				run.Dir, run.Env = filepath.Join("..", ".."), append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(dir, "config"))
				if out, err := run.CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				return nil
			}, allowed)
			ran++
		}
	}
	return ran
}
