package execute

import (
	"github.com/quorate/quorate/reconciler/plan/action"
)

func TakeForTest() action.TakeBackup {
	return action.TakeBackup{Member: "orders-1", MemberID: "a1", ClusterID: "c1", For: "3.6.16", Why: "upgrade 3.6.12 → 3.6.16"}
}
