package execute

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
)

// Auth changes users, roles and authentication. What is so already is success.
type Auth interface {
	ChangeAuth(ctx context.Context, cluster string, members []etcd.Endpoint, work etcd.AuthWork) error
}

// changeAuth makes one change. A password is read just before it is set.
func changeAuth(ctx context.Context, e *Executor, v *observe.View, a action.ChangeAuth) error {
	work := etcd.AuthWork{AuthChange: a.AuthChange, ClusterID: v.Record.ClusterID}
	if a.Op == state.AddUser || a.Op == state.RenewUser || a.Op == state.SetPassword {
		password, has, why, err := observe.Password(ctx, e.Kube, v.Cluster, a.User)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", a, err)
		case why != "" || a.Op == state.SetPassword && !has:
			return fmt.Errorf("%s: its password cannot be read any more: %w", a, state.ErrChanged)
		}
		work.Password, work.HasPassword = password, has
	}
	return e.Members.ChangeAuth(ctx, v.Cluster.Key(), v.Voters(*v.Record, ""), work)
}
