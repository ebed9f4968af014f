package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// 427: a panic in the passes over one cluster, and over a backup of it, holds these two,
// and is told as status, Event, log and metric; the daemon goes on, and rolls another one.
func TestAPanicHoldsWhatItIsAbout(t *testing.T) {
	inFleet(t, []string{"users"}, func(f *fleet) {
		f.etcds["shop/users"].Change = func(*state.Round) { panic("an answer that nobody thought of") }
		defer f.runs()()
		of := clustertest.Once(func(r *schema.BackupRequest) { r.Source.ClusterName = "users" })
		f.R.SetDesired([]desired.Cluster{
			reconciler.WishOf("orders", clustertest.SetVersion("3.6.16"), clustertest.SkipBackup), reconciler.WishOf("users"),
		})
		f.R.SetBackups([]desired.Backup{of})
		f.wait(2 * time.Minute)

		if !slices.Contains(f.rolls(), f.Wish.Key()) {
			t.Error("orders was not rolled")
		}
		families, err := f.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if family.GetName() == "quorate_panics_total" && m.GetCounter().GetValue() == 0 {
					t.Errorf("no panic was counted: %s", m)
				}
			}
		}
		const want = "internal error of quorate (an answer that nobody thought of, in "
		told := func(where string, texts []string, most int) {
			n := 0
			for _, text := range texts {
				if strings.Contains(text, want) {
					n++
				}
			}
			if n == 0 || n > most {
				t.Errorf("%s: told %d times in %q", where, n, texts)
			}
		}
		told("log", f.Lines("pass failed", "error"), 2)
		told("Events", f.DrainEvents(), 99)
		statuses, _ := f.R.Statuses()
		for _, key := range []string{"users", of.Metadata.Name} {
			var messages []string
			for _, s := range statuses {
				for _, c := range s.Status.Conditions {
					if s.Metadata.Name == key {
						messages = append(messages, c.Message)
					}
				}
			}
			told("status of "+key, messages, 3)
		}
	})
}
