package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/outlook"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// The versions that the tables speak of: what runs, and what an upgrade goes to.
const (
	oldVersion = "3.5.35"
	newVersion = "3.6.16"
)

// noon is the time at which every table and scenario is looked at.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// healthy is a formed cluster of n members that is what Git says: nothing is to
// be done. Its template is "a", and the highest ordinal leads.
func healthy(n int32) *situation.Situation {
	d := state.Desired{
		Namespace: "db", Name: "orders", Commit: "c0ffee", SpecHash: "a", Template: "a",
		BackupURL: "s3://backups/{{ .UID }}.db",
		Spec:      schema.ClusterSpec{Version: oldVersion, Replicas: n},
	}
	d.Spec.Upgrade.Backup = schema.BackupRequired
	o := state.Observed{
		Auth:    &state.Auth{},
		Record:  &state.Record{ClusterID: "c1", Members: map[string]string{}, Applied: &state.Applied{SpecHash: "a", Version: oldVersion}, BornOn: state.Minor(oldVersion)},
		Objects: []state.Object{{Kind: "Service", Name: "orders", State: state.ObjectInSync}},
		Set: &state.Set{
			UID: "set", Replicas: n, Partition: n, Settled: true,
			Template: "a", Version: oldVersion, CurrentTemplate: "a", CurrentVersion: oldVersion,
			ChangedAt: noon.Add(-10 * time.Second), StatusAt: noon.Add(-10 * time.Second),
		},
	}
	r := state.Round{At: noon.Add(-time.Second), ClusterID: "c1", ClusterVersion: "3.5.0", Deep: true}
	for i := range n {
		m := state.Member{
			ID: fmt.Sprintf("m%d", i), Name: naming.Member("orders", i), Version: oldVersion,
			Leader: fmt.Sprintf("m%d", n-1), Term: 7, CommitIndex: 5000, AppliedIndex: 5000,
		}
		o.Record.Members[m.Name] = m.ID
		r.Members = append(r.Members, m)
		o.Pods = append(o.Pods, state.Pod{
			Name: m.Name, Ordinal: i, UID: "pod-" + m.ID, Template: "a", Version: oldVersion, Ready: true, Ran: true,
			ReadySince: noon.Add(-time.Hour), Created: noon.Add(-time.Hour),
		})
	}
	now := r
	now.At, now.Listened, now.Members = noon, true, append([]state.Member(nil), r.Members...)
	o.Rounds = []state.Round{r, now}
	return situation.Of(d, o, noon)
}

// memberVolume is the volume behind a claim, as large as it was asked for.
func memberVolume(claim string, size int64) state.Volume {
	ordinal, err := strconv.ParseInt(claim[strings.LastIndex(claim, "-")+1:], 10, 32)
	if err != nil {
		panic(err) // a slip in a table
	}
	return state.Volume{
		Claim: claim, UID: "uid-" + claim, Member: strings.TrimPrefix(claim, "data-"), Ordinal: int32(ordinal),
		Size: size, Capacity: size, Bound: true, Holds: fmt.Sprintf("m%d", ordinal),
	}
}

// memberVolumes are those of the first n members, of 8 GiB each.
func memberVolumes(n int32) []state.Volume {
	var volumes []state.Volume
	for i := range n {
		volumes = append(volumes, memberVolume(naming.Claim("", naming.Member("orders", i)), 8<<30))
	}
	return volumes
}

// pod and member give a row of the situation to change.
func podAt(s *situation.Situation, ordinal int32) *state.Pod {
	return s.Observed.Pod(naming.Member(s.Desired.Name, ordinal))
}

func memberAt(s *situation.Situation, ordinal int32) *state.Member {
	return s.Observed.Round().Member(naming.Member(s.Desired.Name, ordinal))
}

// mutation turns a healthy cluster into the case at hand.
type mutation func(*situation.Situation)

// with makes one change of several.
func with(changes ...mutation) mutation {
	return func(s *situation.Situation) {
		for _, c := range changes {
			c(s)
		}
	}
}

// commit is a new commit that asks for a version, under template "b".
func commit(version string) mutation {
	return func(s *situation.Situation) {
		s.Desired.Spec.Version, s.Desired.Template, s.Desired.SpecHash, s.Desired.Commit = version, "b", "b", "beef"
	}
}

// begun lets the StatefulSet have what Git says.
func begun(s *situation.Situation) {
	s.Observed.Set.Template, s.Observed.Set.Version = s.Desired.Template, s.Desired.Spec.Version
}

// rolled gives members template "b" and its version, healthy for an hour.
func rolled(version string, ordinals ...int32) mutation {
	return func(s *situation.Situation) {
		for _, i := range ordinals {
			podAt(s, i).Template, podAt(s, i).Version = "b", version
			for r := range s.Observed.Rounds {
				s.Observed.Rounds[r].Member(podAt(s, i).Name).Version = version
			}
		}
	}
}

// stale makes pods those of another revision than the newest, with the same hash.
func stale(ordinals ...int32) mutation {
	return func(s *situation.Situation) {
		for _, i := range ordinals {
			podAt(s, i).Stale = true
		}
	}
}

// down takes a member away: its pod is not ready and it does not answer.
func down(ordinal int32) mutation {
	return func(s *situation.Situation) {
		podAt(s, ordinal).Ready = false
		for i := range s.Observed.Rounds {
			m := s.Observed.Rounds[i].Member(podAt(s, ordinal).Name)
			m.Problem, m.Version, m.Leader = "connection refused", "", ""
		}
		memberAt(s, ordinal).Peers = state.PeersApart
	}
}

// seen lets the leader say of a member that does not answer what it knows.
func seen(ordinal int32, by state.Peers) mutation {
	return func(s *situation.Situation) { memberAt(s, ordinal).Peers = by }
}

// cutOff is a member whose node does not report any more, for an hour.
func cutOff(ordinal int32) mutation {
	return func(s *situation.Situation) {
		p := podAt(s, ordinal)
		p.Ready, p.NodeGone, p.NodeStopped, p.NodeGoneSince = false, true, true, noon.Add(-time.Hour)
	}
}

// leads makes a member the leader.
func leads(ordinal int32) mutation {
	return func(s *situation.Situation) { outlook.LeadBy(s, fmt.Sprintf("m%d", ordinal)) }
}

// backedUp records a backup of this cluster for what Git says, of some age.
func backedUp(age time.Duration) mutation {
	return func(s *situation.Situation) {
		s.Observed.Record.Backup = &state.Backup{ClusterID: "c1", For: state.ForUpgrade(s.Desired.Spec.Version), Time: noon.Add(-age)}
	}
}

// unformed makes the cluster one that has just been created, and has no pods.
func unformed(s *situation.Situation) {
	s.Observed.Record = &state.Record{}
	s.Observed.Pods, s.Observed.Rounds = nil, nil
}

// ruleCase is a row of a rule's table: what is changed in a healthy cluster of
// three, or of size members, and a part of what the rule then says; empty for
// nothing. It lacks what it must not say.
type ruleCase struct {
	name        string
	size        int32
	change      mutation
	want, lacks string
}

func checkRule(t *testing.T, eval func(*situation.Situation) verdict.Verdict, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := healthy(max(c.size, 1))
			if c.size == 0 {
				s = healthy(3)
			}
			if c.change != nil {
				c.change(s)
			}
			s.Desired = rendered(s.Desired, s.Observed)
			s = situation.Of(s.Desired, s.Observed, s.Now)
			got := said(eval, s)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if problem := endless(eval, s, muchLater); problem != "" && !strings.Contains(got, "maintenance window opens") && !strings.Contains(got, "outside the maintenance window") {
				t.Error(problem)
			}
			if c.lacks != "" && strings.Contains(got, c.lacks) {
				t.Errorf("got  %q\nwhich should lack %q", got, c.lacks)
			}
		})
	}
}

// rendered gives the stops on the way a template each, as the shell does.
func rendered(d state.Desired, o state.Observed) state.Desired {
	if stops := situation.Waypoints(d.Spec, o); d.Waypoints == nil && len(stops) > 1 {
		d.Waypoints = stops[:len(stops)-1]
		for i, stop := range d.Waypoints {
			d.Waypoints[i].Template = stopTexts([]state.Waypoint{stop})
		}
	}
	return d
}

// said is what a rule says. A panic is an answer too, a wrong one, and must not
// hide the rest of the table.
func said(eval func(*situation.Situation) verdict.Verdict, s *situation.Situation) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("panic: %v", r)
		}
	}()
	return words(eval(s))
}

// words is a verdict on one line.
func words(v verdict.Verdict) string {
	switch {
	case v.Hold != nil:
		return fmt.Sprintf("%s: %s", v.Hold.Kind, v.Hold)
	case v.Step != nil:
		return v.Step.String()
	}
	return ""
}
