package plan

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// speaking has the template listen in a mode, and in another one as well.
func speaking(own, also schema.TLSMode) mutation {
	return func(s *situation.Situation) {
		s.Observed.Transport = state.Transport{Own: own, Also: also}
	}
}

// wantsMode is what Git asks for.
func wantsMode(mode schema.TLSMode) mutation {
	return func(s *situation.Situation) { s.Desired.Spec.TLS.Mode = mode }
}

// listedAt has etcd's list, and the record, have members at URLs of a mode on some ports.
func listedAt(mode schema.TLSMode, ports []int, ordinals ...int32) mutation {
	return func(s *situation.Situation) {
		if s.Observed.Record.PeerURLs == nil {
			s.Observed.Record.PeerURLs = map[string][]string{}
		}
		s.Observed.Record.MovedAt = noon.Add(-time.Hour)
		for _, ordinal := range ordinals {
			name := naming.Member("orders", ordinal)
			s.Observed.Record.PeerURLs[s.Observed.Record.Members[name]] = peerURLs(s.Desired, name, mode, ports...)
			for i := range s.Observed.Rounds {
				s.Observed.Rounds[i].Member(name).PeerURLs = peerURLs(s.Desired, name, mode, ports...)
			}
		}
	}
}

func peerURLs(d state.Desired, name string, mode schema.TLSMode, ports ...int) (urls []string) {
	c := schema.EtcdCluster{Metadata: schema.Metadata{Name: d.Name, Namespace: d.Namespace}}
	for _, port := range ports {
		urls = append(urls, naming.URLOn(naming.SchemeOf(mode), naming.MemberHost(c, name), port))
	}
	return urls
}

// overlapping is a cluster whose members are moved, and listen to both for an hour.
func overlapping(overlap time.Duration) mutation {
	return with(speaking(schema.TLSDisabled, schema.TLSManaged), wantsMode(schema.TLSManaged), listedAt(schema.TLSManaged, []int{2380, 2382}, 0, 1, 2),
		func(s *situation.Situation) { s.Desired.Spec.TLS.Overlap = &metav1.Duration{Duration: overlap} })
}

// I22: spec.tls.mode changes between plain text and TLS.
func TestTransport(t *testing.T) {
	const plain, tls = schema.TLSDisabled, schema.TLSManaged
	usual, both := []int{2380}, []int{2380, 2382}
	rolls := func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "before" }
	checkRule(t, certificates.Transport, []ruleCase{
		{name: "plain stays plain", change: with(speaking(plain, ""), wantsMode(plain))},
		{name: "TLS stays TLS", change: with(speaking(tls, ""), wantsMode(tls))},
		{name: "what members listen to is not known", change: wantsMode(plain)},
		{name: "585: the first roll is that of the rule start", change: with(speaking(plain, ""), wantsMode(tls))},
		{name: "585: nothing moves in the midst of it", change: with(speaking(plain, tls), wantsMode(tls), rolls)},
		{name: "585: nor while a pod is missing", change: with(speaking(plain, tls), wantsMode(tls), withoutPod(1))},
		{
			name: "585: then members are moved, the lowest first", change: with(speaking(plain, tls), wantsMode(tls)),
			want: "move orders-0 in the member list to https://orders-0.orders-peers.db.svc:2380 and https://orders-0.orders-peers.db.svc:2382: every member listens to plain text and to TLS",
		},
		{name: "585: one by one", change: with(speaking(plain, tls), wantsMode(tls), listedAt(tls, both, 0)), want: "move orders-1 in the member list to https://"},
		{name: "585: also where the record alone lacks one", change: with(overlapping(time.Minute), func(s *situation.Situation) {
			delete(s.Observed.Record.PeerURLs, s.Observed.Record.Members["orders-2"])
		}), want: "move orders-2 in the member list to https://"},
		{name: "585: also where etcd alone has one elsewhere", change: with(overlapping(time.Minute), func(s *situation.Situation) {
			s.Observed.Rounds[len(s.Observed.Rounds)-1].Member("orders-1").PeerURLs = []string{"http://orders-1:2380"}
		}), want: "move orders-1 in the member list to https://"},
		{
			name: "586: clients have their time", change: overlapping(2 * time.Hour),
			want: "Waiting: every member listens to plain text and to TLS; clients have until 2026-03-01T13:00:00Z to move to TLS, which alone is spoken after the next roll",
		},
		{name: "586: then comes the second roll", change: overlapping(time.Hour)},
		{name: "586: nothing moves in the midst of that", change: with(speaking(tls, ""), wantsMode(tls), listedAt(tls, both, 0, 1, 2), rolls)},
		{
			name: "586: in the end members are on their usual port", change: with(speaking(tls, ""), wantsMode(tls), listedAt(tls, both, 0, 1, 2)),
			want: "move orders-0 in the member list to https://orders-0.orders-peers.db.svc:2380: the change of spec.tls.mode is over",
		},
		{name: "586: and stay there", change: with(speaking(tls, ""), wantsMode(tls), listedAt(tls, usual, 0, 1, 2))},
		{name: "586: as does one that has joined since", change: with(speaking(tls, ""), wantsMode(tls), listedAt(tls, usual, 0, 1))},
		{name: "586: where no change was, nobody is moved", change: with(speaking(tls, ""), wantsMode(tls), func(s *situation.Situation) {
			s.Observed.Rounds[len(s.Observed.Rounds)-1].Member("orders-1").PeerURLs = []string{"http://orders-1:2380"}
		})},
		{name: "587: from TLS to plain text", change: with(speaking(tls, plain), wantsMode(plain)), want: "move orders-0 in the member list to http://orders-0.orders-peers.db.svc:2380 and http://orders-0.orders-peers.db.svc:2382"},
		{name: "587: clients have their time", change: with(speaking(tls, plain), wantsMode(plain), listedAt(plain, both, 0, 1, 2)), want: "to move to plain text"},
		{
			name: "588: taken back, members move back", change: with(speaking(plain, tls), wantsMode(plain), listedAt(tls, both, 0, 1)),
			want: "move orders-0 in the member list to http://orders-0.orders-peers.db.svc:2380: spec.tls.mode is what it was again",
		},
		{name: "588: where etcd alone has one moved", change: with(speaking(plain, tls), wantsMode(plain), listedAt(tls, both, 1), func(s *situation.Situation) { s.Observed.Record.PeerURLs = nil }), want: "move orders-1 in the member list to http://"},
		{name: "588: where the record alone has one moved", change: with(speaking(plain, tls), wantsMode(plain), func(s *situation.Situation) {
			s.Observed.Record.PeerURLs = map[string][]string{s.Observed.Record.Members["orders-1"]: {"https://orders-1:2380"}}
		}), want: "move orders-1 in the member list to http://"},
		{name: "588: clients move back as well", change: with(speaking(plain, tls), wantsMode(plain), listedAt(plain, usual, 0, 1, 2)), want: "to move to plain text"},
		{name: "588: then members restart", change: with(speaking(plain, tls), wantsMode(plain), listedAt(plain, usual, 0, 1, 2), func(s *situation.Situation) { s.Observed.Record.MovedAt = noon.Add(-24 * time.Hour) })},
	})
}

// 585 588: what members are made with next, for each template and each wish.
func TestTransportOfTheTemplate(t *testing.T) {
	const plain, tls, theirs = schema.TLSDisabled, schema.TLSManaged, schema.TLSSecrets
	both := []int{2380, 2382}
	for _, c := range []struct {
		name      string
		change    mutation
		own, also schema.TLSMode
		phase     transport.Phase
	}{
		{"to TLS", with(speaking(plain, ""), wantsMode(tls)), plain, tls, transport.Open},
		{"to another issuer's", with(speaking(plain, ""), wantsMode(theirs)), plain, theirs, transport.Open},
		{"to plain text", with(speaking(tls, ""), wantsMode(plain)), tls, plain, transport.Open},
		{"at rest", with(speaking(tls, ""), wantsMode(tls)), tls, "", transport.None},
		{"not over", overlapping(2 * time.Hour), plain, tls, transport.Overlap},
		{"since a time that is not known", with(overlapping(time.Hour), func(s *situation.Situation) { s.Observed.Record.MovedAt = time.Time{} }), plain, tls, transport.Overlap},
		{"over", overlapping(time.Hour), tls, "", transport.Close},
		{"over, and rolling", with(overlapping(time.Hour), func(s *situation.Situation) { s.Observed.Pods[0].Template = "other" }), plain, tls, transport.Open},
		{"taken back", with(speaking(plain, tls), wantsMode(plain)), plain, "", transport.Close},
		{"taken back, and not moved back", with(speaking(plain, tls), wantsMode(plain), listedAt(tls, both, 2)), plain, tls, transport.Move},
		{"taken back in the last roll", with(speaking(tls, ""), wantsMode(plain), listedAt(tls, both, 0, 1, 2)), tls, plain, transport.Open},
		{"taken back, and moved back", with(speaking(plain, tls), wantsMode(plain), listedAt(plain, both[:1], 0, 1, 2)), plain, tls, transport.Overlap},
		{"taken back twice", with(speaking(tls, plain), wantsMode(tls), listedAt(tls, both, 0, 1, 2)), tls, plain, transport.Overlap},
		{"no cluster yet", with(speaking(plain, ""), wantsMode(tls), func(s *situation.Situation) { s.Observed.Record.ClusterID = "" }), plain, "", transport.None},
		{"no StatefulSet, and a pod", with(speaking(plain, tls), wantsMode(tls), func(s *situation.Situation) { s.Observed.Set = nil }), plain, tls, transport.None},
		{"neither", wantsMode(tls), tls, "", transport.None},
		{"neither, of members that were moved", with(wantsMode(tls), listedAt(tls, both, 1)), plain, tls, transport.None},
		{"neither, of members that were moved to TLS, and Git goes back", with(wantsMode(plain), listedAt(tls, both, 1)), plain, tls, transport.None},
		{"neither, of members that were moved to plain text", with(wantsMode(plain), listedAt(plain, both, 1)), tls, plain, transport.None},
		{"neither, of members that are on their usual port", with(wantsMode(plain), listedAt(tls, both[:1], 0, 1, 2)), tls, "", transport.None},
		{"neither, of members on their usual port in plain text", with(wantsMode(tls), listedAt(plain, both[:1], 0, 1, 2)), plain, "", transport.None},
		{"neither, with Secrets that are named for nothing", with(wantsMode(tls), listedAt(tls, both, 1), func(s *situation.Situation) { s.Desired.Spec.TLS.Secrets.Server = "theirs" }), plain, tls, transport.None},
		{"no record", with(wantsMode(tls), func(s *situation.Situation) { s.Observed.Record = nil }), tls, "", transport.None},
		{"no member answers", with(overlapping(2*time.Hour), func(s *situation.Situation) { s.Observed.Rounds = nil }), plain, tls, transport.Overlap},
		{"neither, of members of another issuer", with(wantsMode(plain), listedAt(tls, both, 1), func(s *situation.Situation) { s.Desired.Spec.TLS.Secrets.Server = "theirs" }), plain, theirs, transport.None},
	} {
		s := healthy(3)
		c.change(s)
		a := transport.Of(s.Desired, s.Observed, noon)
		if a.Template.Own != c.own || a.Template.Also != c.also || a.Phase != c.phase {
			t.Errorf("%s: %q and %q in phase %q, not %q and %q in %q", c.name, a.Template.Own, a.Template.Also, a.Phase, c.own, c.also, c.phase)
		}
	}
}

// 585: a plan shows a change of the mode to its end: two rolls, and what is between them.
func TestAPlanShowsAChangeOfTheMode(t *testing.T) {
	s := healthy(3)
	with(speaking(schema.TLSDisabled, ""), wantsMode(schema.TLSManaged))(s)
	// Git's template is that of its first stop.
	s.Desired.Template = "both"
	p := Make(s.Desired, s.Observed, noon)
	var kinds []string
	for _, step := range p.Steps {
		if k := step.Action.Kind(); k != "MoveLeader" && k != "RecordApplied" && (len(kinds) == 0 || kinds[len(kinds)-1] != k) {
			kinds = append(kinds, k)
		}
	}
	if want := []string{"StartRoll", "RestartMember", "EndRoll", "MoveMember", "StartRoll", "RestartMember", "EndRoll", "MoveMember"}; !slices.Equal(kinds, want) {
		t.Errorf("got  %q\nwant %q\n%s", kinds, want, p.Text())
	}
}

// 585: a roll says what it does to what members listen to, and one that does nothing of it says nothing.
func TestARollSaysWhatMembersListenTo(t *testing.T) {
	const plain, tls = schema.TLSDisabled, schema.TLSManaged
	for name, c := range map[string]struct {
		change mutation
		want   string
	}{
		"at rest":      {with(speaking(tls, ""), wantsMode(tls)), ""},
		"not known":    {wantsMode(tls), ""},
		"both":         {with(speaking(plain, ""), wantsMode(tls)), "members are to listen to plain text and to TLS, for spec.tls.mode changes; "},
		"both, longer": {overlapping(2 * time.Hour), ""},
		"TLS":          {overlapping(time.Hour), "members are to listen to TLS alone; "},
	} {
		s := healthy(3)
		c.change(s)
		s = situation.Of(s.Desired, s.Observed, noon)
		if got := certificates.WhyTransport(s); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}
