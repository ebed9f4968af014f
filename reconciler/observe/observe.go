package observe

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

// View is everything that one pass knows about one cluster: what the planner
// sees, and the live objects behind it, which the executor needs.
type View struct {
	Cluster  desired.Cluster
	Desired  state.Desired
	Observed state.Observed
	// manifests render what is desired, and wanted is a hash of them.
	Manifests manifests.Manifests
	wanted    string
	Set       *appsv1.StatefulSet
	Record    *record.Record
	Endpoints []etcd.Endpoint
	// notAfter is when the first certificate expires.
	Expiry time.Time
	// drifts are how objects differ, by kind/name, for those that exist.
	Drifts map[string]drift.Drift
	// stops are the rolls that are left on the way to what Git says.
	waypoints []state.Waypoint
	// domain are changes of the DNS domain that certificates stand against.
	domain []string
}

// Observe looks at one cluster: at the caches for Kubernetes, at the members for
// etcd. The caches hold nothing that is not quorate's: only while a cluster has no
// record, and for Secrets that its file names, does it ask the API server itself.
func (o *Observer) Observe(ctx context.Context, c desired.Cluster) (*View, error) {
	live, err := o.Cache.read(c)
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	c = deletedFirst(c.Identified(), live)
	v := &View{Cluster: c}
	if live.Record == nil {
		if err := o.askForForeign(ctx, c, live); err != nil {
			return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
		}
	}
	v.Set = live.Set
	v.ObserveRecord(live.Record)
	v.ObserveLeftovers(live.secrets)
	if live.secrets, err = o.secretsOf(ctx, v.Cluster, live.secrets); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v.observeCertificates(o, live)
	v.ObserveSet(live)
	if err := v.ObserveDamage(ctx, o, live); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	if err := o.ObserveRestore(ctx, v); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v.observeVolumes(live.claims)
	if err := o.askForClasses(ctx, v); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v.findEndpoints(live)
	// That nobody is there to be asked is an answer, too, of a cluster that formed.
	if len(v.Endpoints) > 0 || v.Observed.Record.Formed() {
		v.Observed.Rounds = []state.Round{o.Members.Round(ctx, c.Key(), v.Endpoints, false)}
	}
	// What the members report says which stop is due, and that what is wanted.
	if err := o.Aim(v); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	if len(v.Observed.Rounds) > 0 {
		o.countSnapshots(ctx, v, &v.Observed.Rounds[0])
	}
	if err := v.observeObjects(o, live); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	return v, nil
}

// Desire is what the planner is told of the file.
func (o *Observer) Desire(v *View) state.Desired {
	c := v.Cluster
	d := state.Desired{
		Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Commit: c.Commit, Owner: o.Options.Owner,
		Spec: c.Spec, SpecHash: schema.SpecHash(c.Spec), Template: v.Manifests.TemplateHash,
		BackupURL: c.BackupURL(o.Options.BackupURL), Problems: c.Problems, Restore: restoreRequest(c.Restore),
	}
	if len(v.waypoints) > 1 {
		d.Waypoints, d.Template = v.waypoints, v.waypoints[len(v.waypoints)-1].Template
	}
	return d
}

func (v *View) ObserveRecord(cm *corev1.ConfigMap) {
	if cm == nil {
		return
	}
	rec, err := record.Read(cm)
	if err != nil {
		v.Observed.RecordProblem = err.Error()
		return
	}
	v.Record = &rec
	v.Observed.Record = rec.State()
}

// render renders the cluster with the guard's image that the live StatefulSet
// has: a newer quorate restarts nothing. Only when the pods change anyway, they
// get the newer guard, too.
func (o *Observer) render(v *View) error {
	if len(v.Cluster.Problems) > 0 {
		return nil
	}
	with := o.Options.Render
	with.Partition = v.Cluster.Spec.Replicas
	if v.Set != nil {
		with.Partition, with.Claims = Partition(v.Set), ClaimTemplateOf(v.Set)
		if image := GuardImageOf(v.Set); image != "" {
			with.GuardImage = image
		}
	}
	with.ClaimPrefix = v.Record.Claims()
	if v.Record != nil {
		with.Replicas = new(podCount(*v.Record, v.Cluster.EtcdCluster, v.Set))
		with.Disruptions = new(Disruptions(*v.Record, v.Cluster.EtcdCluster))
	}
	if err := o.renderWith(v, with); err != nil {
		return err
	}
	if v.Set != nil && v.Manifests.TemplateHash != v.Set.Spec.Template.Annotations[naming.AnnotationTemplateHash] {
		with.GuardImage = o.Options.Render.GuardImage
		return o.renderWith(v, with)
	}
	return nil
}

// renderWith renders, unless the same was rendered last.
func (o *Observer) renderWith(v *View, with manifests.Options) error {
	stop := v.due()
	v.wanted = fmt.Sprintf("%s/%d/%s/%d/%s/%t/%s", v.Cluster.Digest, with.Partition, with.GuardImage, with.PodCount(v.Cluster.EtcdCluster), stop.Version, stop.Flush, claimsText(with.Claims))
	v.wanted += "/" + with.ClaimPrefix
	if with.Disruptions != nil {
		v.wanted += fmt.Sprintf("/%d", *with.Disruptions)
	}
	key := v.Cluster.Key()
	if kept, ok := o.rendered.Load(key); ok && kept.(rendering).wanted == v.wanted {
		v.Manifests = kept.(rendering).manifests
		return nil
	}
	m, err := manifests.Render(v.ClusterAt(stop), v.OptionsAt(stop, with))
	if err != nil {
		return err
	}
	v.Manifests = m
	o.rendered.Store(key, rendering{v.wanted, m})
	return nil
}

// rendering is what was rendered last for a cluster. Nobody changes it.
type rendering struct {
	wanted    string
	manifests manifests.Manifests
}

func Partition(set *appsv1.StatefulSet) int32 {
	if u := set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil {
		return *u.Partition
	}
	return 0
}

// Replicas is how many pods the StatefulSet has.
func Replicas(set *appsv1.StatefulSet) int32 {
	if set.Spec.Replicas == nil {
		return 1 // the API server's default
	}
	return *set.Spec.Replicas
}

func GuardImageOf(set *appsv1.StatefulSet) string {
	for _, c := range set.Spec.Template.Spec.InitContainers {
		if c.Name == naming.ContainerGuard {
			return c.Image
		}
	}
	return ""
}

// observeObjects compares the services, the budget and, apart from its template,
// the StatefulSet with what is wanted of them.
func (v *View) observeObjects(o *Observer, live *liveCluster) error {
	v.Observed.Objects, v.Drifts = live.foreign, map[string]drift.Drift{}
	if len(v.Cluster.Problems) > 0 {
		return nil
	}
	if len(live.foreign) > 0 {
		return nil
	}
	m := v.Manifests
	for _, look := range []struct {
		kind, name string
		live       metav1.Object
		drift      func() (drift.Drift, error)
	}{
		{"Service", *m.Headless.Name, orNil(live.Services[*m.Headless.Name]), func() (drift.Drift, error) { return drift.Service(live.Services[*m.Headless.Name], m.Headless) }},
		{"Service", *m.Client.Name, orNil(live.Services[*m.Client.Name]), func() (drift.Drift, error) { return drift.Service(live.Services[*m.Client.Name], m.Client) }},
		{"PodDisruptionBudget", *m.PDB.Name, orNil(live.Budget), func() (drift.Drift, error) { return drift.Budget(live.Budget, m.PDB) }},
	} {
		object, err := o.compare(v, look.kind, look.name, look.live, look.drift)
		if err != nil {
			return err
		}
		v.Observed.Objects = append(v.Observed.Objects, object)
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
func (o *Observer) compare(v *View, kind, name string, live metav1.Object, compared func() (drift.Drift, error)) (state.Object, error) {
	object := state.Object{Kind: kind, Name: name, State: state.ObjectMissing}
	if live == nil {
		return object, nil
	}
	cluster, versions := v.Cluster.Key(), string(live.GetUID())+"/"+live.GetResourceVersion()+"/"+v.wanted
	d, known := o.drifts.Get(cluster, kind+"/"+name, versions)
	if !known {
		var err error
		if d, err = compared(); err != nil {
			return object, err
		}
		o.drifts.Put(cluster, kind+"/"+name, versions, d)
	}
	object.State, v.Drifts[kind+"/"+name] = state.ObjectInSync, d
	if !d.Empty() {
		object.State, object.Detail = state.ObjectDrifted, drift.Describe(d)
		object.Fight = o.Fights.Find(cluster, kind+"/"+name, d)
	}
	return object, nil
}

// observeSetDrift looks for drift of the StatefulSet that is no roll.
func (v *View) observeSetDrift(o *Observer) error {
	if v.Set == nil {
		return nil
	}
	rolling := v.Set.Spec.Template.Annotations[naming.AnnotationTemplateHash] != v.Manifests.TemplateHash
	object, err := o.compare(v, "StatefulSet", v.Set.Name, v.Set, func() (drift.Drift, error) {
		template, drift, err := drift.StatefulSet(v.Set, v.Manifests.StatefulSet)
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
	v.Observed.Objects = append(v.Observed.Objects, object)
	return nil
}

// ObserveSet describes the StatefulSet and its pods.
func (v *View) ObserveSet(live *liveCluster) {
	for _, p := range live.pods {
		v.Observed.Pods = append(v.Observed.Pods, pods.Describe(p))
	}
	if v.Set == nil {
		return
	}
	template := v.Set.Spec.Template.Annotations
	set := &state.Set{
		UID: string(v.Set.UID), Partition: Partition(v.Set), Replicas: Replicas(v.Set),
		Template: template[naming.AnnotationTemplateHash], Version: template[naming.AnnotationVersion],
		Settled: v.Set.Status.ObservedGeneration >= v.Set.Generation,
	}
	set.Terminating = v.Set.DeletionTimestamp != nil
	if claims := ClaimTemplateOf(v.Set); claims != nil {
		set.ClaimSize = claims.Size.Value()
		if claims.StorageClassName != nil {
			set.ClaimClass = *claims.StorageClassName
		}
	}
	c := v.Cluster.EtcdCluster
	set.Immutable = append(Immutable(v.Set, live.Services, c), v.domain...)
	set.CurrentTemplate, set.CurrentVersion = set.Template, set.Version
	if v.Set.Status.CurrentRevision != v.Set.Status.UpdateRevision || !set.Settled {
		set.CurrentTemplate, set.CurrentVersion = revisionTemplate(live.revisions[v.Set.Status.CurrentRevision])
	}
	if v.Record != nil && int(set.Replicas) != len(v.Record.Members) {
		set.ScaledBy = ScaledBy(v.Set)
	}
	v.Observed.Set = set
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
func (v *View) findEndpoints(live *liveCluster) {
	if len(v.Cluster.Problems) > 0 {
		return
	}
	c := v.Cluster.EtcdCluster
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
		v.Endpoints = append(v.Endpoints, e)
	}
}

// Target is a member as what is about to be done to it needs it: of the recorded
// cluster, and with the ID that the decision was made on.
func (v *View) Target(member, id string) (etcd.Target, error) {
	for _, e := range v.Endpoints {
		if e.Member == member {
			return etcd.Target{Endpoint: e, ClusterID: v.Record.ClusterID, ID: id}, nil
		}
	}
	return etcd.Target{}, fmt.Errorf("%s has no address", member)
}
