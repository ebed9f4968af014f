package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler/plan/bundles"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// namedLeaves are the certificates of the other program, and ownLeaves those of quorate's.
var (
	namedLeaves = state.Transport{Own: schema.TLSSecrets, Server: "their-server", Peer: "their-peer"}
	ownLeaves   = state.Transport{Own: schema.TLSManaged}
)

// handsOver is a cluster whose members show the certificates of one issuer, and whose file asks for those of
// the other one. Nothing is wrong with either, and the StatefulSet was changed two days ago.
func handsOver(from state.Transport, to schema.TLSMode, changes ...func(*state.Issuers)) mutation {
	return func(s *situation.Situation) {
		s.Desired.Spec.TLS = schema.TLSSpec{Mode: to, Secrets: schema.TLSSecretNames{Server: "their-server", Peer: "their-peer", Client: "their-client"}}
		s.Observed.Transport, s.Observed.Set.ChangedAt = from, noon.Add(-48*time.Hour)
		i := &state.Issuers{Both: "both", Alone: "alone", NamedAt: noon.Add(-time.Hour)}
		if from.Own == schema.TLSManaged {
			s.Observed.Certificates.Rotation = authoritiesOf(24 * time.Hour)
		} else {
			s.Observed.Certificates.Trust = state.Trust{Wanted: "theirs", Kept: []string{"theirs"}, Running: []string{"theirs"}}
		}
		for _, change := range changes {
			change(i)
		}
		s.Desired.Trust = i.Mounted
		s.Observed.Certificates.Issuers = i
	}
}

// bothTold has both issuers published.
func bothTold(i *state.Issuers) { i.Told, i.Made = true, []string{"both"} }

// bothTrusted has the template mount what trusts both issuers.
func bothTrusted(i *state.Issuers) { bothTold(i); i.Mounted, i.Mixed = "both", true }

// aloneMarked has what will be trusted in the end written down.
func aloneMarked(i *state.Issuers) { bothTrusted(i); i.Made = append(i.Made, "alone") }

// changedAgo has the StatefulSet changed at a time before.
func changedAgo(ago time.Duration) mutation {
	return func(s *situation.Situation) { s.Observed.Set.ChangedAt = noon.Add(-ago) }
}

// 594 to 599: quorate takes over from another program, or this from it.
func TestIssuer(t *testing.T) {
	toNamed := func(changes ...func(*state.Issuers)) mutation {
		return handsOver(ownLeaves, schema.TLSSecrets, changes...)
	}
	toOwn := func(changes ...func(*state.Issuers)) mutation {
		return handsOver(namedLeaves, schema.TLSManaged, changes...)
	}
	// Members show the certificates that Git wants.
	named := func(changes ...func(*state.Issuers)) mutation {
		return handsOver(namedLeaves, schema.TLSSecrets, changes...)
	}
	own := func(changes ...func(*state.Issuers)) mutation {
		return handsOver(ownLeaves, schema.TLSManaged, changes...)
	}
	bad := func(i *state.Issuers) { i.Problems = []string{"their-peer expired on 2026-02-01"} }
	missing := func(i *state.Issuers) { i.Missing, i.Both, i.Alone = []string{"orders-ca", "orders-server"}, "", "" }
	left := func(i *state.Issuers) { i.Left = []string{"orders-ca", "orders-server"} }
	midRoll := with(rolled(oldVersion, 2), func(s *situation.Situation) {
		s.Observed.Set.Template, s.Desired.Template = podAt(s, 2).Template, podAt(s, 2).Template
	})
	word := func(s *situation.Situation) { s.Desired.Spec.TLS.Rotate = "2026-12" }
	checkRule(t, certificates.Issuer, []ruleCase{
		{name: "there is one issuer"},
		{name: "594: certificates that are not good change nothing", change: toNamed(bad), want: "Unhealthy: spec.tls.mode asks for certificates of the other program: their-peer expired on 2026-02-01; replace the Secrets named here, or set the mode back"},
		{name: "595: what quorate has not issued yet is issued", change: toOwn(missing), want: "issue certificates: spec.tls.mode asks for certificates of quorate's; nothing shows or trusts them yet: orders-ca, orders-server"},
		{name: "595: for as many members as Git wants", change: toOwn(func(i *state.Issuers) { i.MissingSANs = []string{"orders-server"} }), want: "they were issued for fewer members than Git wants"},
		{name: "595: anew, where they grow old", change: toOwn(func(i *state.Issuers) { i.Due = []string{"orders-server"} }), want: "two thirds of their life are over"},
		{name: "595: and so those of applications", change: toOwn(func(i *state.Issuers) {
			i.Clients = []state.ClientCertificate{{Secret: "orders-client-checkout", Why: "is missing"}}
		}), want: "orders-client-checkout"},
		{name: "595: what members trust is known first", change: with(toOwn(), func(s *situation.Situation) { s.Observed.Certificates.Trust.Kept = nil })},
		{name: "594: both are published", change: toNamed(), want: "publish the authorities of both issuers: spec.tls.mode asks for certificates of the other program; who reads what it trusts from now on trusts both issuers"},
		{name: "594: as long as a Secret does not say so", change: toNamed(bothTold, func(i *state.Issuers) { i.Told = false }), want: "publish the authorities of both issuers"},
		{name: "595: in the other direction, too", change: toOwn(), want: "publish the authorities of both issuers: spec.tls.mode asks for certificates of quorate; "},
		{name: "594: the kubelets have their time", change: toNamed(bothTold, func(i *state.Issuers) { i.NamedAt = noon.Add(-time.Minute) }), want: "Waiting: a Secret of spec.tls.secrets has changed; the kubelets have until 2026-03-01T12:02:00Z"},
		{name: "594: then the rolls speak", change: toNamed(bothTold)},
		{name: "596: clients have a day from the end of the roll on", change: with(toNamed(bothTrusted), changedAgo(time.Hour)), want: "Waiting: every member trusts both issuers; clients have until 2026-03-02T11:00:00Z to trust both as well; then members show certificates of the other program"},
		{name: "596: when that was is not known", change: with(toNamed(bothTrusted), func(s *situation.Situation) {
			s.Observed.Set.ChangedAt, podAt(s, 1).Created = time.Time{}, noon.Add(-30*time.Minute)
		}), want: "Waiting: every member trusts both issuers; clients have until 2026-03-02T11:30:00Z"},
		{name: "596: no more than Git says", change: with(toNamed(bothTrusted), changedAgo(time.Hour), func(s *situation.Situation) { s.Desired.Spec.TLS.Overlap = seconds(3600) })},
		{name: "596: not before the roll is over", change: with(toNamed(bothTrusted), changedAgo(time.Hour), midRoll)},
		{name: "594: what will be trusted is written down", change: named(bothTrusted), want: "keep what members trust in alone: members show certificates of the other program, which alone will be trusted"},
		{name: "595: in the other direction, too", change: own(bothTrusted), want: "publish alone: members show certificates of quorate, which alone will be trusted"},
		{name: "594: not while they restart", change: with(named(bothTrusted), midRoll)},
		{name: "596: clients have another day", change: with(named(aloneMarked), changedAgo(time.Hour)), want: "Waiting: every member shows a certificate of the other program; clients have until 2026-03-02T11:00:00Z to show one of this issuer as well; then members trust it alone"},
		{name: "596: and the kubelets theirs", change: named(aloneMarked, func(i *state.Issuers) { i.NamedAt = noon.Add(-time.Minute) }), want: "clients have until 2026-03-01T12:02:00Z"},
		{name: "596: then the rolls speak", change: named(aloneMarked)},
		{name: "594: what is left of quorate's goes", change: named(left), want: "delete the authorities and certificates that quorate has made: members trust the other program's authorities alone, and show its certificates"},
		{name: "594: not while a member may show it", change: with(named(left), midRoll)},
		{name: "594: nor while members trust it", change: with(named(bothTrusted, left), changedAgo(time.Hour)), want: "keep what members trust in alone"},
		{name: "595: what members show stays", change: own(left)},
		{name: "597: new authorities begin when it is over", change: with(own(aloneMarked), changedAgo(time.Hour), word), want: `; spec.tls.rotate "2026-12" asks for new authorities, which begins when that is over`},
		{name: "597: no word asks for nothing", change: with(own(aloneMarked), changedAgo(time.Hour)), want: "Waiting: every member shows", lacks: "spec.tls.rotate"},
		{name: "597: nor does that of the authorities", change: with(own(aloneMarked), changedAgo(time.Hour), word, func(s *situation.Situation) { s.Observed.Certificates.Rotation.Word = "2026-12" }), want: "Waiting: every member shows", lacks: "spec.tls.rotate"},
		{name: "597: nor does a word that was taken out", change: with(own(aloneMarked), changedAgo(time.Hour), func(s *situation.Situation) { s.Observed.Certificates.Rotation.Word = "2026-12" }), want: "Waiting: every member shows", lacks: "spec.tls.rotate"},
		{name: "597: nor one beside the other program's", change: with(named(aloneMarked), changedAgo(time.Hour), word), want: "Waiting: every member shows", lacks: "spec.tls.rotate"},
		{name: "595: nothing is to be issued, and nothing is known to trust", change: toOwn(func(i *state.Issuers) { i.Both = "" })},
		{name: "597: a change of the authorities ends first", change: with(toNamed(), func(s *situation.Situation) { s.Observed.Certificates.Rotation.Next = []string{"orders-ca-next"} })},
		{name: "597: and so one to plain text", change: with(toNamed(), func(s *situation.Situation) { s.Observed.Transport.Also = schema.TLSDisabled })},
	})
	checkRule(t, certificates.Rotate, []ruleCase{
		{name: "597: no new authorities while the issuer changes", change: with(own(aloneMarked), changedAgo(time.Hour), word)},
		{name: "597: nor is what is mounted taken back", change: with(own(bothTrusted), func(s *situation.Situation) {
			r := s.Observed.Certificates.Rotation
			r.Set, r.Mounted, r.Trusts = "both", []string{"both"}, map[string]time.Time{"both": noon}
		})},
		{name: "595: who reads what it trusts trusts quorate alone in the end", change: with(own(), func(s *situation.Situation) { s.Observed.Certificates.Rotation.Leaves[0].Bundle = state.BundleOther }), want: "delete what the other program's certificates were trusted by: members trust quorate's authorities alone, and who reads what it trusts does so again, too"},
		{name: "595: not before", change: with(own(bothTrusted), func(s *situation.Situation) { s.Observed.Certificates.Rotation.Leaves[0].Bundle = state.BundleOther })},
	})
	checkRule(t, bundles.TakeUp, []ruleCase{
		{name: "597: what the Secrets say alone is not taken up meanwhile", change: with(named(bothTrusted), func(s *situation.Situation) {
			s.Observed.Certificates.Trust = state.Trust{Wanted: "theirs", Kept: []string{"both"}, Mounted: "both", Running: []string{"both"}}
		})},
		{name: "595: what members trust is kept before", change: with(toOwn(), func(s *situation.Situation) { s.Observed.Certificates.Trust.Kept = nil }), want: "keep what members trust in theirs"},
	})
	checkRule(t, certificates.Issue, []ruleCase{
		{name: "598: what members mount is gone, and made again", change: with(named(bothTrusted), func(s *situation.Situation) {
			s.Observed.Certificates.Issuers.Gone, s.Observed.Certificates.Trust.Gone = []string{"both"}, []string{"both"}
		}), want: "publish the authorities of both issuers: members mount it, and none of them starts without it"},
		{name: "598: unless it was another", change: with(named(bothTrusted), func(s *situation.Situation) {
			s.Observed.Certificates.Issuers.Gone, s.Observed.Certificates.Trust.Gone = []string{"older"}, []string{"older"}
		}), want: "Unhealthy: the Secret older is gone"},
	})
}

// 594 to 599: what the members are to show and to trust, at each point of a change.
func TestTheAimOfAChangeOfTheIssuer(t *testing.T) {
	halfway := func(i *state.Issuers) { bothTrusted(i); i.Halfway = true }
	midRoll := with(rolled(oldVersion, 2), func(s *situation.Situation) { s.Observed.Set.Template = podAt(s, 2).Template })
	for name, c := range map[string]struct {
		change mutation
		phase  issuers.Phase
		leaves state.Transport
		trust  string
	}{
		"not published":                       {handsOver(ownLeaves, schema.TLSSecrets), issuers.Publish, ownLeaves, ""},
		"published":                           {handsOver(ownLeaves, schema.TLSSecrets, bothTold), issuers.TrustBoth, ownLeaves, "both"},
		"published, and mounts another":       {handsOver(namedLeaves, schema.TLSManaged, bothTold, func(i *state.Issuers) { i.Mounted = "theirs" }), issuers.TrustBoth, namedLeaves, "both"},
		"in the midst of the first roll":      {with(handsOver(ownLeaves, schema.TLSSecrets, bothTrusted), midRoll), issuers.TrustBoth, ownLeaves, "both"},
		"clients take up both":                {with(handsOver(ownLeaves, schema.TLSSecrets, bothTrusted), changedAgo(time.Hour)), issuers.Overlap, ownLeaves, "both"},
		"they have":                           {handsOver(ownLeaves, schema.TLSSecrets, bothTrusted), issuers.Switch, namedLeaves, "both"},
		"the other direction":                 {handsOver(namedLeaves, schema.TLSManaged, bothTrusted), issuers.Switch, ownLeaves, "both"},
		"in the midst of the second roll":     {with(handsOver(namedLeaves, schema.TLSSecrets, bothTrusted), midRoll), issuers.Switch, namedLeaves, "both"},
		"taken back then":                     {with(handsOver(namedLeaves, schema.TLSManaged, halfway), midRoll, changedAgo(time.Minute)), issuers.Switch, ownLeaves, "both"},
		"a bundle that has changed meanwhile": {handsOver(ownLeaves, schema.TLSSecrets, bothTrusted, func(i *state.Issuers) { i.Mounted = "older" }), issuers.TrustBoth, ownLeaves, "both"},
		"all show the other's":                {with(handsOver(namedLeaves, schema.TLSSecrets, aloneMarked), changedAgo(time.Hour)), issuers.Settle, namedLeaves, "both"},
		"clients do, too":                     {handsOver(namedLeaves, schema.TLSSecrets, aloneMarked), issuers.Drop, namedLeaves, "alone"},
		"taken back after the second roll":    {with(handsOver(namedLeaves, schema.TLSManaged, aloneMarked), changedAgo(time.Hour)), issuers.Overlap, namedLeaves, "both"},
		"taken back after the first one":      {handsOver(ownLeaves, schema.TLSManaged, aloneMarked), issuers.Drop, ownLeaves, "alone"},
		"a certificate that is not good":      {handsOver(ownLeaves, schema.TLSSecrets, bothTrusted, func(i *state.Issuers) { i.Problems = []string{"x"} }), issuers.Check, ownLeaves, "both"},
		"Git wants plain text in the midst":   {with(handsOver(namedLeaves, schema.TLSSecrets, bothTrusted), func(s *situation.Situation) { s.Desired.Spec.TLS.Mode = schema.TLSDisabled }), issuers.None, namedLeaves, "both"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(3)
			c.change(s)
			a := issuers.Of(s.Desired.Spec.TLS, s.Observed, s.Now)
			if a.Phase != c.phase || a.Leaves != c.leaves || a.Trust != c.trust || !a.Changing {
				t.Errorf("%s, %+v, %q, %t; want %s, %+v, %q", a.Phase, a.Leaves, a.Trust, a.Changing, c.phase, c.leaves, c.trust)
			}
		})
	}
}

// 594, 595: a plan shows a change to its end: three rolls, and what is between them.
func TestAPlanShowsAChangeOfTheIssuer(t *testing.T) {
	roll := []string{"StartRoll", "RestartMember", "EndRoll"}
	for name, c := range map[string]struct {
		change mutation
		want   []string
	}{
		"Managed to Secrets": {handsOver(ownLeaves, schema.TLSSecrets), slices.Concat([]string{"PublishTrust"}, roll, roll, []string{"KeepTrust"}, roll, []string{"RetireAuthorities", "KeepTrust"})},
		"Secrets to Managed": {handsOver(namedLeaves, schema.TLSManaged, func(i *state.Issuers) {
			i.Missing, i.Both, i.Alone = []string{"orders-ca", "orders-server"}, "", ""
		}), slices.Concat([]string{"IssueCertificates", "PublishTrust"}, roll, roll, []string{"PublishTrust"}, roll, []string{"RetireAuthorities"})},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(3)
			c.change(s)
			p := Make(s.Desired, s.Observed, noon)
			var kinds []string
			for _, step := range p.Steps {
				if k := step.Action.Kind(); k != "MoveLeader" && (len(kinds) == 0 || kinds[len(kinds)-1] != k) {
					kinds = append(kinds, k)
				}
			}
			if !slices.Equal(kinds, c.want) {
				t.Errorf("got  %q\nwant %q\n%s", kinds, c.want, p.Text())
			}
		})
	}
}
