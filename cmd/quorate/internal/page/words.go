package page

import (
	"fmt"

	"github.com/quorate/quorate/schema"
)

// showBytes shows a size in binary units.
func showBytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	size, units := float64(n), []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for _, unit := range units {
		if size /= 1024; size < 1024 || unit == "EiB" {
			return fmt.Sprintf("%.1f %s", size, unit)
		}
	}
	return ""
}

// title is what a kind is called on a page, in the plural.
func title(kind string) string {
	return map[string]string{
		schema.KindCluster: "Clusters", schema.KindBackup: "Backups", schema.KindBackupSchedule: "Schedules", schema.KindRestore: "Restores",
	}[kind]
}

// reported are the versions that the members report: one, or from one to another.
func reported(v schema.VersionStatus) string {
	if v.Lowest == v.Highest {
		return v.Lowest
	}
	return v.Lowest + " to " + v.Highest
}
