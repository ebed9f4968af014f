package observe

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/modes"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// Supposition is what is assumed of a cluster that was not observed; its
// zero value is that nothing of it exists.
type Supposition struct {
	Set      *appsv1.StatefulSet
	Record   *record.Record
	Observed state.Observed
}

// Offline can suppose and nothing else: it asks neither Kubernetes nor etcd.
func Offline(options Options, now func() time.Time) *Observer {
	return &Observer{Options: options, Now: now}
}

// Suppose is the view of a cluster that was not observed.
func (o *Observer) Suppose(c desired.Cluster, s Supposition) (*View, error) {
	v := &View{Set: s.Set, Record: s.Record, Observed: s.Observed}
	v.modes, v.Cluster = modes.Of(c.Identified(), s.Set, nil)
	v.Observed.Transport = v.modes.Is
	if s.Record == nil && naming.ManagesTLS(c.EtcdCluster) {
		v.describeCertificates(o.checked.Check(o.question(v.modes, v.Cluster), nil, nil))
	}
	v.supposeIssuers()
	if err := o.aim(v); err != nil {
		return nil, fmt.Errorf("plan %s: %w", c.Key(), err)
	}
	return v, nil
}
