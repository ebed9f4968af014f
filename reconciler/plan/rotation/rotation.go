// Package rotation has the rule by which the authorities of a cluster change while everybody works.
// What the members are to trust meanwhile is in their pod template, which package trust says: so the
// two rolls of a change are ordinary ones, behind all that keeps a roll.
package rotation

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
)

// Run takes the next step of a change of the authorities, or waits for what it rests on. At any
// time each member trusts what every other one and every client shows.
//
//	members trust  certificates by  then
//	old            old              the next authorities are made, and published; a roll
//	both           old              the overlap, and a handshake with each member; all are issued anew
//	both           new              the overlap, and a handshake with each member; a roll
//	new            new              the old ones are deleted, with their keys
//
// Taken back, it is the same towards the old ones, until the last roll begins.
func Run(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Certificates.Rotation
	if r == nil || !s.Formed() || s.Observed.Set == nil {
		return verdict.Pass()
	}
	a := trust.Of(s.Git.Spec.TLS, s.Observed, s.Now)
	switch a.Phase {
	case trust.Make:
		return verdict.Do(action.MakeAuthorities{Secrets: r.Absent}, also(a, a.Why+"; nothing trusts them yet"))
	case trust.Publish:
		return verdict.Do(publish(a, r), also(a, a.Why+"; who reads what it trusts from now on trusts both, and each member when it restarts"))
	case trust.Mark:
		return verdict.Do(action.PublishTrust{Secret: a.Secret}, also(a, "all certificates are issued by the authorities that stay, which alone will be trusted"))
	case trust.Overlap:
		return await(s, a, "every member trusts both authorities", "take up the ca.crt of their Secrets; then all certificates are issued by "+staying(a))
	case trust.Issue:
		return verdict.Do(action.SwitchCertificates{By: a.Keep, Against: against(a, r)},
			also(a, "every member and every client trusts both authorities; members load a certificate at each handshake"))
	case trust.Settle:
		return await(s, a, "all certificates are issued by "+staying(a), "take up the certificates of their Secrets; then members trust these authorities alone")
	case trust.Retire:
		return verdict.Do(action.RetireAuthorities{Keep: a.Keep, Trust: r.Set}, also(a, "members trust the others alone, and nobody shows a certificate of these"))
	case trust.None, trust.TrustBoth, trust.Drop:
	}
	return tidy(s, r)
}

// staying names the authorities that stay.
func staying(a trust.Aim) string {
	if a.Keep == state.ByPresent {
		return "the authorities from before"
	}
	return "the next authorities"
}

// publish is what is published: both, unless only what is mounted was lost.
func publish(a trust.Aim, r *state.Rotation) action.PublishTrust {
	if a.Secret == r.Both && len(r.Next) > 0 {
		return action.PublishTrust{Secret: a.Secret, Bundle: state.BundleBoth}
	}
	return action.PublishTrust{Secret: a.Secret}
}

// against is the Secret with what members trust that speaks of the authorities that go alone.
func against(a trust.Aim, r *state.Rotation) string {
	name := r.Old
	if a.Keep == state.ByPresent {
		name = r.New
	}
	if _, there := r.Trusts[name]; !there || slices.Contains(r.Mounted, name) {
		return ""
	}
	return name
}

// also adds to a reason what Git asks for beside the change that is under way.
func also(a trust.Aim, reason string) string { return reason + later(a) }

// later is what Git asks for beside the change that is under way, as the end of a sentence.
func later(a trust.Aim) string {
	if a.Later == "" {
		return ""
	}
	return "; " + a.Later
}

// await holds until clients had their time, and members have shown that they are ready.
func await(s *situation.Situation, a trust.Aim, so, then string) verdict.Verdict {
	v := verdict.WaitUntil(fmt.Sprintf("%s; clients have until %s to %s%s", so, a.Until.UTC().Format(time.RFC3339), then, later(a)), a.Since).
		Again(min(a.Until.Sub(s.Now), verdict.Later))
	if !s.Now.Before(a.Until) {
		v = verdict.Wait(s, fmt.Sprintf("%s; a member has not shown yet in a handshake what is needed to go on%s", so, later(a)), a.Until,
			"check that quorate reaches the ports 2379 and 2380 of the members, and the logs of the member that is named; nothing is taken from anybody meanwhile").
			Measured("%s", a.Unproven)
	}
	v.Hold.Awaits = decision.AwaitsClients
	return v
}

// tidy deletes what a change that is over has left.
func tidy(s *situation.Situation, r *state.Rotation) verdict.Verdict {
	if len(r.Next) > 0 || s.Rolling() {
		return verdict.Pass()
	}
	for name := range r.Trusts {
		if name != r.Set && !slices.Contains(r.Mounted, name) {
			return verdict.Do(action.RetireAuthorities{Keep: state.ByPresent, Trust: r.Set}, "the change of the authorities is over, and nothing mounts what members trusted meanwhile")
		}
	}
	return verdict.Pass()
}

// Gone is a Secret with what members trust that one mounts, and that is gone; "" for none, or
// for one that cannot be made again.
func Gone(s *situation.Situation) string {
	r := s.Observed.Certificates.Rotation
	if r == nil {
		return ""
	}
	for _, name := range r.Mounted {
		if _, there := r.Trusts[name]; !there && slices.Contains([]string{r.Old, r.Both, r.New}, name) {
			return name
		}
	}
	return ""
}
