package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

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
func healthy(n int32) *situation {
	d := Desired{
		Namespace: "db", Name: "orders", Commit: "c0ffee", SpecHash: "a", Template: "a",
		BackupURL: "s3://backups/{{ .UID }}.db",
		Spec:      schema.ClusterSpec{Version: oldVersion, Replicas: n},
	}
	d.Spec.Upgrade.Backup = schema.BackupRequired
	o := Observed{
		Record:  &Record{ClusterID: "c1", Members: map[string]string{}, Applied: &Applied{SpecHash: "a", Version: oldVersion}, BornOn: line(oldVersion)},
		Objects: []Object{{Kind: "Service", Name: "orders", State: ObjectInSync}},
		Set: &Set{
			UID: "set", Replicas: n, Partition: n, Settled: true,
			Template: "a", Version: oldVersion, CurrentTemplate: "a", CurrentVersion: oldVersion,
		},
	}
	r := Round{At: noon.Add(-time.Second), ClusterID: "c1", ClusterVersion: "3.5.0", Deep: true}
	for i := range n {
		m := Member{
			ID: fmt.Sprintf("m%d", i), Name: podName("orders", i), Version: oldVersion,
			Leader: fmt.Sprintf("m%d", n-1), Term: 7, Commit: 5000, Applied: 5000,
		}
		o.Record.Members[m.Name] = m.ID
		r.Members = append(r.Members, m)
		o.Pods = append(o.Pods, Pod{
			Name: m.Name, Ordinal: i, UID: "pod-" + m.ID, Template: "a", Version: oldVersion, Ready: true, Ran: true,
			ReadySince: noon.Add(-time.Hour), Created: noon.Add(-time.Hour),
		})
	}
	now := r
	now.At, now.Members = noon, append([]Member(nil), r.Members...)
	o.Rounds = []Round{r, now}
	return newSituation(d, o, noon)
}

// memberVolume is the volume behind a claim, as large as it was asked for.
func memberVolume(claim string, size int64) Volume {
	ordinal, err := strconv.ParseInt(claim[strings.LastIndex(claim, "-")+1:], 10, 32)
	if err != nil {
		panic(err) // a slip in a table
	}
	return Volume{
		Claim: claim, UID: "uid-" + claim, Member: strings.TrimPrefix(claim, "data-"), Ordinal: int32(ordinal),
		Size: size, Capacity: size, Bound: true, Holds: fmt.Sprintf("m%d", ordinal),
	}
}

// memberVolumes are those of the first n members, of 8 GiB each.
func memberVolumes(n int32) []Volume {
	var volumes []Volume
	for i := range n {
		volumes = append(volumes, memberVolume(claimOf(podName("orders", i)), 8<<30))
	}
	return volumes
}

// pod and member give a row of the situation to change.
func (s *situation) pod(ordinal int32) *Pod { return s.o.pod(podName(s.d.Name, ordinal)) }

func (s *situation) member(ordinal int32) *Member {
	return s.o.round().member(podName(s.d.Name, ordinal))
}

// mutation turns a healthy cluster into the case at hand.
type mutation func(*situation)

// with makes one change of several.
func with(changes ...mutation) mutation {
	return func(s *situation) {
		for _, c := range changes {
			c(s)
		}
	}
}

// commit is a new commit that asks for a version, under template "b".
func commit(version string) mutation {
	return func(s *situation) {
		s.d.Spec.Version, s.d.Template, s.d.SpecHash, s.d.Commit = version, "b", "b", "beef"
	}
}

// begun lets the StatefulSet have what Git says.
func begun(s *situation) { s.o.Set.Template, s.o.Set.Version = s.d.Template, s.d.Spec.Version }

// rolled gives members template "b" and its version, healthy for an hour.
func rolled(version string, ordinals ...int32) mutation {
	return func(s *situation) {
		for _, i := range ordinals {
			s.pod(i).Template, s.pod(i).Version = "b", version
			for r := range s.o.Rounds {
				s.o.Rounds[r].member(s.pod(i).Name).Version = version
			}
		}
	}
}

// down takes a member away: its pod is not ready and it does not answer.
func down(ordinal int32) mutation {
	return func(s *situation) {
		s.pod(ordinal).Ready = false
		s.member(ordinal).Problem = "connection refused"
		s.o.Rounds[0].member(s.pod(ordinal).Name).Problem = "connection refused"
	}
}

// leads makes a member the leader.
func leads(ordinal int32) mutation {
	return func(s *situation) { s.lead(fmt.Sprintf("m%d", ordinal)) }
}

// backedUp records a backup of this cluster for what Git says, of some age.
func backedUp(age time.Duration) mutation {
	return func(s *situation) {
		s.o.Record.Backup = &Backup{ClusterID: "c1", For: s.d.Spec.Version, Time: noon.Add(-age)}
	}
}

// unformed makes the cluster one that has just been created, and has no pods.
func unformed(s *situation) {
	s.o.Record = &Record{}
	s.o.Pods, s.o.Rounds = nil, nil
}

// ruleCase is a row of a rule's table: what is changed in a healthy cluster of
// three, or of size members, and a part of what the rule then says; empty for
// nothing.
type ruleCase struct {
	name   string
	size   int32
	change mutation
	want   string
}

func checkRule(t *testing.T, eval func(*situation) verdict, cases []ruleCase) {
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
			s.d = rendered(s.d, s.o)
			s = newSituation(s.d, s.o, s.now)
			got := said(eval, s)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// rendered gives the stops on the way a template each, as the shell does.
func rendered(d Desired, o Observed) Desired {
	if stops := Stops(d.Spec, o); d.Stops == nil && len(stops) > 1 {
		d.Stops = stops[:len(stops)-1]
		for i, stop := range d.Stops {
			d.Stops[i].Template = stopTexts([]Stop{stop})
		}
	}
	return d
}

// said is what a rule says. A panic is an answer too, a wrong one, and must not
// hide the rest of the table.
func said(eval func(*situation) verdict, s *situation) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("panic: %v", r)
		}
	}()
	return words(eval(s))
}

// words is a verdict on one line.
func words(v verdict) string {
	switch {
	case v.hold != nil:
		return fmt.Sprintf("%s: %s", v.hold.Kind, v.hold)
	case v.step != nil:
		return v.step.String()
	}
	return ""
}
