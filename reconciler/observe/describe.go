package observe

import (
	"cmp"
	"crypto/tls"
	"net"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/pods"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/slim"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// describe is the view of what was gathered. It does no I/O: equal input gives
// an equal view, and the memos only save work.
func (o *Observer) describe(g gathered) (*View, error) {
	v := &View{Cluster: g.cluster, modes: g.modes, Set: g.set, Endpoints: g.endpoints, Glanced: g.glanced, gathered: g}
	v.Observed.Transport = g.modes.Is
	v.describeRecord(g.parsed, g.unreadable)
	v.describeLeftovers(g.made)
	v.describeCertificates(o.checked.Check(o.question(g.modes, g.modes.Certify(g.cluster)), g.secrets, g.made))
	v.Observed.Certificates.Copies = o.Copies.Find(v.Certified(), v.Cluster.Digest, g.secrets, v.Observed.Certificates.Clients)
	v.describeSet(g)
	v.describeTrust(g)
	v.describeBundles(g)
	v.describeIssuers(g)
	v.describeEvictions(g, o.Now())
	v.describeDamage(g)
	v.describePlaces(g.shut, g.foreseen)
	v.Observed.Restore = restoreOf(v.Cluster, v.Record, g.job, g.jobPods)
	v.Observed.Trial = g.trial
	v.describeVolumes(g)
	v.Observed.Rounds, v.Observed.Auth = slices.Clone(g.rounds), g.auth
	// What the members report decides which waypoint is due, and that what is wanted.
	if err := o.aim(v); err != nil {
		return nil, err
	}
	if err := o.describeObjects(v, g); err != nil {
		return nil, err
	}
	return v, nil
}

// describeRecord describes the record, where there is one, or why it cannot be read.
func (v *View) describeRecord(rec *record.Record, unreadable error) {
	switch {
	case unreadable != nil:
		v.Observed.RecordProblem = unreadable.Error()
	case rec != nil:
		v.Record, v.Observed.Record = rec, rec.State()
	}
}

// describeDesired is what the planner gets of the file.
func (o *Observer) describeDesired(v *View) state.Desired {
	c := v.Cluster
	c.Spec.TLS = v.modes.Git
	d := state.Desired{
		Namespace: c.Metadata.Namespace, Name: c.Metadata.Name, Commit: c.Commit, Owner: o.Options.Owner,
		Spec: c.Spec, SpecHash: schema.SpecHash(c.Spec), Template: v.TemplateHash, Trust: v.mounts,
		BackupURL: c.BackupURL(o.Options.BackupURL), Problems: c.Problems, Restore: restoreRequest(cmp.Or(c.Restore, v.gathered.restore), v.gathered.chosen),
	}
	if n := len(v.waypoints); n > 1 {
		d.Waypoints, d.Template = v.waypoints, v.waypoints[n-1].Template
	}
	return d
}

// describeSet describes the StatefulSet and its pods.
func (v *View) describeSet(g gathered) {
	for _, p := range g.pods {
		v.Observed.Pods = append(v.Observed.Pods, pods.Describe(p))
	}
	if v.Set == nil {
		return
	}
	template := v.Set.Spec.Template.Annotations
	set := &state.Set{
		UID: string(v.Set.UID), Created: v.Set.CreationTimestamp.Time, Partition: Partition(v.Set), Replicas: Replicas(v.Set),
		Template: template[naming.AnnotationTemplateHash], Version: template[naming.AnnotationVersion],
		Settled: v.Set.Status.ObservedGeneration >= v.Set.Generation,
	}
	set.GoingSince, set.Finalizers = pods.Going(v.Set)
	set.Terminating = v.Set.DeletionTimestamp != nil
	set.ChangedAt, set.StatusAt = LastChange(v.Set, ""), LastChange(v.Set, "status")
	set.Refusal = g.refusal
	if claims := ClaimTemplateOf(v.Set); claims != nil {
		set.ClaimSize = claims.Size.Value()
		if claims.StorageClassName != nil {
			set.ClaimClass = *claims.StorageClassName
		}
	}
	set.Immutable = append(Immutable(v.Set, g.services, v.Certified()), v.domain...)
	set.CurrentTemplate, set.CurrentVersion = set.Template, set.Version
	if v.Set.Status.CurrentRevision != v.Set.Status.UpdateRevision || !set.Settled {
		set.CurrentTemplate, set.CurrentVersion = slim.Template(g.revisions[v.Set.Status.CurrentRevision])
	}
	for i, p := range g.pods {
		pod, revision := &v.Observed.Pods[i], p.Labels[appsv1.StatefulSetRevisionLabel] // described in this order
		pod.Stale = set.Settled && pod.Template == set.Template && revision != "" && revision != v.Set.Status.UpdateRevision
		if set.Settled && pod.Template == set.Template && !pod.Stale {
			pod.Mutated = pods.Mutated(p, v.Set.Spec.Template.Spec)
		}
	}
	if v.Record != nil && int(set.Replicas) != len(v.Record.Members) {
		set.ScaledBy, set.ScaledAt = drift.ScaledBy(v.Set)
	}
	v.Observed.Set = set
}

// Partition is from which ordinal on the StatefulSet rolls.
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

// GuardImage is the image of the guard in the StatefulSet's template, or "".
func GuardImage(set *appsv1.StatefulSet) string {
	for _, c := range set.Spec.Template.Spec.InitContainers {
		if c.Name == naming.ContainerGuard {
			return c.Image
		}
	}
	return ""
}

// endpointsOf lists the members that have an address. cluster is in the mode of its certificates.
func (o *Observer) endpointsOf(m modes.Modes, cluster desired.Cluster, live liveCluster) []etcd.Endpoint {
	if len(cluster.Problems) > 0 {
		return nil
	}
	c := cluster.EtcdCluster
	var endpoints []etcd.Endpoint
	for _, p := range live.pods {
		secured, secret := m.Secured(p, c), live.secrets[naming.TLSSecrets(modes.Shows(p, c)).Client]
		if p.Status.PodIP == "" || p.DeletionTimestamp != nil || secured && secret == nil {
			continue
		}
		e := etcd.Endpoint{
			Member: p.Name, Host: naming.MemberHost(c, p.Name), Incarnation: string(p.UID) + "/" + p.Status.PodIP,
			Address: net.JoinHostPort(p.Status.PodIP, strconv.Itoa(naming.ClientPort)), Login: o.login(cluster),
		}
		if secured {
			e.Secret = secret.Name
			e.TLS = func() (*tls.Config, error) { return certs.ClientTLS(secret, e.Host) }
			e.Incarnation += "/" + secret.ResourceVersion
		}
		endpoints = append(endpoints, e)
	}
	return endpoints
}
