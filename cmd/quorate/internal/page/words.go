package page

import (
	"fmt"
	"html/template"
	"time"

	"github.com/quorate/quorate/schema"
)

// showTime shows a time of RFC 3339 so that machines and people can read it; any other
// text is shown as it is.
func showTime(text string) any {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text // which the template escapes
	}
	at = at.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, at.Format(time.RFC3339), at.Format("2006-01-02 15:04 UTC"))) //nolint:gosec // digits and letters of a time
}

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

// short is the beginning of a hash.
func short(hash string) string { return hash[:min(len(hash), 10)] }

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
