package record_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/record/recordtest"
	"github.com/quorate/quorate/reconciler/state"
)

// fullMembership has a value in every field.
func fullMembership() record.Membership {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return record.Membership{
		Founders: 3, Replacing: "orders-2", Retired: map[string]string{"orders-4": "a4"}, Hibernated: true, Deleted: true,
		Joining:    &record.Joining{Member: "orders-3", ID: "a3", Since: at, Promoting: true, Replace: true},
		Leaving:    &record.Leaving{Member: "orders-1", ID: "a1", Why: "it is gone", Replace: true, Since: at},
		FailedJoin: &record.FailedJoin{Member: "orders-3", At: at, Times: 2},
	}
}

// The planner is told every word of it.
func TestMembershipIsDescribed(t *testing.T) {
	full := fullMembership()
	at := full.FailedJoin.At
	want := state.Record{
		Founders: 3, Replacing: "orders-2", Retired: map[string]string{"orders-4": "a4"}, Hibernated: true, Deleted: true,
		Joining:    &state.Joining{Member: "orders-3", ID: "a3", Since: at, Promoting: true, Replace: true},
		Leaving:    &state.Leaving{Member: "orders-1", ID: "a1", Why: "it is gone", Replace: true, Since: at},
		FailedJoin: &state.FailedJoin{Member: "orders-3", At: at, Times: 2},
	}
	if got := (record.Record{Membership: full}).State(); !reflect.DeepEqual(*got, want) {
		t.Errorf("told %+v, want %+v", *got, want)
	}
}

// A second recovery does not forget whose data the first one kept.
func TestEveryRecoveryIsDescribed(t *testing.T) {
	p := record.Record{Recovery: record.Recovery{Recovered: []record.Recovered{
		{OneShot: "first", Members: map[string]string{"orders-1": "a1"}}, {OneShot: "second", Members: map[string]string{"orders-2": "a2"}},
	}}}.State()
	if len(p.Recovered) != 2 || !reflect.DeepEqual(p.Kept, map[string]bool{"orders-1": true, "orders-2": true}) {
		t.Errorf("%+v", p)
	}
}

func TestRecordRoundTrip(t *testing.T) {
	full := recordtest.Formed()
	full.Backup = &record.Backup{
		ClusterID: full.ClusterID, For: "3.6.16", URL: "s3://b/orders.db", SHA256: "ab", Revision: 7, Size: 4096,
		TakenAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	full.RollBackup = &record.Backup{ClusterID: full.ClusterID, For: "3.5.35", URL: "s3://b/before.db"}
	full.Applied = &record.Applied{SpecHash: "12ab", Version: "3.5.35", Commit: "c0ffee"}
	full.Revision, full.Membership = 9, fullMembership()
	full.Owner = &record.Owner{Source: "https://git.example.com/etcd.git@main:clusters", Instance: "default", Claim: 1}
	for name, want := range map[string]record.Record{"new": record.New("t"), "formed": recordtest.Formed(), "full": full, "without members": {FormatVersion: record.Format, Token: "t"}} {
		t.Run(name, func(t *testing.T) {
			got, err := record.Read(recordtest.Stored(want))
			if err != nil {
				t.Fatal(err)
			}
			if want.Members == nil {
				want.Members = map[string]string{} // so that the guard can tell it from damage
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// 305: a backup for anything else does not take the place of a roll's, neither in the record
// nor in the planner's words; the next roll's does.
func TestTheBackupOfARollStays(t *testing.T) {
	rec := recordtest.Formed()
	for i, c := range []struct {
		taken      string
		last, roll string
	}{
		{"hibernation", "hibernation", ""},
		{"3.6.16", "3.6.16", "3.6.16"},
		{"repair orders-1", "repair orders-1", "3.6.16"},
		{"deletion", "deletion", "3.6.16"},
		{"compaction", "compaction", "3.6.16"},
		{"downgrade to 3.5.35", "downgrade to 3.5.35", ""},
		{"hibernation", "hibernation", ""},
	} {
		rec.NoteBackup(record.Backup{ClusterID: rec.ClusterID, For: c.taken, URL: c.taken})
		if rec.Backup.For != c.last || (rec.BackupFor("3.6.16") != nil) != (c.roll != "") {
			t.Errorf("305: %d: after that for %s: %+v and %+v", i, c.taken, rec.Backup, rec.RollBackup)
		}
		if p := rec.State(); p.Backup.URL != c.last || (p.RollBackup != nil) != (rec.RollBackup != nil) || (p.RollBackup != nil && p.RollBackup.URL != rec.RollBackup.URL) {
			t.Errorf("305: %d: after that for %s the planner reads %+v and %+v", i, c.taken, p.Backup, p.RollBackup)
		}
	}
}

func TestRecordKeysForEtcd(t *testing.T) {
	url := func(member string) string { return member + "=https://" + member + ".orders-peers.shop.svc:2380" }
	many := recordtest.Formed()
	many.Members = map[string]string{"orders-10": "a", "orders-9": "b", "orders-0": "c"}
	founded := record.New("t")
	founded.Founders = 1
	joining := func(j record.Joining) record.Record {
		r := recordtest.Formed()
		delete(r.Members, "orders-2")
		r.Joining = &j
		return r
	}
	promoted := recordtest.Formed()
	promoted.Joining = &record.Joining{Member: "orders-2", ID: "fd422379fda50e48", Promoting: true}
	for _, test := range []struct {
		name    string
		rec     record.Record
		state   string
		members []string
	}{
		{"one that has just become a member is named once", promoted, "existing", []string{"orders-0", "orders-1", "orders-2"}},
		{"a learner that etcd may not know yet is not among them", joining(record.Joining{Member: "orders-2"}), "existing", []string{"orders-0", "orders-1"}},
		{"a learner that etcd knows is", joining(record.Joining{Member: "orders-2", ID: "a2"}), "existing", []string{"orders-0", "orders-1", "orders-2"}},
		{"and while it is promoted", joining(record.Joining{Member: "orders-2", ID: "a2", Promoting: true}), "existing", []string{"orders-0", "orders-1", "orders-2"}},
		{"before forming: as many as it was created with", founded, "new", []string{"orders-0"}},
		{"before forming: as many as replicas", record.New("t"), "new", []string{"orders-0", "orders-1", "orders-2"}},
		{"after forming: exactly the members", recordtest.Formed(), "existing", []string{"orders-0", "orders-1", "orders-2"}},
		{"ordinals are numbers", many, "existing", []string{"orders-0", "orders-9", "orders-10"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := test.rec.ConfigMap(clustertest.Orders()).Data
			var want []string
			for _, m := range test.members {
				want = append(want, url(m))
			}
			if got := data["initial-cluster"]; got != strings.Join(want, ",") {
				t.Errorf("initial-cluster %s, want %s", got, want)
			}
			if got := data["initial-cluster-state"]; got != test.state {
				t.Errorf("initial-cluster-state %s, want %s", got, test.state)
			}
			if got := data["initial-cluster-token"]; got != test.rec.Token {
				t.Errorf("initial-cluster-token %s, want %s", got, test.rec.Token)
			}
		})
	}
}

// TestReadRecordRefusesDamage: whatever happens to a record, it must not read
// like that of a new cluster.
func TestReadRecordRefusesDamage(t *testing.T) {
	replace := func(old, text string) func(map[string]string) {
		return func(data map[string]string) {
			if !strings.Contains(data["record.json"], old) {
				panic("the record has no " + old)
			}
			data["record.json"] = strings.ReplaceAll(data["record.json"], old, text)
		}
	}
	for name, damage := range map[string]func(map[string]string){
		"record gone":      func(d map[string]string) { delete(d, "record.json") },
		"cluster gone":     func(d map[string]string) { delete(d, "initial-cluster") },
		"state gone":       func(d map[string]string) { delete(d, "initial-cluster-state") },
		"token gone":       func(d map[string]string) { delete(d, "initial-cluster-token") },
		"record empty":     func(d map[string]string) { d["record.json"] = "" },
		"record {}":        func(d map[string]string) { d["record.json"] = "{}" },
		"record null":      func(d map[string]string) { d["record.json"] = "null" },
		"cut off":          func(d map[string]string) { d["record.json"] = d["record.json"][:40] },
		"tokens differ":    func(d map[string]string) { d["initial-cluster-token"] = "other" },
		"ID field gone":    replace(`"clusterID": "cdf818194e3a8c32",`, ""),
		"ID emptied":       replace("cdf818194e3a8c32", ""),
		"ID no number":     replace("cdf818194e3a8c32", "lost"),
		"ID zero":          replace("cdf818194e3a8c32", "0"),
		"member no number": replace("8e9e05c52164694d", ""),
		"format gone":      replace(`"formatVersion": 1,`, ""),
		"newer format":     replace(`"formatVersion": 1,`, `"formatVersion": 2,`),
		"forgot it formed": func(d map[string]string) {
			d["record.json"] = record.New("orders-1f2e").ConfigMap(clustertest.Orders()).Data["record.json"]
		},
	} {
		t.Run(name, func(t *testing.T) {
			cm := recordtest.Stored(recordtest.Formed())
			damage(cm.Data)
			r, err := record.Read(cm)
			if err == nil {
				t.Fatalf("read as %+v", r)
			}
			if !strings.Contains(err.Error(), "shop/orders-record") || !strings.Contains(err.Error(), "do not delete") {
				t.Errorf("the error names no object or no next step: %v", err)
			}
		})
	}
}

func TestReadRecordTolerates(t *testing.T) {
	for name, change := range map[string]func(map[string]string){
		"an unknown field": func(d map[string]string) {
			d["record.json"] = strings.Replace(d["record.json"], "{", `{"later": {"x": 1},`, 1)
		},
		"a state that an edit set back": func(d map[string]string) { d["initial-cluster-state"] = "new" },
		"a further key":                 func(d map[string]string) { d["note"] = "hello" },
	} {
		t.Run(name, func(t *testing.T) {
			cm := recordtest.Stored(recordtest.Formed())
			change(cm.Data)
			if r, err := record.Read(cm); err != nil || !r.Formed() {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

// TestGuardReadsWhatTheDaemonWrites ties the two ends of the record together.
func TestGuardReadsWhatTheDaemonWrites(t *testing.T) {
	for name, r := range map[string]record.Record{"new": record.New("t"), "formed": recordtest.Formed()} {
		core, err := guard.ParseRecord([]byte(r.ConfigMap(clustertest.Orders()).Data["record.json"]))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if core.Token != r.Token || *core.ClusterID != r.ClusterID || len(*core.Members) != len(r.Members) {
			t.Errorf("%s: the guard read %+v of %+v", name, core, r)
		}
	}
}

// 353: a recovery that is refused is none that is under way, unless it has become the cluster.
func TestARefusedRecoveryIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		refused, clusterID string
		kept               bool
	}{
		"the one under way": {"c1 from member orders-1", "c1", false},
		"another one":       {"c1 from member orders-2", "c1", true},
		"none":              {"", "c1", true},
		"one that is done":  {"c1 from member orders-1", "c2", true},
	} {
		r := recordtest.Formed()
		r.ClusterID, r.Recovering = c.clusterID, &record.Recovering{OneShot: "c1 from member orders-1", ClusterID: "c1"}
		r.RefuseRecovery(c.refused)
		if (r.Recovering != nil) != c.kept || r.RefusedRecovery != c.refused {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// 585: a member that joins is told where etcd has the others, at each of their URLs; those of a member
// that is gone are forgotten.
func TestTheInitialClusterHasMembersWhereTheyWereMoved(t *testing.T) {
	c, at := clustertest.Orders(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := recordtest.Formed()
	gone, moved := r.Members["orders-0"], r.Members["orders-1"]
	r.Moved(gone, []string{"https://a:2380"}, at)
	delete(r.Members, "orders-0")
	r.Moved(moved, []string{"https://b:2380", "https://b:2382"}, at)
	if want := map[string][]string{moved: {"https://b:2380", "https://b:2382"}}; !reflect.DeepEqual(r.PeerURLs, want) || !r.MovedAt.Equal(at) {
		t.Errorf("%v at %s", r.PeerURLs, r.MovedAt)
	}
	want := "orders-1=https://b:2380,orders-1=https://b:2382,orders-2=" + naming.PeerURL(c, "orders-2")
	if got := r.InitialCluster(c); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.Moved("ff", []string{"https://c:2380"}, at)
	if len(r.PeerURLs) != 1 {
		t.Errorf("a stranger was noted: %v", r.PeerURLs)
	}
}
