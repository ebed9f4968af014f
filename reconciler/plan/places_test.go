package plan

import (
	"testing"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/schema"
)

// shut lets the node that alone has the volume of a member take no new pod.
func shut(i int32) mutation {
	return func(s *situation.Situation) { podAt(s, i).Shut, podAt(s, i).ShutBy = "n1", "is cordoned" }
}

func unread(s *situation.Situation) { s.Observed.PlacesUnread = true }

// 398: a member that could not come back is not stopped, and no roll is begun to stop it.
func TestAMemberWithoutANodeToComeBackToIsNotStopped(t *testing.T) {
	midway := with(commit(newVersion), begun, rolled(newVersion, 2), leads(1))
	checkRule(t, start, []ruleCase{
		{name: "a node that takes no new pod", change: with(commit(newVersion), shut(1)), want: "Unhealthy: orders-1 could not come back: its volume is on node n1 alone, which is cordoned; it is not restarted; let pods come to node n1 (`kubectl uncordon n1` where it is cordoned), or revert the commit; where that node is to go for good, take a backup, then delete volume claim data-orders-1 and the pod of orders-1"},
		{name: "it is read first", change: with(commit(newVersion), unread), want: "Confirm: whether the nodes take their members back has not been read yet"},
		{name: "of one or two it has the data", size: 2, change: with(commit(newVersion), shut(1)), want: "is cordoned), or revert the commit", lacks: "delete volume claim"},
		{name: "one that is down has nothing to lose", change: with(commit(newVersion), shut(1), unready(1)), want: "the StatefulSet gets the new template"},
	})
	checkRule(t, leader, []ruleCase{
		{name: "in the midst of a roll", change: with(midway, shut(1)), want: "Unhealthy: orders-1 could not come back"},
		{name: "it is read first there, too", change: with(midway, unread), want: "Confirm: whether the nodes"},
		{name: "one that has come back already", change: with(midway, shut(2)), want: "move the leader orders-1"},
		{name: "one whose turn it is not", change: with(midway, shut(0)), want: "move the leader orders-1"},
		{name: "no roll", change: with(shut(1), unread)},
		{name: "nor one of a cluster that is to sleep first", change: with(commit(newVersion), asksState(schema.StateHibernated), shut(2))},
		{name: "the only one", size: 1, change: with(commit(newVersion), begun, shut(0)), want: "orders-0 could not come back"},
	})
}
