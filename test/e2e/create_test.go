package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/test/lab"
)

func TestCreate(t *testing.T) {
	for _, tc := range []struct {
		name         string
		replicas     int
		minAvailable int32
		long         bool
	}{
		{"27: one member", 1, 1, false},
		{"28: three members", 3, 2, false},
		{"29: five members", 5, 4, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.long {
				takesLong(t)
			}
			t.Parallel()
			w := newWorld(t, fmt.Sprintf("create-%d", tc.replicas))
			w.commit("Add orders", spec{version: "3.6.16", replicas: tc.replicas})
			w.start()
			// What is acknowledged while the cluster forms counts as much.
			history := w.recordHistory("history/")
			w.awaitIdle("3.6.16", createLimit)
			w.expectVersion(tc.replicas, "3.6.16")
			w.checkHistory(history)
			history.Close()
			w.expectServing(tc.replicas)
			w.expectRestricted()
			w.expectRecord(tc.replicas)
			w.expectServices()
			budget, err := w.cluster.Client.PolicyV1().PodDisruptionBudgets(w.namespace).Get(t.Context(), name, metav1.GetOptions{})
			w.must(err)
			if got := budget.Spec.MinAvailable.IntVal; got != tc.minAvailable {
				t.Errorf("minAvailable is %d, want %d", got, tc.minAvailable)
			}
			w.expectIdle("3.6.16")
			w.expectNoHoldFromStandstills()
		})
	}
}

// expectNoHoldFromStandstills has the daemon stand still now and then, as one whose CPU limit is used up. It
// knows for how long, and takes no member for silent because of that.
func (w *world) expectNoHoldFromStandstills() {
	w.Helper()
	const times, still = 3, 4 * time.Second
	before, mark := w.metric("quorate_starved_seconds_total"), w.daemon.Log.Mark()
	for range times {
		w.must(w.daemon.Pause())
		time.Sleep(still)
		w.must(w.daemon.Resume())
		time.Sleep(still / 2)
	}
	if lost := w.metric("quorate_starved_seconds_total") - before; lost < 0.9*times*still.Seconds() {
		w.Errorf("%.1fs are lost by the daemon's own count, of %s", lost, times*still)
	}
	if holds := w.lines(mark, lab.Hold()); len(holds) > 0 {
		w.Errorf("a standstill of the daemon makes it hold: %s", holds[0].Raw)
	}
}

// expectServing writes and reads over TLS through the client Service, once it
// answers, and expects the same cluster from every member.
func (w *world) expectServing(n int) {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	w.eventually("a write to be acknowledged", holdLimit, func(ctx context.Context) (bool, error) {
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := client.Put(limited, "greeting", "hello")
		return err == nil, nil
	})
	answer, err := client.Get(w.Context(), "greeting")
	w.must(err)
	if len(answer.Kvs) != 1 || string(answer.Kvs[0].Value) != "hello" {
		w.Errorf("the key reads %v", answer.Kvs)
	}
	list, err := client.MemberList(w.Context())
	w.must(err)
	if len(list.Members) != n {
		w.Errorf("%d members, want %d", len(list.Members), n)
	}
	for _, url := range slices.Concat(client.Endpoints(), list.Members[0].ClientURLs, list.Members[0].PeerURLs) {
		if url[:8] != "https://" {
			w.Errorf("%s is without TLS", url)
		}
	}
}

// expectRestricted wants what Pod Security's restricted profile wants, and what
// quorate adds to that.
func (w *world) expectRestricted() {
	w.Helper()
	pods, err := w.cluster.Pods(w.Context(), w.namespace, name)
	w.must(err)
	for _, p := range pods {
		s := p.Spec
		if c := s.SecurityContext; c == nil || c.RunAsNonRoot == nil || !*c.RunAsNonRoot || c.SeccompProfile == nil || c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			w.Errorf("%s: security context %v", p.Name, c)
		}
		if s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken || s.EnableServiceLinks == nil || *s.EnableServiceLinks {
			w.Errorf("%s: service account token or service links", p.Name)
		}
		for _, c := range slices.Concat(s.InitContainers, s.Containers) {
			x := c.SecurityContext
			if x == nil || x.ReadOnlyRootFilesystem == nil || !*x.ReadOnlyRootFilesystem || x.AllowPrivilegeEscalation == nil || *x.AllowPrivilegeEscalation ||
				x.Capabilities == nil || !slices.Equal(x.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				w.Errorf("%s: %s: security context %v", p.Name, c.Name, x)
			}
			if c.LivenessProbe != nil {
				w.Errorf("%s: %s has a liveness probe", p.Name, c.Name)
			}
		}
		if e := s.Containers[0]; e.StartupProbe != nil || e.ReadinessProbe == nil {
			w.Errorf("%s: %s is to have a readiness probe alone", p.Name, e.Name)
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				w.Errorf("%s: %s has restarted %d times", p.Name, c.Name, c.RestartCount)
			}
		}
	}
	// The API server itself has the last word about the profile.
	_, err = w.cluster.Client.CoreV1().Namespaces().Patch(w.Context(), w.namespace, "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	w.must(err)
}

// expectRecord wants the record to hold the IDs that the members report, and the
// state in which no member is ever started as a new cluster again.
func (w *world) expectRecord(n int) {
	w.Helper()
	rec := w.record()
	reported := map[string]string{}
	for _, m := range w.members() {
		reported[m.Name] = fmt.Sprintf("%x", m.ID)
		if id := fmt.Sprintf("%x", m.ClusterID); id != rec.ClusterID {
			w.Errorf("%s says cluster %s, the record says %s", m.Name, id, rec.ClusterID)
		}
	}
	if len(reported) != n || !maps.Equal(reported, rec.Members) {
		w.Errorf("the members say %v, the record says %v", reported, rec.Members)
	}
	if rec.Applied == nil || rec.Applied.Commit == "" {
		w.Errorf("applied: %+v", rec.Applied)
	}
	cm, err := w.cluster.Client.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), name+"-record", metav1.GetOptions{})
	w.must(err)
	if state := cm.Data["initial-cluster-state"]; state != "existing" {
		w.Errorf("initial-cluster-state is %q once the cluster has formed", state)
	}
}

// record reads the cluster's record.
func (w *world) record() record.Record {
	w.Helper()
	cm, err := w.cluster.Client.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), name+"-record", metav1.GetOptions{})
	w.must(err)
	rec, err := record.Read(cm)
	w.must(err)
	return rec
}

func (w *world) expectServices() {
	w.Helper()
	services := w.cluster.Client.CoreV1().Services(w.namespace)
	peers, err := services.Get(w.Context(), name+"-peers", metav1.GetOptions{})
	w.must(err)
	if peers.Spec.ClusterIP != corev1.ClusterIPNone || !peers.Spec.PublishNotReadyAddresses {
		w.Errorf("peers: cluster IP %q, publishNotReadyAddresses %v", peers.Spec.ClusterIP, peers.Spec.PublishNotReadyAddresses)
	}
	client, err := services.Get(w.Context(), name+"-client", metav1.GetOptions{})
	w.must(err)
	if client.Spec.ClusterIP == corev1.ClusterIPNone || client.Spec.PublishNotReadyAddresses {
		w.Errorf("client: cluster IP %q, publishNotReadyAddresses %v", client.Spec.ClusterIP, client.Spec.PublishNotReadyAddresses)
	}
}

// expectIdle wants no write at all: neither from the daemon that runs, nor from
// one that restarts and so checks everything again.
func (w *world) expectIdle(version string) {
	w.Helper()
	before := w.settled()
	w.mark = w.daemon.Log.Mark()
	w.must(w.daemon.Restart())
	w.awaitIdle(version, holdLimit)
	time.Sleep(quiet)
	w.expectObjects(before)
	if steps := w.lines(w.mark, lab.Step()); len(steps) > 0 {
		w.Errorf("17: a second pass acted: %s", steps[0].Raw)
	}
}

// objects are the versions of everything of quorate's in the namespace, as written
// tells them, but what is there for people only: how the cluster is may change.
func (w *world) objects() map[string]string {
	w.Helper()
	versions := map[string]string{}
	client, ns, all := w.cluster.Client, w.namespace, metav1.ListOptions{}
	for kind, list := range map[string]func() (runtime.Object, error){
		"ConfigMap": func() (runtime.Object, error) { return client.CoreV1().ConfigMaps(ns).List(w.Context(), all) },
		"Secret":    func() (runtime.Object, error) { return client.CoreV1().Secrets(ns).List(w.Context(), all) },
		"Service":   func() (runtime.Object, error) { return client.CoreV1().Services(ns).List(w.Context(), all) },
		"Pod":       func() (runtime.Object, error) { return client.CoreV1().Pods(ns).List(w.Context(), all) },
		"Claim": func() (runtime.Object, error) {
			return client.CoreV1().PersistentVolumeClaims(ns).List(w.Context(), all)
		},
		"StatefulSet": func() (runtime.Object, error) { return client.AppsV1().StatefulSets(ns).List(w.Context(), all) },
		"Revision":    func() (runtime.Object, error) { return client.AppsV1().ControllerRevisions(ns).List(w.Context(), all) },
		"Budget": func() (runtime.Object, error) {
			return client.PolicyV1().PodDisruptionBudgets(ns).List(w.Context(), all)
		},
	} {
		found, err := list()
		w.must(err)
		w.must(meta.EachListItem(found, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			// What quorate follows is written for each commit, and here where it is confined.
			own := strings.HasPrefix(object.GetName(), "quorate-git-")
			if err == nil && !own && object.GetName() != "kube-root-ca.crt" && object.GetLabels()[naming.LabelStatus] == "" {
				versions[kind+" "+object.GetName()] = written(object)
			}
			return err
		}))
	}
	return versions
}

// written tells an object from what it becomes by any write but that of its status:
// kubelets and controllers write the status with every probe that comes too late. Nor
// does it tell of the phase on a StatefulSet.
func written(object metav1.Object) string {
	version := fmt.Sprintf("%s, generation %d", object.GetUID(), object.GetGeneration())
	for _, m := range object.GetManagedFields() {
		if m.Subresource == "" && m.Manager != naming.StatusManager {
			version += fmt.Sprintf(", %s of %s at %s", m.Operation, m.Manager, m.Time.UTC().Format(time.TimeOnly))
		}
	}
	return version
}

// settled waits until the kubelets and the controllers have recorded what
// they know, and returns objects.
func (w *world) settled() map[string]string {
	w.Helper()
	const still = 1500 * time.Millisecond
	last, since := w.objects(), time.Now()
	w.eventually("the objects to come to rest", holdLimit, func(context.Context) (bool, error) {
		now := w.objects()
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		return time.Since(since) > still, nil
	})
	return last
}

// expectObjects wants everything to be unchanged but what begins with one of these.
func (w *world) expectObjects(before map[string]string, but ...string) {
	w.Helper()
	after := w.objects()
	for _, key := range slices.Sorted(maps.Keys(after)) {
		named := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
		if before[key] != after[key] && !slices.ContainsFunc(but, named) {
			w.Errorf("%s was written: %q, now %q", key, before[key], after[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if after[key] == "" {
			w.Errorf("%s is gone", key)
		}
	}
}
