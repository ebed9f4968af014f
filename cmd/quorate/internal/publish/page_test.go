package publish

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/schema"
)

var updatePage = flag.Bool("update-page", false, "rewrite testdata/status-page.md")

// What needs attention comes first, and foreign text breaks no table and
// mentions no user.
func TestStatusPage(t *testing.T) {
	schedule := schema.NewStatus(schema.KindBackupSchedule, "shop", "nightly", schema.PhaseStalled, "BackupFailed", "put: access denied for @ops | see #12")
	schedule.Status.Schedule = &schema.ScheduleStatus{Cluster: "shop/orders", Next: "2026-03-02T02:00:00Z"}
	backup := schema.NewStatus(schema.KindBackup, "shop", "before-sale", schema.PhaseReconciling, "Backup", "the backup is being taken, or awaited")
	backup.Status.Backup = &schema.BackupRunStatus{Cluster: "shop/orders"}
	restore := schema.NewStatus(schema.KindRestore, "shop", "back", schema.PhaseReady, "Restored", "the cluster began with s3://backups/a.db")
	restore.Status.Restore = &schema.RestoreStatus{Cluster: "shop/billing", Time: "2026-03-01T09:30:00Z"}
	unseen := schema.NewStatus(schema.KindCluster, "shop", "new", schema.PhaseUnknown, "NotLookedAt", "not reconciled yet")
	list := []schema.Status{
		cmdtest.Ready("billing"), cmdtest.Ready("carts"), unseen,
		cmdtest.Cluster("orders", schema.PhaseStalled, "Blocked", "orders-1 does not answer; check its pod"),
		cmdtest.Cluster("stock", schema.PhaseReconciling, "RestartMember", "restart stock-2: 3.5.21 → 3.6.16"),
		backup, schedule, restore,
	}
	page := statusPage(follow.State{
		Commit: "0a1b2c3", Held: "commit not trusted: 77aa is not signed",
		Problems: []string{"clusters/stock.yaml:7:3: spec.replicas: `x` is no number"},
	}, list)
	golden := filepath.Join("testdata", "status-page.md")
	if *updatePage {
		if err := os.WriteFile(golden, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if page != string(want) {
		t.Errorf("got\n%s\nwant\n%s", page, want)
	}
	calm := statusPage(follow.State{}, list[:2])
	if !strings.Contains(calm, "🟢 **2 clusters in sync with Git.**") || strings.Contains(calm, "repository\n") {
		t.Errorf("at rest it says\n%s", calm)
	}
	if none := statusPage(follow.State{}, nil); !strings.Contains(none, "No cluster is known.") {
		t.Errorf("without clusters it says\n%s", none)
	}
}

// A page of many problems stays one that can be read.
func TestStatusPageOfManyProblems(t *testing.T) {
	var problems []string
	for i := range 250 {
		problems = append(problems, fmt.Sprintf("clusters/c%d.yaml: bad", i))
	}
	page := statusPage(follow.State{Problems: problems}, nil)
	if strings.Count(page, "- 🟠") != 100 || !strings.Contains(page, "- and 150 more\n") {
		t.Errorf("it says\n%s", page)
	}
}
