package execute

import (
	"context"
	"slices"

	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
)

// moveMember has etcd's member list say where a member is reached, and writes that down: who joins
// later starts only if it knows it. When the second is lost, the first is found done the next time.
func moveMember(ctx context.Context, e *Executor, v *observe.View, a action.MoveMember) error {
	if v.Transport.Member != a.Member || !slices.Equal(v.Transport.URLs, a.URLs) || v.Record.Members[a.Member] != a.MemberID {
		return state.ErrChanged
	}
	if err := e.Members.MoveMember(ctx, v.Cluster.Key(), v.Record.ClusterID, v.Voters(*v.Record, ""), a.MemberID, a.URLs); err != nil {
		return err
	}
	return e.note(ctx, v, func(rec *record.Record) { rec.Moved(a.MemberID, a.URLs, e.Now()) })
}
