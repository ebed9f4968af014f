package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/bundles"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// authorities are those of a cluster that quorate issues certificates for, made a day ago.
func authorities(s *situation.Situation) *state.Rotation {
	if s.Observed.Certificates.Rotation == nil {
		s.Desired.Spec.TLS = schema.TLSSpec{Mode: schema.TLSManaged}
		s.Observed.Certificates.Rotation = authoritiesOf(24 * time.Hour)
	}
	return s.Observed.Certificates.Rotation
}

// authoritiesOf are those of some age, which are good for ten years. All certificates are signed
// by them.
func authoritiesOf(age time.Duration) *state.Rotation {
	r := &state.Rotation{
		Made: noon.Add(-age), Ends: noon.Add(-age).AddDate(10, 0, 0), Absent: []string{"orders-ca-next", "orders-peer-ca-next"},
		Old: "orders-trust-old", Both: "orders-trust-old", New: "orders-trust-old", Trusts: map[string]time.Time{},
	}
	for _, name := range []string{"orders-server", "orders-client", "orders-peer"} {
		r.Leaves = append(r.Leaves, state.IssuedLeaf{Secret: name, By: state.ByBoth, Bundle: state.BundleOld})
	}
	return r
}

// trustingBoth has members trust both authorities, published so long ago.
func trustingBoth(ago time.Duration) mutation {
	return func(s *situation.Situation) {
		r := authorities(s)
		r.Next, r.Absent, r.Both, r.New = r.Absent, nil, "orders-trust-both", "orders-trust-new"
		r.Trusts[r.Both], r.Set, s.Desired.Trust = noon.Add(-ago), r.Both, r.Both
		for i := range r.Leaves {
			r.Leaves[i].By, r.Leaves[i].Bundle = state.ByPresent, state.BundleBoth
		}
	}
}

// found changes what is found of the authorities.
func found(change func(*state.Rotation)) mutation {
	return func(s *situation.Situation) { change(authorities(s)) }
}

// nextMade has the next authorities there, which have signed nothing.
var nextMade = with(issuedBy(state.ByPresent), found(func(r *state.Rotation) {
	r.Next, r.Absent, r.NextWord, r.Both, r.New = r.Absent, nil, "2026-12", "orders-trust-both", "orders-trust-new"
}))

// toldBoth has the Secret of each certificate say that both authorities are trusted.
var toldBoth = found(func(r *state.Rotation) {
	for i := range r.Leaves {
		r.Leaves[i].Bundle = state.BundleBoth
	}
})

// issuedBy has all certificates signed by some authorities.
func issuedBy(by state.Signer) mutation {
	return found(func(r *state.Rotation) {
		for i := range r.Leaves {
			r.Leaves[i].By = by
		}
	})
}

func TestRotation(t *testing.T) {
	asks := func(word string) mutation {
		return func(s *situation.Situation) { authorities(s); s.Desired.Spec.TLS.Rotate = word }
	}
	published := with(toldBoth, found(func(r *state.Rotation) { r.Trusts[r.Both] = noon.Add(-time.Hour) }))
	mounts := func(name string) mutation {
		return with(func(s *situation.Situation) { s.Desired.Trust = name }, found(func(r *state.Rotation) { r.Set, r.Mounted = name, []string{name} }))
	}
	ago := func(name string, d time.Duration) mutation {
		return found(func(r *state.Rotation) { r.Trusts[name] = noon.Add(-d) })
	}
	shown := func(by state.Signer) mutation {
		return found(func(r *state.Rotation) {
			r.Shown = []state.Handshake{{Member: "orders-0", Port: "client", By: by}, {Member: "orders-0", Port: "peer", By: by}}
		})
	}
	both := with(asks("2026-12"), nextMade, published, mounts("orders-trust-both"))
	all := with(both, ago("orders-trust-both", 30*time.Hour), issuedBy(state.ByNext))
	alone := with(all, mounts("orders-trust-new"), ago("orders-trust-new", time.Hour))
	anew := func(s *situation.Situation) { s.Desired.Template = "b" }
	noSet := func(s *situation.Situation) { s.Observed.Set = nil }
	leaf := func(by state.Signer) mutation { return found(func(r *state.Rotation) { r.Leaves[0].By = by }) }
	old := found(func(r *state.Rotation) { r.Made, r.Ends = noon.AddDate(-7, 0, 0), noon.AddDate(3, 0, 0) })
	left := with(asks("2026-12"), mounts("orders-trust-old"), ago("orders-trust-both", time.Hour), ago("orders-trust-old", time.Hour), found(func(r *state.Rotation) { r.Word = "2026-12" }))
	checkRule(t, certificates.Rotate, []ruleCase{
		{name: "563: without a StatefulSet nothing begins", change: with(asks("2026-12"), noSet)},
		{name: "563: nor before the cluster has formed", change: with(asks("2026-12"), func(s *situation.Situation) { s.Observed.Record.ClusterID = "" })},
		{name: "563: nor with authorities that nobody knows", change: with(asks("2026-12"), found(func(r *state.Rotation) { r.Made, r.Ends = time.Time{}, time.Time{} }))},
		{name: "564: and they do not grow old", change: with(asks(""), found(func(r *state.Rotation) { r.Made, r.Ends = time.Time{}, time.Time{} }))},
		{name: "563: why it has begun", change: with(asks("2026-12"), nextMade), want: `publish both authorities: Git asks for new authorities with spec.tls.rotate "2026-12"; who reads`},
		{name: "569: not for the word that waits", change: with(asks("2027-01"), nextMade), want: "publish both authorities: a change of the authorities has begun; who reads"},
		{name: "565: nor for a key that is back", change: with(asks(""), nextMade, found(func(r *state.Rotation) { r.NextWord = "" })), want: "publish both authorities: a change of the authorities has begun; who reads"},
		{name: "570: members mount what nobody has made", change: with(asks(""), mounts("orders-trust-lost")), want: "publish orders-trust-old: members mount another trust than that of the authorities"},
		{name: "570: until there is what they are to mount, which a roll brings", change: with(asks(""), anew, mounts("orders-trust-lost"), ago("orders-trust-old", time.Hour), ago("orders-trust-lost", time.Hour))},
		{name: "570: what they mount is made again by another rule", change: with(asks(""), mounts("orders-trust-old"))},
		{name: "566: clients have their time from the end of the roll on", change: with(both, shown(state.ByPresent), func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "b" })},
		{name: "563: members trust the next ones alone, and one certificate is of those before", change: with(alone, leaf(state.ByPresent)), want: "issue all certificates by the next authorities"},
		{name: "563: not while a pod is to restart", change: with(alone, func(s *situation.Situation) { podAt(s, 0).Template = "b" })},
		{name: "563: nor while one is missing", change: with(alone, withoutPod(0))},
		{name: "563: nor while the controller has not seen the template", change: with(alone, func(s *situation.Situation) { s.Observed.Set.Settled = false })},
		{name: "563: what is left stays as long as a pod mounts it", change: with(left, found(func(r *state.Rotation) { r.Mounted = append(r.Mounted, "orders-trust-both") }))},
		{name: "563: and while a roll is under way", change: with(left, func(s *situation.Situation) { s.Desired.Template = "b" })},
		{name: "568: taken back by leaving the word out", change: with(asks(""), nextMade, found(func(r *state.Rotation) { r.Word = "2026-06" })), want: "delete the next authorities"},
		{name: "568: but not to what grows old", change: with(asks(""), nextMade, old), want: "publish both authorities", lacks: "asks for another change"},
		{name: "568: taken back while members restart", change: with(asks(""), nextMade, mounts("orders-trust-old"), ago("orders-trust-old", time.Hour), func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "b" })},
		{name: "568: taken back, and one Secret does not trust both", change: with(both, leaf(state.ByNext), asks(""), found(func(r *state.Rotation) { r.Leaves[2].Bundle = state.BundleOther })), want: "publish both authorities: Git takes the change back, with spec.tls.rotate left out; who reads"},
		{name: "568: taken back, and what members are to trust is gone", change: with(asks(""), nextMade, mounts("orders-trust-old")), want: "publish orders-trust-old"},
		{name: "563: without certificates of quorate's there is nothing to change"},
		{name: "563: nothing is asked for", change: asks("")},
		{name: "563: the word is that of the authorities", change: with(asks("2026-12"), found(func(r *state.Rotation) { r.Word = "2026-12" }))},
		{name: "563: a word that is left out later asks for nothing", change: with(asks(""), found(func(r *state.Rotation) { r.Word = "2026-12" }))},
		{name: "563: a new word", change: asks("2026-12"), want: `make the next authorities: Git asks for new authorities with spec.tls.rotate "2026-12"; nothing trusts them yet`},
		{name: "564: two thirds of their life", change: with(asks(""), found(func(r *state.Rotation) { r.Made, r.Ends = noon.AddDate(-7, 0, 0), noon.AddDate(3, 0, 0) })), want: "make the next authorities: two thirds of the life of the authorities are over, which end on 2029-03-01"},
		{name: "564: not before", change: with(asks(""), found(func(r *state.Rotation) { r.Made, r.Ends = noon.AddDate(-6, 0, 0), noon.AddDate(4, 0, 0) }))},
		{name: "565: a key is lost", change: with(asks(""), found(func(r *state.Rotation) { r.Lost = []string{"orders-ca cannot sign: no key"} })), want: "make the next authorities: orders-ca cannot sign: no key"},
		{name: "563: one of them is missing", change: with(asks("2026-12"), nextMade, found(func(r *state.Rotation) { r.Next, r.Absent = r.Next[:1], r.Next[1:] })), want: "make the next authorities"},
		{name: "563: who reads what it trusts is to trust both", change: with(asks("2026-12"), nextMade), want: "publish both authorities"},
		{name: "563: one Secret does not say so", change: with(asks("2026-12"), nextMade, published, found(func(r *state.Rotation) { r.Leaves[2].Bundle = state.BundleOther })), want: "publish both authorities"},
		{name: "563: while members restart the rolls speak", change: with(asks("2026-12"), nextMade, published, func(s *situation.Situation) { s.Desired.Template, s.Desired.Trust = "b", "orders-trust-both" })},
		{name: "566: clients have a day", change: with(both, shown(state.ByPresent)), want: "Waiting: every member trusts both authorities; clients have until 2026-03-02T11:00:00Z to take up the ca.crt of their Secrets"},
		{name: "566: no more than Git says", change: with(both, shown(state.ByPresent), func(s *situation.Situation) { s.Desired.Spec.TLS.Overlap = seconds(3600) }), want: "issue all certificates by the next authorities: every member and every client trusts both"},
		{name: "567: members have not shown that they do", change: with(both, ago("orders-trust-both", 24*time.Hour)), want: "Waiting: every member trusts both authorities; a member has not shown yet in a handshake"},
		{name: "567: one refuses the next authority", change: with(both, ago("orders-trust-both", 25*time.Hour), shown(state.ByPresent), found(func(r *state.Rotation) {
			r.Shown[1].Refuses = map[state.Signer]string{state.ByNext: "unknown authority"}
		})), want: "orders-0, on its peer port, refuses the next authority: unknown authority"},
		{name: "567: one refuses that from before", change: with(both, ago("orders-trust-both", 24*time.Hour), shown(state.ByPresent), found(func(r *state.Rotation) {
			r.Shown[0].Refuses = map[state.Signer]string{state.ByPresent: "unknown authority"}
		})), want: "orders-0, on its client port, refuses the present authority"},
		{name: "567: one cannot be reached", change: with(both, ago("orders-trust-both", 24*time.Hour), shown(state.ByPresent), found(func(r *state.Rotation) { r.Shown[0].Problem = "connection refused" })), want: "could not be asked whom it trusts: connection refused"},
		{name: "563: a half of them is issued", change: with(both, ago("orders-trust-both", 24*time.Hour), shown(state.ByPresent), found(func(r *state.Rotation) { r.Leaves[0].By = state.ByNext })), want: "issue all certificates by the next authorities"},
		{name: "566: when all were issued is written down", change: all, want: "publish orders-trust-new: all certificates are issued by the authorities that stay"},
		{name: "566: clients have another day", change: with(all, ago("orders-trust-new", time.Hour), shown(state.ByNext)), want: "Waiting: all certificates are issued by the next authorities; clients have until 2026-03-02T11:00:00Z to take up the certificates of their Secrets"},
		{name: "567: a member shows its old certificate", change: with(all, ago("orders-trust-new", 24*time.Hour), shown(state.ByPresent)), want: "orders-0, on its client port, still shows a certificate of the other authority"},
		{name: "563: members trust the next ones alone", change: alone, want: "delete the authorities from before: members trust the others alone"},
		{name: "563: not while they restart", change: with(alone, rolled(oldVersion, 2), func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "b" })},
		{name: "563: what is left of the change goes", change: left, want: "delete the next authorities: the change of the authorities is over"},

		{name: "568: taken back before anybody trusts them", change: with(asks(""), nextMade), want: "delete the next authorities"},
		{name: "568: taken back when members trust both", change: with(both, asks("")), want: "publish orders-trust-old"},
		{name: "568: and then clients have their time", change: with(both, asks(""), ago("orders-trust-old", time.Hour), shown(state.ByPresent)), want: "Waiting: all certificates are issued by the authorities from before; clients have until 2026-03-02T11:00:00Z"},
		{name: "568: taken back with the word from before", change: with(all, asks("2026-06"), found(func(r *state.Rotation) { r.Word = "2026-06" }), shown(state.ByNext)), want: "issue all certificates by the authorities from before again"},
		{name: "568: no way back once members trust them alone", change: with(alone, asks("")), want: "delete the authorities from before"},
		{name: "568: nor to what cannot sign", change: with(asks(""), nextMade, found(func(r *state.Rotation) { r.Lost = []string{"orders-ca cannot sign: no key"} })), want: "publish both authorities: orders-ca cannot sign"},
		{name: "569: another word waits for the end", change: with(both, asks("2027-01"), shown(state.ByPresent)), want: `spec.tls.rotate "2027-01" asks for another change, which begins when this one, to "2026-12", is over`},
	})
	checkRule(t, start, []ruleCase{
		{name: "563: a roll says what members are to trust", change: with(asks("2026-12"), nextMade, published, anew, func(s *situation.Situation) { s.Desired.Trust = "orders-trust-both" }), want: "members are to trust both authorities; "},
		{name: "563: unless they trust it already", change: with(both, anew), want: "start the roll", lacks: "members are to trust"},
		{name: "570: or nothing else is to be trusted", change: with(asks(""), mounts("orders-trust-lost"), anew, func(s *situation.Situation) { s.Desired.Trust = "orders-trust-old" }), want: "start the roll", lacks: "members are to trust"},
	})
	for name, c := range map[string]struct {
		change mutation
		phase  trust.Phase
		trust  string
	}{
		"no certificates of quorate's":                      {func(*situation.Situation) {}, trust.None, ""},
		"members mount another trust":                       {with(asks(""), mounts("orders-trust-lost"), ago("orders-trust-old", time.Hour)), trust.None, "orders-trust-old"},
		"all is issued, and members do not trust it":        {with(asks("2026-12"), nextMade, published, issuedBy(state.ByNext)), trust.TrustBoth, "orders-trust-both"},
		"taken back, and a certificate is of the next ones": {with(asks(""), nextMade, published, leaf(state.ByNext)), trust.TrustBoth, "orders-trust-both"},
		"taken back, as well, where members mount theirs":   {with(asks(""), nextMade, published, leaf(state.ByNext), mounts("orders-trust-old"), ago("orders-trust-old", time.Hour)), trust.TrustBoth, "orders-trust-both"},
		"taken back, and members mount another trust":       {with(asks(""), nextMade, mounts("orders-trust-lost"), ago("orders-trust-old", time.Hour)), trust.Retire, "orders-trust-old"},
	} {
		s := healthy(3)
		c.change(s)
		if got := trust.Of(s.Desired.Spec.TLS, s.Observed, noon); got.Phase != c.phase || got.Trust != c.trust {
			t.Errorf("%s: %s, and members trust %q", name, got.Phase, got.Trust)
		}
	}
	ready := with(both, ago("orders-trust-both", 24*time.Hour), shown(state.ByPresent))
	for name, c := range map[string]struct {
		change mutation
		want   string
	}{
		"there is none":                      {ready, ""},
		"one speaks of the old ones alone":   {with(ready, ago("orders-trust-old", time.Hour), ago("orders-trust-new", time.Hour)), "orders-trust-old"},
		"which a pod mounts":                 {with(ready, ago("orders-trust-old", time.Hour), found(func(r *state.Rotation) { r.Mounted = append(r.Mounted, "orders-trust-old") })), ""},
		"taken back, of the next ones alone": {with(all, asks(""), shown(state.ByNext), ago("orders-trust-old", time.Hour), ago("orders-trust-new", time.Hour)), "orders-trust-new"},
	} {
		s := healthy(3)
		c.change(s)
		v := certificates.Rotate(situation.Of(s.Desired, s.Observed, noon))
		if act, ok := v.Step.Action.(action.SwitchCertificates); !ok || act.Against != c.want {
			t.Errorf("%s: %+v", name, v.Step)
		}
	}
	checkRule(t, certificates.Issue, []ruleCase{
		{name: "570: what members mount is gone", change: with(both, found(func(r *state.Rotation) { delete(r.Trusts, r.Both) })), want: "publish orders-trust-both: members mount it, and none of them starts without it"},
		{name: "570: what nobody can make again is not", change: with(both, found(func(r *state.Rotation) { r.Mounted = []string{"orders-trust-unknown"} }))},
	})
}

// 563: a plan shows a change to its end: two rolls, and what is between them.
func TestAPlanShowsAChangeOfTheAuthorities(t *testing.T) {
	s := healthy(3)
	authorities(s)
	s.Desired.Spec.TLS.Rotate = "2026-12"
	p := Make(s.Desired, s.Observed, noon)
	var kinds []string
	for _, step := range p.Steps {
		if k := step.Action.Kind(); k != "MoveLeader" && (len(kinds) == 0 || kinds[len(kinds)-1] != k) {
			kinds = append(kinds, k)
		}
	}
	want := []string{
		"MakeAuthorities", "PublishTrust", "StartRoll", "RestartMember", "EndRoll",
		"SwitchCertificates", "PublishTrust", "StartRoll", "RestartMember", "EndRoll", "RetireAuthorities",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("got  %q\nwant %q\n%s", kinds, want, p.Text())
	}
}

// expired has the authorities end while quorate was away: nobody trusts anybody, and no member
// serves.
func expired(s *situation.Situation) {
	authorities(s).Over = "orders-ca expired on 2026-02-28"
	for i := range s.Observed.Pods {
		s.Observed.Pods[i].Ready, s.Observed.Pods[i].EtcdReady = false, false
	}
	for i := range s.Observed.Rounds {
		for m := range s.Observed.Rounds[i].Members {
			s.Observed.Rounds[i].Members[m].Leader = ""
		}
	}
}

// 572: what has expired is replaced, and every member restarts with the next authorities, unless one
// serves all the same.
func TestRevive(t *testing.T) {
	published := with(toldBoth, found(func(r *state.Rotation) { r.Trusts[r.New] = noon.Add(-time.Minute) }))
	issued := issuedBy(state.ByNext)
	ready := with(expired, nextMade, published, issued, func(s *situation.Situation) { s.Desired.Template, s.Desired.Trust = "b", "orders-trust-new" })
	started := with(ready, func(s *situation.Situation) {
		s.Observed.Set.Template, s.Observed.Certificates.Rotation.Set = "b", "orders-trust-new"
	})
	open := with(started, func(s *situation.Situation) { s.Observed.Set.Partition = 0 })
	back := with(open, func(s *situation.Situation) {
		for i := range s.Observed.Pods {
			s.Observed.Pods[i].Template = "b"
		}
	})
	over := with(back, func(s *situation.Situation) { s.Observed.Set.CurrentTemplate = "b" })
	changedBefore := found(func(r *state.Rotation) { r.Set = r.Old })
	serves := func(s *situation.Situation) { podAt(s, 1).Ready = true }
	const wrong = "Unhealthy: certificates: by quorate's clock orders-ca expired on 2026-02-28, and orders-1 serves all the same; check the clock"
	checkRule(t, certificates.Issue, []ruleCase{
		{name: "572: the next ones are made", change: expired, want: "make the next authorities: orders-ca expired on 2026-02-28, and nobody trusts anybody any more"},
		{name: "572: also where members mount what they trust", change: with(expired, changedBefore), want: "make the next authorities"},
		{name: "572: one of them is missing", change: with(expired, nextMade, found(func(r *state.Rotation) { r.Next, r.Absent = r.Next[:1], r.Next[1:] })), want: "make the next authorities"},
		{name: "572: they are published", change: with(expired, nextMade), want: "publish both authorities: orders-ca expired on 2026-02-28; who reads what it trusts"},
		{name: "572: also where one Secret does not say so", change: with(expired, nextMade, published, found(func(r *state.Rotation) { r.Leaves[2].Bundle = state.BundleOld })), want: "publish both authorities"},
		{name: "572: or where members have nothing to mount", change: with(expired, nextMade, toldBoth), want: "publish both authorities"},
		{name: "572: then all is issued by them", change: with(expired, nextMade, published), want: "issue all certificates by the next authorities: orders-ca expired on 2026-02-28; nothing is trusted that could be lost by it"},
		{name: "572: a half of it is issued", change: with(expired, nextMade, published, issued, found(func(r *state.Rotation) { r.Leaves[0].By = state.ByPresent })), want: "issue all certificates by the next authorities"},
		{name: "572: also where the StatefulSet has them", change: with(over, found(func(r *state.Rotation) { r.Leaves[0].By = state.ByPresent })), want: "issue all certificates by the next authorities"},
		{name: "572: the StatefulSet gets what members are to trust", change: ready, want: "start the roll"},
		{name: "572: before a StatefulSet there is nothing to restart", change: with(ready, func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "572: nor when members trust the next ones", change: with(over, func(s *situation.Situation) { s.Observed.Set = nil })},
		{name: "572: nor before the cluster has formed", change: with(ready, func(s *situation.Situation) { s.Observed.Record.ClusterID = "" })},
		{name: "572: its controller has not seen it yet", change: with(open, func(s *situation.Situation) { s.Observed.Set.Settled = false })},
		{name: "572: a member would lose its volume", change: with(open, claimed(deletedClaim, "orders-1")), want: "Unhealthy: volume claim data-orders-1 is being deleted: the data of orders-1 goes with its pod"},
		{name: "572: every pod may be replaced", change: started, want: "set the StatefulSet's partition to 0: orders-ca expired on 2026-02-28; every member restarts"},
		{name: "572: one after the other", change: open, want: "restart orders-2"},
		{name: "572: without a wait for the one before", change: with(open, func(s *situation.Situation) { podAt(s, 2).Terminating = true }), want: "restart orders-1"},
		{name: "572: all have restarted", change: back},

		{name: "572: a member is ready", change: with(ready, serves), want: wrong},
		{name: "572: or etcd in it is", change: with(ready, func(s *situation.Situation) { podAt(s, 1).EtcdReady = true }), want: wrong},
		{name: "572: or follows a leader", change: with(ready, func(s *situation.Situation) { memberAt(s, 1).Leader = "m1" }), want: wrong},
		{name: "572: nobody was asked", change: with(ready, func(s *situation.Situation) { s.Observed.Rounds = nil }), want: "start the roll"},
		{name: "572: a member serves before any have restarted", change: with(expired, serves), want: wrong},
		{name: "572: or before the StatefulSet has the next ones", change: with(expired, nextMade, serves), want: wrong},
		{name: "572: or with authorities that were changed before", change: with(expired, changedBefore, serves), want: wrong},
		{name: "572: members serve again", change: with(back, serves)},
		{name: "572: and all of them do", change: with(over, serves)},
	})
	checkRule(t, certificates.Rotate, []ruleCase{
		{name: "572: at the end what has expired is deleted", change: with(over, serves), want: "delete the authorities from before"},
		{name: "572: but not while members restart", change: with(back, serves)},
	})
}

// 570: Secrets were put back from before a change of the authorities. While a member serves nothing is
// restarted; when none does, all are, with what these Secrets say.
func TestReunite(t *testing.T) {
	down := func(s *situation.Situation) {
		for i := range s.Observed.Pods {
			s.Observed.Pods[i].Ready = false
		}
		s.Observed.Rounds = nil
	}
	strange := with(found(func(r *state.Rotation) {
		r.Set, r.Mounted, r.Strangers = "orders-trust-1", []string{"orders-trust-1"}, []string{"orders-trust-1"}
		r.Trusts["orders-trust-1"] = noon.Add(-time.Hour)
	}), func(s *situation.Situation) {
		s.Observed.Certificates.Trust.Refused = []string{"the certificate in orders-peer is signed by a stranger"}
	})
	made := with(found(func(r *state.Rotation) { r.Trusts[r.Old] = noon }), func(s *situation.Situation) { s.Desired.Template, s.Desired.Trust = "b", "orders-trust-old" })
	started := with(strange, made, found(func(r *state.Rotation) { r.Set = r.Old }), func(s *situation.Situation) {
		s.Observed.Set.Template, s.Observed.Certificates.Trust.Refused = "b", nil
	})
	checkRule(t, certificates.Issue, []ruleCase{
		{name: "a member serves", change: strange},
		{name: "none does: what members are to trust is made", change: with(strange, down), want: "publish orders-trust-old: members mount orders-trust-1, which is gone or does not trust the certificates in their Secrets, and none of them serves"},
		{name: "the StatefulSet gets it", change: with(strange, made, down), want: "start the roll"},
		{name: "every pod may be replaced", change: with(started, down), want: "set the StatefulSet's partition to 0: members mount orders-trust-1, which is gone or does not trust the certificates in their Secrets, and none of them serves; every member restarts with the authorities of these"},
		{name: "one after the other", change: with(started, down, func(s *situation.Situation) { s.Observed.Set.Partition = 0 }), want: "restart orders-2"},
		{name: "members serve again, and the rest is an ordinary roll", change: with(started, func(s *situation.Situation) { s.Observed.Set.Partition = 0 })},
		{name: "all mount it", change: with(started, down, found(func(r *state.Rotation) { r.Strangers = nil }))},
		{name: "asleep nobody is to restart", change: with(strange, down, func(s *situation.Situation) { s.Observed.Record.Hibernated = true })},
	})
	checkRule(t, bundles.Trusted, []ruleCase{
		{name: "a member serves", change: strange, want: "Unhealthy: the certificate in orders-peer is signed by a stranger; put the Secrets of its certificates and authorities back as they were when the members started"},
		{name: "it is another program's certificate", change: with(strange, found(func(r *state.Rotation) { r.Strangers = nil })), want: "put back the certificate from before; then let ca.crt have"},
		{name: "members are to restart with what the Secrets say", change: started},
	})
}
