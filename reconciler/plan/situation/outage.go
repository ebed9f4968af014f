package situation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// Outage is a cluster that no quorum serves, although the data of a quorum is whole: what
// keeps its members from running is their template, or Kubernetes.
type Outage struct {
	// Down are the members that do not run and whose volume is whole, highest ordinal
	// first.
	Down []string
	// Barred says that etcd has ended on its own account in none of them, so that nothing
	// on a volume can be the cause.
	Barred bool
}

// OutageOf returns nil where a quorum may serve or come back on its own, and where none can
// whatever Git says.
//
//	a member                                       counts as
//	ready, or follows a leader, or shuts down      may serve
//	answers, and follows nobody                    waits for a quorum
//	only just starts, or has just stopped          may serve
//	has no pod, or one that does not run           down, where its volume is whole
//	damaged, without its node or volume            lost
func OutageOf(s *Situation) *Outage {
	r := s.Observed.Round()
	if r == nil || r.Problem == "" {
		return nil
	}
	o, voters, up := &Outage{Barred: true}, s.Remnants(), 0
	for _, m := range voters {
		p := s.Observed.Pod(m.Name)
		switch {
		case p != nil && (p.Ready || p.Terminating || passing(s, *p)), m.Member != nil, m.starting:
			up++
		case wholeAndDown(s, m.Name):
			o.Down = append(o.Down, m.Name)
			o.Barred = o.Barred && (p == nil || p.Barred)
		}
	}
	quorum := state.Quorum(len(voters))
	if up >= quorum || up+len(o.Down) < quorum {
		return nil
	}
	slices.SortFunc(o.Down, func(a, b string) int { return int(naming.Ordinal(b) - naming.Ordinal(a)) })
	return o
}

// passing reports whether the trouble of a pod may pass: a node that has restarted starts
// its containers again. What Kubernetes itself keeps from running does not run before long.
func passing(s *Situation, p state.Pod) bool {
	grace := ComebackTime
	if p.Barred {
		grace = TroubleGrace
	}
	return p.Trouble != "" && s.Now.Sub(DownSince(s, p.Name)) < grace
}

// wholeAndDown reports whether a member does not run and its data is there, as far as
// Kubernetes and the guard in its pod know.
func wholeAndDown(s *Situation, member string) bool {
	p, v := s.Observed.Pod(member), s.Observed.Volume(member)
	if v == nil || !v.Bound || v.Terminating {
		return false
	}
	return p == nil || (p.Trouble != "" && p.Damage == "" && p.Found == "" && !p.NodeGone && !p.Unclaimed)
}

// Causes lists why members are down, those with one cause together.
func Causes(s *Situation, o *Outage) string {
	var order []string
	of := map[string][]string{}
	for _, name := range o.Down {
		why := "it has no pod"
		if p := s.Observed.Pod(name); p != nil {
			why = p.Trouble
		} else if r := RefusalOf(s); r != nil {
			why = "its pod cannot be created: " + r.Why
		}
		if of[why] == nil {
			order = append(order, why)
		}
		of[why] = append(of[why], name)
	}
	var texts []string
	for _, why := range order {
		texts = append(texts, fmt.Sprintf("%s (%s)", strings.Join(of[why], ", "), why))
	}
	return strings.Join(texts, "; ")
}

// MayRun tells why a member's pod may still run, or "": the word of a kubelet that does not
// report is not counted, and one that answers runs.
func MayRun(s *Situation, p state.Pod) (mayRun string) {
	m := s.Observed.Round().Member(p.Name)
	switch {
	case p.Ready:
		return p.Name + " is ready"
	case p.Terminating:
		return p.Name + " is shutting down"
	case m != nil && m.Leader != "":
		return p.Name + " follows a leader"
	case m != nil && m.ID != "":
		return "" // it serves nobody: it follows no leader, and its kubelet does not call it ready
	case p.Trouble == "":
		return "the pod of " + p.Name + " has no trouble"
	case !p.Reported:
		return "the node of " + p.Name + " does not report, or quorate may not list nodes"
	}
	return ""
}

// Swappable tells why a member may not come back with the version that is wanted while
// nothing can be asked of it, or "". Nothing is upgraded blindly: each version that it may
// have run is the wanted one, or one from which the roll under way goes there, or a patch
// of the same minor to which that is given up.
func Swappable(s *Situation, ran ...string) string {
	want := s.WantedVersion()
	for _, text := range ran {
		v, err := release.Parse(text)
		switch {
		case err != nil:
			return "it is unknown which etcd it ran"
		case v == want:
		case s.Observed.Set.Version == want.String() && release.Compare(v, want) < 0 && s.Blocked(v) == "" && want.Minor-v.Minor <= 1 && want.Major == v.Major:
		case s.Observed.Set.CurrentVersion == want.String() && v.Line() == want.Line():
		default:
			return fmt.Sprintf("it may have run etcd %s", v)
		}
	}
	return ""
}

// Recoveries are what spec.recovery could say, and what each gives up.
func Recoveries(s *Situation) string {
	id := s.Observed.Record.ClusterID
	var from []string
	if best := s.furthest(); best != "" {
		from = append(from, fmt.Sprintf("{clusterID: %q, member: %s}", id, best))
	}
	from = append(from, fmt.Sprintf("{clusterID: %q, objectURL: the URL of a backup}", id))
	return "commit spec.recovery: " + strings.Join(from, " or ")
}

// ComesAs is the template that the pod of a member gets when it is created.
func ComesAs(s *Situation, member string) string {
	if naming.Ordinal(member) < s.Observed.Set.Partition {
		return s.Observed.Set.CurrentTemplate
	}
	return s.Observed.Set.Template
}

// DownSince is since when a member has no pod that runs, as far as that is known.
func DownSince(s *Situation, member string) time.Time {
	switch p := s.Observed.Pod(member); {
	case p == nil:
		return s.Observed.Set.StatusAt
	case p.DownSince.IsZero():
		return p.Created
	default:
		return p.DownSince
	}
}
