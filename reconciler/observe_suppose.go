package reconciler

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// supposition is what is taken for granted of a cluster that nobody has looked at; its
// zero value is that nothing of it exists.
type supposition struct {
	set      *appsv1.StatefulSet
	record   *record.Record
	observed state.Observed
}

// newOfflineObserver can suppose and nothing else: it asks neither Kubernetes nor etcd.
func newOfflineObserver(options ObserverOptions, now func() time.Time) *Observer {
	return &Observer{options: options, now: now}
}

// suppose is the view of a cluster that nobody has looked at.
func (o *Observer) suppose(c desired.Cluster, s supposition) (*view, error) {
	v := &view{cluster: c.Identified(), set: s.set, record: s.record, observed: s.observed}
	if s.record == nil && naming.ManagesTLS(c.EtcdCluster) {
		v.observeCertificates(o, &liveCluster{})
	}
	if err := o.aim(v); err != nil {
		return nil, fmt.Errorf("plan %s: %w", c.Key(), err)
	}
	return v, nil
}
