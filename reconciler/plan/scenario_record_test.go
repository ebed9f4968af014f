package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

func (a archive) observeRecord(t *testing.T, o *state.Observed) {
	t.Helper()
	if _, there := a.sections["record"]; !there {
		return
	}
	s, _ := a.read(t, "record")
	if o.RecordProblem = s["problem"]; o.RecordProblem != "" {
		return
	}
	o.Record = &state.Record{ClusterID: s["cluster"], Owner: ownerOf(t, s["owner"])}
	if o.Record.Formed() {
		o.Record.Members = membersOf(t, s["members"])
	}
	a.observeChange(t, s, o.Record)
	observeRecovery(t, s, o.Record)
	for key, at := range map[string]**state.Backup{"backup": &o.Record.Backup, "roll-backup": &o.Record.RollBackup} {
		if b := strings.Fields(s[key]); len(b) > 2 {
			*at = &state.Backup{ClusterID: b[0], For: state.Purpose(strings.Join(b[1:len(b)-1], " ")), Time: ago(t, b[len(b)-1]), URL: s["stored"]}
		}
	}
	if applied := strings.Fields(s["applied"]); len(applied) == 2 {
		o.Record.Applied = &state.Applied{SpecHash: strings.TrimPrefix(applied[0], "none"), Version: applied[1], Settings: s["settings"]}
		o.Record.BornOn = state.Minor(applied[1])
	}
	a.observeUpgrade(t, s, o.Record)
	if c := strings.Fields(s["compacted"]); len(c) == 2 {
		o.Record.Compacted = &state.Compacted{Revision: number[int64](t, row{"": c[0]}, "", 0), At: ago(t, c[1])}
	}
	for _, text := range list(s["seen"]) {
		what, ages, _ := strings.Cut(text, "=")
		stamp, at, _ := strings.Cut(ages, "/")
		o.Record.Seen = append(o.Record.Seen, state.Seen{What: what, Stamp: ago(t, stamp), At: ago(t, at)})
	}
	for name, age := range pairs(s["defragmented"]) {
		if o.Record.Defragmented == nil {
			o.Record.Defragmented = map[string]time.Time{}
		}
		o.Record.Defragmented[name] = ago(t, age)
	}
}

// membersOf are the members of a record, with their IDs where these are not those
// of their ordinals: "3", "0, 2" or "orders-0=m7, orders-2=m5".
func membersOf(t *testing.T, text string) map[string]string {
	t.Helper()
	if strings.Contains(text, "=") {
		return pairs(text)
	}
	all := map[string]string{}
	for _, i := range ordinals(t, text) {
		all[naming.Member("orders", i)] = fmt.Sprintf("m%d", i)
	}
	return all
}

// pairs reads "orders-0=m7, orders-2=m5"; nil for nothing.
func pairs(text string) map[string]string {
	var all map[string]string
	for _, pair := range list(text) {
		if all == nil {
			all = map[string]string{}
		}
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return all
}

// observeUpgrade is what the record knows of a change of minor.
func (a archive) observeUpgrade(t *testing.T, s row, record *state.Record) {
	t.Helper()
	if s["born"] != "" {
		record.BornOn = strings.TrimSuffix(s["born"], "?")
	}
	if record.Flushed = pairs(s["flushed"]); s["flushed"] == "yes" {
		record.Flushed = record.Members
	}
	if n := strings.Fields(s["nudged"]); len(n) > 2 {
		record.Forced = nudgedOf(t, n, record)
	}
	if d := strings.Fields(s["downgrade"]); len(d) == 2 {
		record.Downgrade = &state.Downgrade{Minor: d[0], Since: ago(t, d[1])}
	}
}

// nudgedOf reads "TEMPLATE AGE SAVED": how often all members had saved their state,
// or each ("orders-0=1,orders-1=0"), and behind that the age of the last time.
func nudgedOf(t *testing.T, n []string, record *state.Record) *state.ForcedSnapshot {
	t.Helper()
	nudged := &state.ForcedSnapshot{Template: n[0], Since: ago(t, n[1]), Time: ago(t, n[1]), Before: map[string]int64{}}
	if len(n) > 3 {
		nudged.Time = ago(t, n[3])
	}
	each := pairs(strings.ReplaceAll(n[2], ",", ", "))
	for name := range record.Members {
		saved := n[2]
		if strings.Contains(saved, "=") {
			saved = each[name]
		}
		nudged.Before[name] = number[int64](t, row{"": saved}, "", 0)
	}
	return nudged
}

// ordinals are a number of members, or their ordinals: "3" or "0, 2".
func ordinals(t *testing.T, text string) []int32 {
	t.Helper()
	var all []int32
	parts := list(text)
	for _, part := range parts {
		n := number[int32](t, row{"": part}, "", 0)
		if len(parts) > 1 {
			all = append(all, n)
			continue
		}
		for i := range n {
			all = append(all, i)
		}
	}
	return all
}

// recoveryOf is what Git says: the cluster, and the member or the URL of a backup.
func recoveryOf(text string) schema.RecoverySpec {
	id, from, _ := strings.Cut(text, " ")
	if strings.Contains(from, "://") {
		return schema.RecoverySpec{ClusterID: id, ObjectURL: from}
	}
	return schema.RecoverySpec{ClusterID: id, Member: from}
}

// observeRecovery reads what the record says of recoveries: "recovering: MEMBER
// REVISION", of the lost cluster c1, which becomes c2; and of a restore, which
// makes c2 out of a backup: "restored: NAME SPEC", and "done" behind it.
func observeRecovery(t *testing.T, s row, r *state.Record) {
	t.Helper()
	r.RefusedRecovery = s["refused"]
	for _, oneShot := range list(s["recovered"]) {
		id, _, _ := strings.Cut(oneShot, " ")
		r.Recovered = append(r.Recovered, state.Recovered{OneShot: oneShot, ClusterID: id})
		r.Kept = map[string]bool{"orders-0": true, "orders-1": true, "orders-2": true}
	}
	if w := strings.Fields(s["restored"]); len(w) > 1 {
		r.Restored = &state.Restored{Name: w[0], SpecHash: w[1], SourceHash: "b", Done: len(w) > 2}
	}
	r.ClaimPrefix = s["claims"]
	if w := strings.Fields(s["recovering"]); len(w) == 2 && r.Restored != nil {
		r.Recovering = &state.Recovering{
			OneShot: "restore " + r.Restored.Name, NewClusterID: "c2", NewMemberID: "n-" + w[0],
			Member: w[0], Revision: number[int64](t, row{"": w[1]}, "", 0), Since: ago(t, "1m"),
		}
	} else if len(w) == 2 {
		r.Recovering = &state.Recovering{
			OneShot: "c1 from member " + w[0], ClusterID: "c1", NewClusterID: "c2", NewMemberID: "n-" + w[0],
			Member: w[0], Revision: number[int64](t, row{"": w[1]}, "", 0), Since: ago(t, "1m"),
		}
	}
}

// observeChange reads what the record says of a change of the members: "joining:
// NAME ID AGE", and "replace" or "promoting" behind it.
func (a archive) observeChange(t *testing.T, s row, r *state.Record) {
	t.Helper()
	has := func(words []string, word string) bool { return slices.Contains(words, word) }
	if w := strings.Fields(s["joining"]); len(w) > 2 {
		r.Joining = &state.Joining{
			Member: w[0], ID: strings.TrimPrefix(w[1], "none"), Since: ago(t, w[2]),
			Promoting: has(w, "promoting"), Replace: has(w, "replace"),
		}
	}
	if w := strings.Fields(s["leaving"]); len(w) > 2 {
		r.Leaving = &state.Leaving{Member: w[0], ID: w[1], Since: ago(t, w[2]), Why: "it is to leave", Replace: has(w, "replace"), Serving: has(w, "serving"), Asked: has(w, "asked")}
	}
	if w := strings.Fields(s["failed"]); len(w) == 3 {
		r.FailedJoin = &state.FailedJoin{Member: w[0], Times: number[int](t, row{"": w[1]}, "", 0), At: ago(t, w[2])}
	}
	r.Retired = pairs(s["retired"])
	r.Replacing, r.Hibernated, r.Deleted = s["replacing"], s["hibernated"] == "yes", s["deleted"] == "yes"
	r.Founders = number[int32](t, s, "founders", 0)
}

// ownerOf reads SOURCE#INSTANCE/CLAIM; nil for nothing.
func ownerOf(t *testing.T, text string) *state.Owner {
	t.Helper()
	if text == "" {
		return nil
	}
	source, rest, _ := strings.Cut(text, "#")
	instance, claim, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(claim)
	if err != nil {
		t.Fatal(err)
	}
	return &state.Owner{Source: source, Instance: instance, Claim: n}
}
