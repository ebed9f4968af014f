package schedule

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/reconciler/state"
)

// 103: slow, unhealthy and strange members and learners give no backup; a follower
// goes before the leader.
func TestBackupSource(t *testing.T) {
	members := map[string]string{"a": "a1", "b": "b1", "c": "c1"}
	voter := func(name string, applied uint64) state.Member {
		return state.Member{Name: name, ID: name + "1", Leader: "a1", Term: 3, CommitIndex: 5000, AppliedIndex: applied, Hash: 9, HashRevision: 70, CompactRevision: 1}
	}
	three := func(change func(r *state.Round)) state.Round {
		r := state.Round{ClusterID: "c0", Deep: true, Members: []state.Member{voter("a", 5000), voter("b", 4999), voter("c", 5000)}}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		change func(r *state.Round)
		want   string
	}{
		"the follower that has most":     {func(*state.Round) {}, "c"},
		"an equal one by its name":       {func(r *state.Round) { r.Members[1].AppliedIndex = 5000 }, "b"},
		"not one that is slow":           {func(r *state.Round) { r.Members[2].AppliedIndex = 3999; r.Members[1].AppliedIndex = 4000 }, "b"},
		"not one that does not answer":   {func(r *state.Round) { r.Members[2].Problem = "refused" }, "b"},
		"not a learner":                  {func(r *state.Round) { r.Members[2].Learner = true }, "b"},
		"not one with another leader":    {func(r *state.Round) { r.Members[2].Leader, r.Members[2].Term = "x1", 2 }, "b"},
		"not one that nobody recorded":   {func(r *state.Round) { r.Members[2].ID = "other" }, "b"},
		"the leader when it is alone":    {func(r *state.Round) { r.Members = r.Members[:1] }, "a"},
		"a follower of a leader unseen":  {func(r *state.Round) { r.Members[0] = state.Member{Name: "a", ID: "a1", Problem: "refused"} }, "c"},
		"nobody without a list":          {func(r *state.Round) { r.Problem = "refused" }, "the members cannot be listed: refused"},
		"nobody of another cluster":      {func(r *state.Round) { r.ClusterID = "c9" }, "the members say that they are cluster c9, the record says c0"},
		"nobody without a leader":        {func(r *state.Round) { r.Members = []state.Member{{Name: "a", ID: "a1"}} }, "no member can give a backup: a follows no leader, or another one"},
		"nobody under CORRUPT":           {func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.Corrupt, MemberID: "0"}} }, "etcd has raised the alarm CORRUPT, and nobody knows yet whose data is right"},
		"anybody under NOSPACE":          {func(r *state.Round) { r.Alarms = []state.Alarm{{Kind: state.NoSpace, MemberID: "a1"}} }, "c"},
		"nobody where data differs":      {func(r *state.Round) { r.Members[1].Hash = 8 }, "b and a hold different data at revision 70, and nobody knows yet whose is right"},
		"hashes of other spans say none": {func(r *state.Round) { r.Members[1].Hash, r.Members[1].CompactRevision = 8, 60 }, "c"},
		"each with its reason": {func(r *state.Round) {
			r.Members[0].Problem, r.Members[1].Learner = "refused", true
			r.Members = r.Members[:2]
		}, "no member can give a backup: a does not answer: refused; b is a learner"},
	} {
		t.Run(name, func(t *testing.T) {
			m, problem := Source("c0", members, three(c.change))
			if got := m.Name + problem; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	// A cluster without a record is what its member says.
	if m, problem := Source("", nil, three(func(*state.Round) {})); m.Name != "c" || problem != "" {
		t.Errorf("%+v %s", m, strings.TrimSpace(problem))
	}
}
