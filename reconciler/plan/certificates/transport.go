package certificates

import (
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/schema"
)

// Transport takes the next step of a change of spec.tls.mode between plain text and TLS, or waits for
// what it rests on. What members listen to is in their pod template, which package transport says: so
// the two rolls of a change are ordinary ones, behind all that keeps a roll. In between, etcd's list
// gets the URLs that each member has before and after the next roll.
func Transport(s *situation.Situation) verdict.Verdict {
	a := transport.Of(s.Git, s.Observed, s.Now)
	move := func(why string) verdict.Verdict {
		return verdict.Do(action.MoveMember{Member: a.Member, MemberID: s.Observed.Record.Members[a.Member], URLs: a.URLs}, why)
	}
	switch a.Phase {
	case transport.Move:
		if a.Back {
			return move("spec.tls.mode is what it was again; the member listens there, too, and after the roll that comes next there alone")
		}
		return move("every member listens to plain text and to TLS; at the one of these ports it is reached now, and at the other one after the next roll")
	case transport.Settle:
		return move("the change of spec.tls.mode is over, and the member listens there alone")
	case transport.Overlap:
		v := verdict.WaitUntil("every member listens to plain text and to TLS; clients have until "+a.Until.UTC().Format(time.RFC3339)+" to move to "+
			speech(s.Git.Spec.TLS.Mode)+", which alone is spoken after the next roll", a.Since).Again(min(a.Until.Sub(s.Now), verdict.Later))
		v.Hold.Awaits = decision.AwaitsClients
		return v
	case transport.None, transport.Open, transport.Close:
	}
	return verdict.Pass()
}

// speech is how a mode is spoken of to clients.
func speech(mode schema.TLSMode) string {
	if mode.Encrypts() {
		return "TLS"
	}
	return "plain text"
}

// WhyTransport is what a roll does to what members listen to, as the beginning of a sentence; "" for
// one that changes nothing of that.
func WhyTransport(s *situation.Situation) string {
	a := transport.Of(s.Git, s.Observed, s.Now)
	switch {
	case a.Phase == transport.None || a.Template == s.Observed.Transport || s.Observed.Transport.Own == "":
		return ""
	case a.Template.Also != "":
		return "members are to listen to plain text and to TLS, for spec.tls.mode changes; "
	}
	return "members are to listen to " + speech(a.Template.Own) + " alone; "
}
