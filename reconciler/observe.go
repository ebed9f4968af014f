package reconciler

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// view is everything that one pass knows about one cluster: what the planner
// sees, and the live objects behind it, which the executor needs.
type view struct {
	cluster  desired.Cluster
	desired  state.Desired
	observed state.Observed
	// manifests render what is desired, and wanted is a hash of them.
	manifests manifests.Manifests
	wanted    string
	set       *appsv1.StatefulSet
	record    *record.Record
	endpoints []etcd.Endpoint
	// notAfter is when the first certificate expires.
	notAfter time.Time
	// drifts are how objects differ, by kind/name, for those that exist.
	drifts map[string]drift.Drift
	// stops are the rolls that are left on the way to what Git says.
	stops []state.Waypoint
	// domain are changes of the DNS domain that certificates stand against.
	domain []string
}

// observe looks at one cluster: at the caches for Kubernetes, at the members for
// etcd. The caches hold nothing that is not quorate's: only while a cluster has no
// record, and for Secrets that its file names, does it ask the API server itself.
func (o *Observer) observe(ctx context.Context, c desired.Cluster) (*view, error) {
	live, err := o.cache.read(c)
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	c = deletedFirst(c.Identified(), live)
	v := &view{cluster: c}
	if live.record == nil {
		if err := o.askForForeign(ctx, c, live); err != nil {
			return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
		}
	}
	v.set = live.set
	v.observeRecord(live.record)
	v.observeLeftovers(live.secrets)
	if live.secrets, err = o.secretsOf(ctx, v.cluster, live.secrets); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v.observeCertificates(o, live)
	v.observeSet(live)
	if err := v.observeDamage(ctx, o, live); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	if err := o.observeRestore(ctx, v); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v.observeVolumes(live.claims)
	if err := o.askForClasses(ctx, v); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v.findEndpoints(live)
	// That nobody is there to be asked is an answer, too, of a cluster that formed.
	if len(v.endpoints) > 0 || v.observed.Record.Formed() {
		v.observed.Rounds = []state.Round{o.etcd.Round(ctx, c.Key(), v.endpoints, false)}
	}
	// What the members report says which stop is due, and that what is wanted.
	if err := o.aim(v); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	if len(v.observed.Rounds) > 0 {
		o.countSnapshots(ctx, v, &v.observed.Rounds[0])
	}
	if err := v.observeObjects(o, live); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	return v, nil
}

// desire is what the planner is told of the file.
func (o *Observer) desire(v *view) state.Desired {
	c := v.cluster
	d := state.Desired{
		Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Commit: c.Commit, Owner: o.options.Owner,
		Spec: c.Spec, SpecHash: schema.SpecHash(c.Spec), Template: v.manifests.TemplateHash,
		BackupURL: c.BackupURL(o.options.BackupURL), Problems: c.Problems, Restore: restoreRequest(c.Restore),
	}
	if len(v.stops) > 1 {
		d.Waypoints, d.Template = v.stops, v.stops[len(v.stops)-1].Template
	}
	return d
}

func (v *view) observeRecord(cm *corev1.ConfigMap) {
	if cm == nil {
		return
	}
	rec, err := record.Read(cm)
	if err != nil {
		v.observed.RecordProblem = err.Error()
		return
	}
	v.record = &rec
	v.observed.Record = rec.State()
}

// render renders the cluster with the guard's image that the live StatefulSet
// has: a newer quorate restarts nothing. Only when the pods change anyway, they
// get the newer guard, too.
func (o *Observer) render(v *view) error {
	if len(v.cluster.Problems) > 0 {
		return nil
	}
	with := o.options.Render
	with.Partition = v.cluster.Spec.Replicas
	if v.set != nil {
		with.Partition, with.Claims = partitionOf(v.set), claimTemplateOf(v.set)
		if image := guardImageOf(v.set); image != "" {
			with.GuardImage = image
		}
	}
	with.ClaimPrefix = v.record.Claims()
	if v.record != nil {
		with.Replicas = new(podCount(*v.record, v.cluster.EtcdCluster, v.set))
		with.Disruptions = new(disruptions(*v.record, v.cluster.EtcdCluster))
	}
	if err := o.renderWith(v, with); err != nil {
		return err
	}
	if v.set != nil && v.manifests.TemplateHash != v.set.Spec.Template.Annotations[naming.AnnotationTemplateHash] {
		with.GuardImage = o.options.Render.GuardImage
		return o.renderWith(v, with)
	}
	return nil
}

// renderWith renders, unless the same was rendered last.
func (o *Observer) renderWith(v *view, with manifests.Options) error {
	stop := v.due()
	v.wanted = fmt.Sprintf("%s/%d/%s/%d/%s/%t/%s", v.cluster.Digest, with.Partition, with.GuardImage, with.PodCount(v.cluster.EtcdCluster), stop.Version, stop.Flush, claimsText(with.Claims))
	v.wanted += "/" + with.ClaimPrefix
	if with.Disruptions != nil {
		v.wanted += fmt.Sprintf("/%d", *with.Disruptions)
	}
	key := v.cluster.Key()
	if kept, ok := o.rendered.Load(key); ok && kept.(rendering).wanted == v.wanted {
		v.manifests = kept.(rendering).manifests
		return nil
	}
	m, err := manifests.Render(v.clusterAt(stop), v.optionsAt(stop, with))
	if err != nil {
		return err
	}
	v.manifests = m
	o.rendered.Store(key, rendering{v.wanted, m})
	return nil
}

// rendering is what was rendered last for a cluster. Nobody changes it.
type rendering struct {
	wanted    string
	manifests manifests.Manifests
}

func partitionOf(set *appsv1.StatefulSet) int32 {
	if u := set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		return *u.Partition
	}
	return 0
}

// replicasOf is how many pods the StatefulSet has.
func replicasOf(set *appsv1.StatefulSet) int32 {
	if set.Spec.Replicas == nil {
		return 1 // the API server's default
	}
	return *set.Spec.Replicas
}

func guardImageOf(set *appsv1.StatefulSet) string {
	for _, c := range set.Spec.Template.Spec.InitContainers {
		if c.Name == naming.ContainerGuard {
			return c.Image
		}
	}
	return ""
}

// observeObjects compares the services, the budget and, apart from its template,
// the StatefulSet with what is wanted of them.
func (v *view) observeObjects(o *Observer, live *liveCluster) error {
	v.observed.Objects, v.drifts = live.foreign, map[string]drift.Drift{}
	if len(v.cluster.Problems) > 0 {
		return nil
	}
	if len(live.foreign) > 0 {
		return nil
	}
	m := v.manifests
	for _, look := range []struct {
		kind, name string
		live       metav1.Object
		drift      func() (drift.Drift, error)
	}{
		{"Service", *m.Headless.Name, orNil(live.services[*m.Headless.Name]), func() (drift.Drift, error) { return drift.Service(live.services[*m.Headless.Name], m.Headless) }},
		{"Service", *m.Client.Name, orNil(live.services[*m.Client.Name]), func() (drift.Drift, error) { return drift.Service(live.services[*m.Client.Name], m.Client) }},
		{"PodDisruptionBudget", *m.PDB.Name, orNil(live.budget), func() (drift.Drift, error) { return drift.Budget(live.budget, m.PDB) }},
	} {
		object, err := o.compare(v, look.kind, look.name, look.live, look.drift)
		if err != nil {
			return err
		}
		v.observed.Objects = append(v.observed.Objects, object)
	}
	return v.observeSetDrift(o)
}

// orNil turns a nil pointer into a nil interface.
func orNil[T any, P interface {
	*T
	metav1.Object
}](p P) metav1.Object {
	if p == nil {
		return nil
	}
	return p
}

// compare says how one object is. The answer for two versions that were compared
// before is kept: at steady state nothing is compared twice.
func (o *Observer) compare(v *view, kind, name string, live metav1.Object, compared func() (drift.Drift, error)) (state.Object, error) {
	object := state.Object{Kind: kind, Name: name, State: state.ObjectMissing}
	if live == nil {
		return object, nil
	}
	cluster, versions := v.cluster.Key(), string(live.GetUID())+"/"+live.GetResourceVersion()+"/"+v.wanted
	d, known := o.drifts.Get(cluster, kind+"/"+name, versions)
	if !known {
		var err error
		if d, err = compared(); err != nil {
			return object, err
		}
		o.drifts.Put(cluster, kind+"/"+name, versions, d)
	}
	object.State, v.drifts[kind+"/"+name] = state.ObjectInSync, d
	if !d.Empty() {
		object.State, object.Detail = state.ObjectDrifted, drift.Describe(d)
		object.Fight = o.fights.Find(cluster, kind+"/"+name, d)
	}
	return object, nil
}

// observeSetDrift looks for drift of the StatefulSet that is no roll.
func (v *view) observeSetDrift(o *Observer) error {
	if v.set == nil {
		return nil
	}
	rolling := v.set.Spec.Template.Annotations[naming.AnnotationTemplateHash] != v.manifests.TemplateHash
	object, err := o.compare(v, "StatefulSet", v.set.Name, v.set, func() (drift.Drift, error) {
		template, drift, err := drift.StatefulSet(v.set, v.manifests.StatefulSet)
		if !rolling {
			// The same hash but another content: somebody has edited the template.
			drift.Fields = append(drift.Fields, template.Fields...)
			drift.Manager = cmp.Or(drift.Manager, template.Manager)
			drift.Time = cmp.Or(drift.Time, template.Time)
		}
		return drift, err
	})
	if err != nil {
		return err
	}
	v.observed.Objects = append(v.observed.Objects, object)
	return nil
}

// observeSet describes the StatefulSet and its pods.
func (v *view) observeSet(live *liveCluster) {
	for _, p := range live.pods {
		v.observed.Pods = append(v.observed.Pods, pods.Describe(p))
	}
	if v.set == nil {
		return
	}
	template := v.set.Spec.Template.Annotations
	set := &state.Set{
		UID: string(v.set.UID), Partition: partitionOf(v.set), Replicas: replicasOf(v.set),
		Template: template[naming.AnnotationTemplateHash], Version: template[naming.AnnotationVersion],
		Settled: v.set.Status.ObservedGeneration >= v.set.Generation,
	}
	set.Terminating = v.set.DeletionTimestamp != nil
	if claims := claimTemplateOf(v.set); claims != nil {
		set.ClaimSize = claims.Size.Value()
		if claims.StorageClassName != nil {
			set.ClaimClass = *claims.StorageClassName
		}
	}
	c := v.cluster.EtcdCluster
	set.Immutable = append(immutable(v.set, live.services, c), v.domain...)
	set.CurrentTemplate, set.CurrentVersion = set.Template, set.Version
	if v.set.Status.CurrentRevision != v.set.Status.UpdateRevision || !set.Settled {
		set.CurrentTemplate, set.CurrentVersion = revisionTemplate(live.revisions[v.set.Status.CurrentRevision])
	}
	if v.record != nil && int(set.Replicas) != len(v.record.Members) {
		set.ScaledBy = scaledBy(v.set)
	}
	v.observed.Set = set
}

// revisionTemplate reads the annotations of the pod template in a revision.
func revisionTemplate(revision *appsv1.ControllerRevision) (hash, version string) {
	if revision == nil {
		return "", ""
	}
	var set struct {
		Spec struct {
			Template struct {
				Metadata metav1.ObjectMeta `json:"metadata"`
			} `json:"template"`
		} `json:"spec"`
	}
	// An unreadable revision counts as an unknown one, and matches no template.
	if err := json.Unmarshal(revision.Data.Raw, &set); err != nil {
		return "", ""
	}
	a := set.Spec.Template.Metadata.Annotations
	return a[naming.AnnotationTemplateHash], a[naming.AnnotationVersion]
}

// findEndpoints lists the members that have an address.
func (v *view) findEndpoints(live *liveCluster) {
	if len(v.cluster.Problems) > 0 {
		return
	}
	c := v.cluster.EtcdCluster
	secret := live.secrets[naming.TLSSecrets(c).Client]
	if naming.UsesTLS(c) && secret == nil {
		return
	}
	for _, p := range live.pods {
		if p.Status.PodIP == "" || p.DeletionTimestamp != nil {
			continue
		}
		e := etcd.Endpoint{
			Member: p.Name, Host: naming.MemberHost(c, p.Name), Incarnation: string(p.UID) + "/" + p.Status.PodIP,
			Address: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(naming.ClientPort)),
		}
		if naming.UsesTLS(c) {
			e.TLS = func() (*tls.Config, error) { return certs.ClientTLS(secret, e.Host) }
			e.Incarnation += "/" + secret.ResourceVersion
		}
		v.endpoints = append(v.endpoints, e)
	}
}

// target is a member as what is about to be done to it needs it: of the recorded
// cluster, and with the ID that the decision was made on.
func (v *view) target(member, id string) (etcd.Target, error) {
	for _, e := range v.endpoints {
		if e.Member == member {
			return etcd.Target{Endpoint: e, ClusterID: v.record.ClusterID, ID: id}, nil
		}
	}
	return etcd.Target{}, fmt.Errorf("%s has no address", member)
}
