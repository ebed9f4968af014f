package observe

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/inspect"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// View is everything that one pass knows about one cluster: what the planner
// sees, and the live objects behind it, which the executor needs.
type View struct {
	// Cluster is what Git says, with the tls.mode that the members have on their usual ports.
	Cluster  desired.Cluster
	Desired  state.Desired
	Observed state.Observed
	// TemplateHash is that of the pods that are desired, "" where the file has errors.
	TemplateHash string
	// render makes what Manifests returns, and wanted, of that type, is all that it depends on.
	render    func() (manifests.Manifests, error)
	wanted    any
	Set       *appsv1.StatefulSet
	Record    *record.Record
	Endpoints []etcd.Endpoint
	// Glanced says that the members were only glanced at; see Observer.Look.
	Glanced bool
	// Expiry is when the first certificate expires.
	Expiry time.Time
	// Trust is what a change of the authorities is at, and Transport a change of spec.tls.mode.
	Trust     trust.Aim
	Transport transport.Aim
	// Issuers is what a change between quorate and another program as the issuer is at.
	Issuers issuers.Aim
	// modes are the forms of spec.tls that count.
	modes modes.Modes
	// mounts is the Secret with what members trust that the template is to mount, of quorate's own
	// authorities or of another issuer's; "" for none.
	mounts string
	// Drifts are how objects differ, for those that exist.
	Drifts map[ObjectName]drift.Drift
	// waypoints are the rolls that are left until what Git says.
	waypoints []state.Waypoint
	// domain are changes of the DNS domain that certificates stand against.
	domain []state.Change
	// found is what the Secrets with certificates say.
	found inspect.Found

	// gathered is what it describes.
	gathered gathered
}

// Certified is the cluster in the mode of its certificates, which members have besides plain text
// while spec.tls.mode changes.
func (v *View) Certified() schema.EtcdCluster { return v.modes.Certify(v.Cluster).EtcdCluster }

// ObjectName names an object of the cluster.
type ObjectName struct{ Kind, Name string }

// Drift is how one of the objects differs, and whether it exists.
func (v *View) Drift(kind, name string) (d drift.Drift, there bool) {
	d, there = v.Drifts[ObjectName{kind, name}]
	return d, there
}

// recent is how long ago what is seen twice may have been seen for the first time.
const recent = 5 * time.Second

// justAsked reports whether the members were asked in full a moment ago.
func (v *View) justAsked() bool {
	last := v.Observed.Round()
	return !v.Glanced && last != nil && time.Since(last.At) <= recent
}

// stopping are the endpoints of the members, of which one stops next; "" for none.
func (v *View) stopping(member string) []etcd.Endpoint {
	endpoints := slices.Clone(v.Endpoints)
	for i := range endpoints {
		endpoints[i].Stops = endpoints[i].Member == member
	}
	return endpoints
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

// Manifests are the objects that are desired. They are made when they are asked for: at rest they are not,
// and thousands of clusters would take much memory for them.
func (v *View) Manifests() (manifests.Manifests, error) {
	if v.render == nil {
		return manifests.Manifests{}, fmt.Errorf("render %s: its file has errors", v.Cluster.Key())
	}
	return v.render()
}

// KeepTemplate is the wanted StatefulSet with the template that the live one has.
func (v *View) KeepTemplate() (appsv1ac.StatefulSetApplyConfiguration, error) {
	m, err := v.Manifests()
	if err != nil {
		return appsv1ac.StatefulSetApplyConfiguration{}, err
	}
	keep, spec := *m.StatefulSet, *m.StatefulSet.Spec
	keep.Spec = &spec
	if v.Set.Spec.Template.Annotations[naming.AnnotationTemplateHash] == v.TemplateHash {
		return keep, nil
	}
	owned, err := appsv1ac.ExtractStatefulSet(v.Set, naming.FieldManager)
	if err != nil {
		return keep, fmt.Errorf("apply StatefulSet %s: %w", v.Set.Name, err)
	}
	if owned.Spec == nil || owned.Spec.Template == nil {
		return keep, fmt.Errorf("apply StatefulSet %s: quorate does not own its template, so it cannot be kept unchanged; wait for the rollout to end", v.Set.Name)
	}
	spec.Template = owned.Spec.Template
	return keep, nil
}

// Voters are the endpoints of the members that the record lists, which may be asked
// for a change of the member list.
func (v *View) Voters(rec record.Record, except string) []etcd.Endpoint {
	return slices.DeleteFunc(slices.Clone(v.Endpoints), func(e etcd.Endpoint) bool {
		return rec.Members[e.Member] == "" || e.Member == except
	})
}

// Applied reports whether what Git says was applied before, so that whatever
// differs was changed beside it.
func (v *View) Applied() bool {
	return v.Record != nil && v.Record.Applied != nil && v.Record.Applied.SpecHash == v.Desired.SpecHash
}
