package execute

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/observe"
	"github.com/quorate/quorate/reconciler/passwords"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Auth changes users, roles and authentication. What is so already is success.
type Auth interface {
	ChangeAuth(ctx context.Context, cluster string, members []etcd.Endpoint, work etcd.AuthWork) error
}

// changeAuth makes one change. A password is read just before it is set, or, of user root, before
// authentication is switched on; that of root is kept before etcd is asked to take it, so that
// quorate has it whatever becomes of the Secret, and alone when etcd has.
func changeAuth(ctx context.Context, e *Executor, v *observe.View, a action.ChangeAuth) error {
	work := etcd.AuthWork{AuthChange: a.AuthChange, ClusterID: v.Record.ClusterID}
	user := a.User
	switch a.Op {
	case state.EnableAuth:
		user = schema.AuthRoot
	case state.AddUser, state.RenewUser, state.SetPassword:
	default:
		return e.Members.ChangeAuth(ctx, v.Cluster.Key(), v.Voters(*v.Record, ""), work)
	}
	password, has, why, err := passwords.Of(ctx, e.Kube, v.Cluster, user)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", a, err)
	case why != "" || a.Op == state.SetPassword && !has:
		return fmt.Errorf("%s: its password cannot be read any more: %w", a, state.ErrChanged)
	}
	work.Password, work.HasPassword = password, has
	keeps := has && user == schema.AuthRoot
	if keeps {
		if err := passwords.Keep(ctx, e.Kube, v.Cluster, password); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	if err := e.Members.ChangeAuth(ctx, v.Cluster.Key(), v.Voters(*v.Record, ""), work); err != nil {
		return err
	}
	if keeps && (a.Op == state.EnableAuth || a.Op == state.SetPassword) {
		return passwords.Settle(ctx, e.Kube, v.Cluster, password)
	}
	return nil
}
