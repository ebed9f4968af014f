package execute_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/jobs"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/reconciler/stores"
	"github.com/quorate/quorate/schema"
)

// 167, I8: one old backup is restored three times in a row, each time in the place of the
// cluster before: each begins above all that clients have seen of those before it, also
// of what was written and is in no backup.
func TestThreeRestoresInARowNeverGoBack(t *testing.T) {
	url := reconcilertest.StoredBackup(t)
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		w.AsksRestore(url)
		former := w.Wish.EtcdCluster
		former.Spec.State, former.Spec.Deletion.Backup = schema.StateDeleted, schema.BackupSkip
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Replicas = 1 })
		source, seen := w.Wish.Restore.Source, int64(7)
		for i := range 3 {
			name := fmt.Sprintf("back-%d", i)
			w.Wish.Restore = &desired.Restore{Name: name, SpecHash: "r1", Source: source, Former: &former}
			for range 90 {
				if _, err := w.Pass(); err != nil && !strings.Contains(err.Error(), "changed between") {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				r := w.Record()
				g := r.Recovering
				switch {
				case g != nil && len(reconcilertest.JobsOf(w)) == 1 && r.ClusterID == "":
					reconcilertest.JobEnded(w)
				case g != nil && r.ClusterID != "":
					begins := max(g.Revision, g.Above) + state.RevisionBump
					if args := jobs.RenderRestore(w.Wish, nil, "", "", *g, stores.Way{}).Spec.Template.Spec.Containers[0].Args; g.Above > 0 && !slices.Contains(args, fmt.Sprintf("--above=%d", g.Above)) {
						t.Fatalf("it runs %q", args)
					}
					if begins < seen+state.RevisionBump/2 {
						t.Fatalf("%s begins at revision %d, and clients have seen %d", name, begins, seen)
					}
					reconcilertest.StartsAlone(w, "orders-0", begins)
				}
				if r.Restored != nil && r.Restored.Name == name && !r.Restored.At.IsZero() && r.Applied != nil {
					break
				}
			}
			r := w.Record()
			if r.Restored == nil || r.Restored.Name != name || r.Restored.At.IsZero() {
				t.Fatalf("%s: the record is %+v, done was %q", name, r, actions(w))
			}
			// Clients write, and no backup has it.
			change := w.Etcd.Change
			w.Etcd.Change = func(round *state.Round) {
				change(round)
				for i := range round.Members {
					round.Members[i].Revision += 5000
					seen = max(seen, round.Members[i].Revision)
				}
			}
			w.MustPass()
		}
		if r := w.Record(); len(r.Predecessors) != 3 || seen < 3*state.RevisionBump {
			t.Errorf("%d predecessors, and clients have seen %d", len(r.Predecessors), seen)
		}
	})
}

// 167, 170, 171: a restore begins above what the backups at the cluster's own place tell
// of earlier clusters of its name, also where one manifest cannot be read. Where that
// place cannot be listed, or tells of what cannot be true, nothing is made.
func TestARestoreAsksTheStoreHowFarEarlierClustersCame(t *testing.T) {
	const far = 5 * state.RevisionBump
	for name, c := range map[string]struct {
		name     string
		revision int64
		spoil    bool
		nowhere  bool
		above    int64
		want     string
	}{
		"none is there":             {},
		"one is lower":              {name: "orders", revision: 6},
		"one is higher":             {name: "orders", revision: far, above: far},
		"another cluster's is":      {name: "users", revision: far},
		"one beside it is damaged":  {name: "orders", revision: far, spoil: true, above: far},
		"one cannot be true":        {name: "orders", revision: state.MaxRevision + 1, want: "which cannot be true"},
		"the place is not there":    {nowhere: true, want: "how far earlier clusters of this name had come is unknown"},
		"nor for the one it was of": {name: "orders", revision: far, nowhere: true, want: "how far earlier clusters of this name had come is unknown"},
	} {
		reconcilertest.Restoring(t, func(w *reconcilertest.World) {
			url := strings.NewReplacer("{{ .Namespace }}", "shop", "{{ .Name }}", "orders", "{{ .UID }}", "1").Replace(w.R.Options.BackupURL)
			if c.name != "" {
				m := backup.Manifest{Namespace: "shop", Name: c.name, ClusterID: "c7", Revision: c.revision}
				if _, err := (backup.Store{}).Save(w.Context(), url, bytes.NewReader(backuptest.Snapshot(8<<10)), m); err != nil {
					t.Fatal(err)
				}
			}
			if c.spoil {
				path, _, _ := strings.Cut(strings.TrimPrefix(url, "file://"), "?")
				if err := os.WriteFile(strings.Replace(path, "1.db", "2.db", 1)+backup.ManifestSuffix, []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.nowhere {
				w.Wish.Spec.Backup.Destination.ObjectURLTemplate = "file:///nowhere/{{ .UID }}.db?root=/nowhere"
			}
			err := w.Do(w.Begins())
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || len(w.Contents()) > 0 {
					t.Errorf("%s: %v, there is %v", name, err, w.Contents())
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if r := w.Record(); r.Recovering.Above != c.above || r.HighestRevision != c.above {
				t.Errorf("%s: it begins above %d, the highest revision is %d, want %d", name, r.Recovering.Above, r.HighestRevision, c.above)
			}
		})
	}
}

// 167, I8: a recovery begins above what the record knows of clusters before the lost one,
// and notes where it has begun. A store that is away does not keep it from beginning.
func TestARecoveryBeginsAboveWhatTheRecordKnows(t *testing.T) {
	const far = 5 * state.RevisionBump
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		reconcilertest.Unready(w)
		w.Wish.Spec.Backup.Destination.ObjectURLTemplate = "file:///nowhere/{{ .UID }}.db?root=/nowhere"
		if err := w.R.Executor.Note(w.Context(), w.Look(), func(r *record.Record) { r.Saw(far) }); err != nil {
			t.Fatal(err)
		}
		w.MustDo(action.BeginRecovery{OneShot: "c1 from member orders-1", ClusterID: "c1", Member: "orders-1", MemberID: "a1", Revision: 7, Version: "3.6.16"})
		g := w.Record().Recovering
		if g.Above != far || w.Look().Observed.Record.Recovering.First() != far+state.RevisionBump {
			t.Fatalf("recovering %+v", g)
		}
		w.MustDo(action.AdoptRecovery{From: "c1", ClusterID: g.NewClusterID, Member: "orders-1", MemberID: g.NewMemberID})
		w.MustDo(action.EndRecovery{OneShot: g.OneShot, ClusterID: "c1"})
		if r := w.Record(); r.HighestRevision != far+state.RevisionBump {
			t.Errorf("the highest revision is %d", r.HighestRevision)
		}
	})
}
