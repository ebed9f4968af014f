package reconciler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/plan"
	"github.com/quorate/quorate/schema"
)

// Cluster is one cluster as Git has it.
type Cluster struct {
	schema.EtcdCluster
	// Commit is the Git commit that says so.
	Commit string
	// Problems of its file. With any, only the name is to be trusted.
	Problems []string
	// Restore is the backup that it is to begin with; nil for none.
	Restore *RestoreWish

	// digest of everything that the file says; "" until it is needed.
	digest string
}

// identified returns c with its digest.
func (c Cluster) identified() Cluster {
	if c.digest == "" {
		// A struct of strings, numbers and maps of these always encodes.
		text, _ := json.Marshal(c.EtcdCluster)
		if c.Restore != nil {
			more, _ := json.Marshal(c.Restore)
			text = append(text, more...)
		}
		sum := sha256.Sum256(text)
		c.digest = hex.EncodeToString(sum[:8])
	}
	return c
}

// Key is namespace/name.
func (c Cluster) Key() string { return c.Metadata.Namespace + "/" + c.Metadata.Name }

// view is everything that one pass knows about one cluster: what the planner
// sees, and the live objects behind it, which the executor needs.
type view struct {
	cluster  Cluster
	desired  plan.Desired
	observed plan.Observed
	// manifests render what is desired, and wanted is a hash of them.
	manifests Manifests
	wanted    string
	set       *appsv1.StatefulSet
	record    *Record
	endpoints []Endpoint
	// notAfter is when the first certificate expires.
	notAfter time.Time
	// drifts are how objects differ, by kind/name, for those that exist.
	drifts map[string]Drift
	// stops are the rolls that are left on the way to what Git says.
	stops []plan.Stop
	// domain are changes of the DNS domain that certificates stand against.
	domain []string
}

// observe looks at one cluster: at the caches for Kubernetes, at the members for
// etcd. The caches hold nothing that is not quorate's: only while a cluster has no
// record, and for Secrets that its file names, does it ask the API server itself.
func (r *Reconciler) observe(ctx context.Context, c Cluster) (*view, error) {
	live, err := r.cache.read(c)
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	c = c.identified().deletedFirst(live)
	v := &view{cluster: c}
	if live.record == nil {
		if err := r.askForForeign(ctx, c, live); err != nil {
			return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
		}
	}
	v.set = live.set
	v.observeRecord(live.record)
	v.observeLeftovers(live.secrets)
	if live.secrets, err = r.secretsOf(ctx, v.cluster, live.secrets); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v.observeCertificates(r, live)
	v.observeSet(live)
	if err := v.observeDamage(ctx, r, live); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	if err := r.observeRestore(ctx, v); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v.observeVolumes(live.claims)
	if err := r.askForClasses(ctx, v); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	v.findEndpoints(live)
	// That nobody is there to be asked is an answer, too, of a cluster that formed.
	if len(v.endpoints) > 0 || v.observed.Record.Formed() {
		v.observed.Rounds = []plan.Round{r.etcd.Round(ctx, c.Key(), v.endpoints, false)}
	}
	// What the members report says which stop is due, and that what is wanted.
	if err := r.aim(v); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	if len(v.observed.Rounds) > 0 {
		r.countSnapshots(ctx, v, &v.observed.Rounds[0])
	}
	if err := v.observeObjects(r, live); err != nil {
		return nil, fmt.Errorf("observe %s: %w", c.Key(), err)
	}
	return v, nil
}

// desire is what the planner is told of the file.
func (r *Reconciler) desire(v *view) plan.Desired {
	c := v.cluster
	d := plan.Desired{
		Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Commit: c.Commit, Owner: r.options.Owner,
		Spec: c.Spec, SpecHash: schema.SpecHash(c.Spec), Template: v.manifests.TemplateHash,
		BackupURL: r.backupTemplate(c), Problems: c.Problems, Restore: c.Restore.describe(),
	}
	if len(v.stops) > 1 {
		d.Stops, d.Template = v.stops, v.stops[len(v.stops)-1].Template
	}
	return d
}

// backupTemplate is where the cluster's backups go: its own word, else the
// daemon's.
func (r *Reconciler) backupTemplate(c Cluster) string {
	if own := c.Spec.Backup.Destination.ObjectURLTemplate; own != "" {
		return own
	}
	return r.options.BackupURL
}

func (v *view) observeRecord(cm *corev1.ConfigMap) {
	if cm == nil {
		return
	}
	record, err := ReadRecord(cm)
	if err != nil {
		v.observed.RecordProblem = err.Error()
		return
	}
	v.record = &record
	v.observed.Record = &plan.Record{ClusterID: record.ClusterID, Members: record.Members, Owner: ownerOf(record)}
	record.MembershipRecord.describe(v.observed.Record)
	record.RecoveryRecord.describe(v.observed.Record)
	record.RestoreRecord.describe(v.observed.Record)
	v.observed.Record.Defragmented = record.Defragmented
	if c := record.Compacted; c != nil {
		v.observed.Record.Compacted = &plan.Compacted{Revision: c.Revision, At: c.At}
	}
	if b := record.Backup; b != nil {
		v.observed.Record.Backup = &plan.Backup{ClusterID: b.ClusterID, For: b.For, URL: b.URL, Time: b.TakenAt}
	}
	if a := record.Applied; a != nil {
		v.observed.Record.Applied = &plan.Applied{SpecHash: a.SpecHash, Settings: a.Settings, Version: a.Version, Commit: a.Commit}
	}
	record.observeMinor(v.observed.Record)
}

// render renders the cluster with the guard's image that the live StatefulSet
// has: a newer quorate restarts nothing. Only when the pods change anyway, they
// get the newer guard, too.
func (r *Reconciler) render(v *view) error {
	if len(v.cluster.Problems) > 0 {
		return nil
	}
	o := r.options.Render
	o.Partition = v.cluster.Spec.Replicas
	if v.set != nil {
		o.Partition, o.Claims = partitionOf(v.set), claimTemplateOf(v.set)
		if image := guardImageOf(v.set); image != "" {
			o.GuardImage = image
		}
	}
	if o.ClaimPrefix = v.record.claimPrefix(); v.record != nil {
		o.Replicas = new(v.record.replicas(v.cluster.EtcdCluster, v.set))
		o.Disruptions = new(v.record.disruptions(v.cluster.EtcdCluster))
	}
	if err := r.renderWith(v, o); err != nil {
		return err
	}
	if v.set != nil && v.manifests.TemplateHash != v.set.Spec.Template.Annotations[AnnotationTemplateHash] {
		o.GuardImage = r.options.Render.GuardImage
		return r.renderWith(v, o)
	}
	return nil
}

// renderWith renders, unless the same was rendered last.
func (r *Reconciler) renderWith(v *view, o RenderOptions) error {
	stop := v.due()
	v.wanted = fmt.Sprintf("%s/%d/%s/%d/%s/%t/%s", v.cluster.digest, o.Partition, o.GuardImage, o.replicas(v.cluster.EtcdCluster), stop.Version, stop.Flush, claimsText(o.Claims))
	v.wanted += "/" + o.ClaimPrefix
	if o.Disruptions != nil {
		v.wanted += fmt.Sprintf("/%d", *o.Disruptions)
	}
	key := v.cluster.Key()
	if kept, ok := r.rendered.Load(key); ok && kept.(rendering).wanted == v.wanted {
		v.manifests = kept.(rendering).manifests
		return nil
	}
	m, err := Render(v.clusterAt(stop), v.optionsAt(stop, o))
	if err != nil {
		return err
	}
	v.manifests = m
	r.rendered.Store(key, rendering{v.wanted, m})
	return nil
}

// rendering is what was rendered last for a cluster. Nobody changes it.
type rendering struct {
	wanted    string
	manifests Manifests
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
		if c.Name == GuardContainer {
			return c.Image
		}
	}
	return ""
}

// observeObjects compares the services, the budget and, apart from its template,
// the StatefulSet with what is wanted of them.
func (v *view) observeObjects(r *Reconciler, live *liveCluster) error {
	v.observed.Objects, v.drifts = live.foreign, map[string]Drift{}
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
		drift      func() (Drift, error)
	}{
		{"Service", *m.Headless.Name, orNil(live.services[*m.Headless.Name]), func() (Drift, error) { return ServiceDrift(live.services[*m.Headless.Name], m.Headless) }},
		{"Service", *m.Client.Name, orNil(live.services[*m.Client.Name]), func() (Drift, error) { return ServiceDrift(live.services[*m.Client.Name], m.Client) }},
		{"PodDisruptionBudget", *m.PDB.Name, orNil(live.budget), func() (Drift, error) { return BudgetDrift(live.budget, m.PDB) }},
	} {
		object, err := r.compare(v, look.kind, look.name, look.live, look.drift)
		if err != nil {
			return err
		}
		v.observed.Objects = append(v.observed.Objects, object)
	}
	return v.observeSetDrift(r)
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
func (r *Reconciler) compare(v *view, kind, name string, live metav1.Object, drift func() (Drift, error)) (plan.Object, error) {
	object := plan.Object{Kind: kind, Name: name, State: plan.ObjectMissing}
	if live == nil {
		return object, nil
	}
	cluster, versions := v.cluster.Key(), string(live.GetUID())+"/"+live.GetResourceVersion()+"/"+v.wanted
	d, known := r.drifts.get(cluster, kind+"/"+name, versions)
	if !known {
		var err error
		if d, err = drift(); err != nil {
			return object, err
		}
		r.drifts.put(cluster, kind+"/"+name, versions, d)
	}
	object.State, v.drifts[kind+"/"+name] = plan.ObjectInSync, d
	if !d.Empty() {
		object.State, object.Detail = plan.ObjectDrifted, describeDrift(d)
		object.Fight = r.fights.find(cluster, kind+"/"+name, d)
	}
	return object, nil
}

// describeDrift says what differs and who did it.
func describeDrift(d Drift) string {
	text := strings.Join(d.Fields, ", ")
	if d.Manager == "" {
		return text
	}
	if d.Time.IsZero() {
		return fmt.Sprintf("%s (by %s)", text, d.Manager) // a subresource keeps no time
	}
	return fmt.Sprintf("%s (by %s at %s)", text, d.Manager, d.Time.UTC().Format(time.RFC3339))
}

// observeSetDrift looks for drift of the StatefulSet that is no roll.
func (v *view) observeSetDrift(r *Reconciler) error {
	if v.set == nil {
		return nil
	}
	rolling := v.set.Spec.Template.Annotations[AnnotationTemplateHash] != v.manifests.TemplateHash
	object, err := r.compare(v, "StatefulSet", v.set.Name, v.set, func() (Drift, error) {
		template, drift, err := StatefulSetDrift(v.set, v.manifests.StatefulSet)
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
		v.observed.Pods = append(v.observed.Pods, observePod(p))
	}
	if v.set == nil {
		return
	}
	template := v.set.Spec.Template.Annotations
	set := &plan.Set{
		UID: string(v.set.UID), Partition: partitionOf(v.set), Replicas: replicasOf(v.set),
		Template: template[AnnotationTemplateHash], Version: template[AnnotationVersion],
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
	set.Immutable = slices.Concat(immutableChanges(v.set, c), familyChanges(live.services, c), v.domain)
	if set.CurrentTemplate, set.CurrentVersion = set.Template, set.Version; v.set.Status.CurrentRevision != v.set.Status.UpdateRevision || !set.Settled {
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
	return a[AnnotationTemplateHash], a[AnnotationVersion]
}

// findEndpoints lists the members that have an address.
func (v *view) findEndpoints(live *liveCluster) {
	if len(v.cluster.Problems) > 0 {
		return
	}
	c := v.cluster.EtcdCluster
	secret := live.secrets[tlsSecrets(c).Client]
	if usesTLS(c) && secret == nil {
		return
	}
	for _, p := range live.pods {
		if p.Status.PodIP == "" || p.DeletionTimestamp != nil {
			continue
		}
		e := Endpoint{
			Member: p.Name, Host: memberHost(c, p.Name), Incarnation: string(p.UID) + "/" + p.Status.PodIP,
			Address: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(clientPort)),
		}
		if usesTLS(c) {
			e.TLS = func() (*tls.Config, error) { return ClientTLS(secret, e.Host) }
			e.Incarnation += "/" + secret.ResourceVersion
		}
		v.endpoints = append(v.endpoints, e)
	}
}

// target is a member as what is about to be done to it needs it: of the recorded
// cluster, and with the ID that the decision was made on.
func (v *view) target(member, id string) (Target, error) {
	for _, e := range v.endpoints {
		if e.Member == member {
			return Target{Endpoint: e, ClusterID: v.record.ClusterID, ID: id}, nil
		}
	}
	return Target{}, fmt.Errorf("%s has no address", member)
}
