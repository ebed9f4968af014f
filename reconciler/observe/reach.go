package observe

import (
	"context"

	"github.com/quorate/quorate/reconciler/desired"
)

// Reach is as much of a look at a cluster as a backup needs.
func (o *Observer) Reach(ctx context.Context, c desired.Cluster) (*View, error) {
	v := &View{Cluster: c.Identified()}
	live, err := o.Cache.read(c)
	if err != nil {
		return nil, err
	}
	v.ObserveRecord(live.Record)
	if live.secrets, err = o.secretsOf(ctx, v.Cluster, live.secrets); err != nil {
		return nil, err
	}
	v.findEndpoints(live)
	return v, nil
}
