package observe

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// gathered is all that was read about one cluster, of Kubernetes and of its members.
// Nothing in it is judged.
type gathered struct {
	// wish is the cluster as Git has it, and cluster as its members are, by its modes.
	wish, cluster desired.Cluster
	modes         modes.Modes
	liveCluster
	// parsed is the record; nil where there is none, or where unreadable tells why it
	// cannot be read: such a one leads nowhere.
	parsed     *record.Record
	unreadable error
	// made are the Secrets that quorate has made; those of liveCluster are the ones with
	// the cluster's certificates, which may be the user's.
	made map[string]*corev1.Secret
	// foreign are objects in the way that are not quorate's; they are searched for while
	// there is no record.
	foreign []state.Object
	// job is the Job of the restore that is due, with its pods; nil for none.
	job     *batchv1.Job
	jobPods []corev1.Pod
	// restore is the one that Git asks for, also where a cluster goes first that it takes
	// the place of; chosen is its backup, while it has not begun.
	restore *desired.Restore
	chosen  state.Chosen
	// nodes are the gone nodes to which the volumes of unready pods are tied, by pod.
	nodes map[string]goneNode
	// lost is the node that does not report of a pod that should have stopped, by pod.
	lost map[string]string
	// kubelets is the state of each pod's kubelet, by pod. It is read only while no member answers.
	kubelets map[string]kubelet
	// shut is why the node takes no new pod to which the volume of a pod is tied that is about
	// to stop, by pod.
	shut map[string]shutNode
	// foreseen is the same of the pods that a roll under way stops in time.
	foreseen map[string]shutNode
	// drained is why the node takes no new pod on which an only member runs that may be
	// replaced by way of a second one.
	drained shutNode
	// refusal is why a pod that is missing cannot be created; nil where that is not known.
	refusal *state.PodRefusal
	// rigid is why volumes of a StorageClass cannot grow, by class, where one should.
	rigid map[string]string
	// trial is what is known of the class that volumes are to change to.
	trial state.Trial
	// shown is what the members did in handshakes, while the authorities change.
	shown []state.Handshake
	// endpoints are how the members were reached, and rounds what they answered.
	endpoints []etcd.Endpoint
	rounds    []state.Round
	// glanced says that they were asked whether they are as they were, and nothing else.
	glanced bool
	// auth is what was found of users and roles; nil where nobody asked.
	auth *state.Auth
}

// gather reads everything about a cluster, in the order in which one answer tells
// what to ask next.
func (o *Observer) gather(ctx context.Context, c desired.Cluster, glance bool) (g gathered, err error) {
	if g.liveCluster, err = o.Cache.read(c); err != nil {
		return g, err
	}
	if g.set == nil && g.record != nil {
		if g.set, err = o.setByName(ctx, c); err != nil {
			return g, err
		}
	}
	g.wish, g.restore = deletedFirst(c.Identified(), g.liveCluster), c.Restore
	g.modes, g.cluster = modes.Of(g.wish, g.set, g.pods)
	if g.record == nil {
		if g.foreign, err = o.findForeign(ctx, c); err != nil {
			return g, err
		}
	}
	g.made = g.secrets
	if g.secrets, err = o.checked.Secrets(ctx, o.Kube, o.question(g.modes, g.modes.Certify(g.cluster)), g.secrets); err != nil {
		return g, err
	}
	if err := o.gatherAround(ctx, &g); err != nil {
		return g, err
	}
	g.chosen = o.chosenBackup(ctx, c, g.parsed)
	g.endpoints = o.endpointsOf(g.modes, g.modes.Certify(g.cluster), g.liveCluster)
	if g.rigid, err = o.rigidClasses(ctx, g.parsed, g.cluster, g.claims); err != nil {
		return g, err
	}
	if g.trial, err = o.classes().Trial(ctx, g.cluster, g.parsed, g.claims); err != nil {
		return g, err
	}
	// A formed cluster without a reachable member has a round, too: an empty one.
	if len(g.endpoints) > 0 || g.parsed != nil && g.parsed.Formed() {
		o.Lanes.Ask(ctx, g.cluster.Key(), func() {
			if g.rounds, g.glanced = o.Rests.Look(ctx, g.cluster, g.endpoints, glance); !g.glanced {
				g.rounds = []state.Round{o.Members.Round(ctx, g.cluster.Key(), g.endpoints, false)}
			}
		})
	}
	if g.auth, err = o.askAuth(ctx, g); err != nil {
		return g, err
	}
	g.kubelets, err = o.reportingNodes(ctx, g)
	return g, err
}

// setByName is the StatefulSet from the API server, nil for none. The caches do not see one
// that somebody has taken the labels off.
func (o *Observer) setByName(ctx context.Context, c desired.Cluster) (*appsv1.StatefulSet, error) {
	set, err := kube.FoundOrNil(o.Kube.AppsV1().StatefulSets(c.Metadata.Namespace).Get(ctx, c.Metadata.Name, metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("read the StatefulSet: %w", err)
	}
	return set, nil
}

// gatherLive reads again what a decision rests on most: the record, the StatefulSet, the
// pods and one object, or all volume claims with the budget, from the API server itself,
// the rest from the caches.
func (o *Observer) gatherLive(ctx context.Context, g gathered, kind, name string) (gathered, error) {
	live, err := o.Cache.read(g.cluster)
	if err != nil {
		return g, err
	}
	ns, of, get := g.cluster.Metadata.Namespace, g.cluster.Metadata.Name, metav1.GetOptions{}
	g.made, live.secrets = live.secrets, g.secrets
	if kind == "PersistentVolumeClaim" || kind == "PodDisruptionBudget" {
		// Before the pods: whose eviction it does not show any more, they show going.
		if live.budget, err = kube.FoundOrNil(o.Kube.PolicyV1().PodDisruptionBudgets(ns).Get(ctx, of, get)); err != nil {
			return g, fmt.Errorf("read PodDisruptionBudget %s: %w", of, err)
		}
	}
	if live.record, err = kube.FoundOrNil(o.Kube.CoreV1().ConfigMaps(ns).Get(ctx, naming.Record(of), get)); err != nil {
		return g, fmt.Errorf("read the record: %w", err)
	}
	if live.set, err = o.setByName(ctx, g.cluster); err != nil {
		return g, err
	}
	if live.pods, err = Pods(ctx, o.Kube, g.cluster); err != nil {
		return g, err
	}
	switch kind {
	case "Service":
		live.services[name], err = kube.FoundOrNil(o.Kube.CoreV1().Services(ns).Get(ctx, name, get))
	case "PersistentVolumeClaim":
		live.claims, err = o.claims(ctx, g.cluster)
	}
	if err != nil {
		return g, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	g.liveCluster = live
	g.modes, g.cluster = modes.Of(g.wish, g.set, g.pods)
	if g.kubelets, err = o.reportingNodes(ctx, g); err != nil {
		return g, err
	}
	return g, o.gatherAround(ctx, &g)
}

// gatherAround reads what the record and the pods lead to: the Job of a restore, the
// nodes of pods that are not ready, and why a pod is missing.
func (o *Observer) gatherAround(ctx context.Context, g *gathered) (err error) {
	g.parsed, g.unreadable = o.readRecord(g.cluster, g.liveCluster)
	rec := g.parsed
	if g.nodes, err = o.goneNodes(ctx, rec, g.liveCluster); err != nil {
		return err
	}
	if g.lost, err = o.lostNodes(ctx, g.liveCluster); err != nil {
		return err
	}
	if g.drained, err = o.drained(ctx, *g); err != nil {
		return err
	}
	if g.refusal, err = o.refusal(ctx, g.liveCluster); err != nil {
		return err
	}
	g.job, g.jobPods = nil, nil
	if rec == nil || rec.Recovering == nil || rec.ClusterID != rec.Recovering.ClusterID {
		return nil
	}
	// Jobs are no part of a cluster's daily life, and not watched.
	name := jobs.RestoreName(g.cluster.Metadata.Name, *rec.Recovering)
	if g.job, err = o.Jobs.Read(ctx, jobs.OfRestore(g.cluster), name); err != nil || g.job == nil {
		return err
	}
	g.jobPods, err = o.Jobs.Pods(ctx, g.cluster.Metadata.Namespace, name)
	return err
}

// reading is what was read last in the record of a cluster. It is never changed.
type reading struct {
	from   *corev1.ConfigMap
	record *record.Record
	err    error
}

// readRecord is the record, nil where there is none or it cannot be read. The very same
// object is read once: one that has changed is another object.
func (o *Observer) readRecord(c desired.Cluster, live liveCluster) (*record.Record, error) {
	if live.record == nil {
		return nil, nil
	}
	if k := o.read.Get(c.Key()); k.from == live.record {
		return k.record, k.err
	}
	k := reading{from: live.record}
	if rec, err := record.Read(live.record); err != nil {
		k.err = err
	} else {
		k.record = &rec
	}
	o.read.Put(c.Key(), k)
	return k.record, k.err
}

// claims lists the volume claims as the API server itself has them: one that was deleted a
// moment ago goes with the pod that a decision is about to stop.
func (o *Observer) claims(ctx context.Context, c desired.Cluster) ([]*corev1.PersistentVolumeClaim, error) {
	list, err := o.Kube.CoreV1().PersistentVolumeClaims(c.Metadata.Namespace).List(ctx, metav1.ListOptions{LabelSelector: naming.LabelCluster + "=" + c.Metadata.Name})
	if err != nil {
		return nil, fmt.Errorf("list the volume claims: %w", err)
	}
	return pointers(list.Items), nil
}

// Pods lists the members' pods as the API server itself has them.
func Pods(ctx context.Context, kube kubernetes.Interface, c desired.Cluster) ([]*corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(c.Metadata.Namespace).List(ctx, metav1.ListOptions{LabelSelector: naming.LabelCluster + "=" + c.Metadata.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	return memberPods(c, pointers(list.Items)), nil
}

// pointers are the items of a list as caches have them.
func pointers[T any](items []T) []*T {
	list := make([]*T, len(items))
	for i := range items {
		list[i] = &items[i]
	}
	return list
}
