package scheduler

import (
	"github.com/quorate/quorate/schema"
)

// EveryDrill is the schedule nightly with a drill of each backup.
func EveryDrill(s *schema.BackupScheduleSpec) { s.Verify.Restore = schema.DrillAlways }

const DrillLabels = `{etcd_cluster="orders",etcd_namespace="shop",schedule="nightly"} `
