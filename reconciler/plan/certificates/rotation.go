package certificates

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
	"github.com/quorate/quorate/reconciler/state"
)

// Rotate takes the next step of a change of the authorities, or waits for what it rests on. At any
// time each member trusts what every other one and every client shows. What the members are to trust
// meanwhile is in their pod template, which package trust says: so the two rolls of a change are
// ordinary ones, behind all that keeps a roll.
//
//	members trust  certificates by  then
//	old            old              the next authorities are made, and published; a roll
//	both           old              the overlap, and a handshake with each member; all are issued anew
//	both           new              the overlap, and a handshake with each member; a roll
//	new            new              the old ones are deleted, with their keys
//
// Taken back, it is the same towards the old ones, until the last roll begins.
func Rotate(s *situation.Situation) verdict.Verdict {
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

// WhyRoll is what a roll does to whom the members trust, as the beginning of a sentence; "" for one
// that changes nothing of that.
func WhyRoll(s *situation.Situation) string {
	r := s.Observed.Certificates.Rotation
	if r == nil || len(r.Next) == 0 || s.Desired.Trust == r.Set {
		return ""
	}
	switch s.Desired.Trust {
	case r.Both:
		return "members are to trust both authorities; "
	case r.New:
		return "members are to trust the next authorities alone, from which no word in Git goes back; "
	case r.Old:
		return "members are to trust the authorities from before alone; "
	}
	return ""
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
	if len(r.Next) > 0 {
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
	if len(r.Next) > 0 || s.Rolling() || issuers.Of(s.Git.Spec.TLS, s.Observed, s.Now).Changing {
		return verdict.Pass()
	}
	if slices.ContainsFunc(r.Leaves, func(l state.IssuedLeaf) bool { return l.Bundle == state.BundleOther }) {
		return verdict.Do(action.RetireAuthorities{Keep: state.ByBoth, Trust: r.Set}, "members trust quorate's authorities alone, and who reads what it trusts does so again, too")
	}
	for name := range r.Trusts {
		if name != r.Set && !slices.Contains(r.Mounted, name) {
			return verdict.Do(action.RetireAuthorities{Keep: state.ByPresent, Trust: r.Set}, "the change of the authorities is over, and nothing mounts what members trusted meanwhile")
		}
	}
	return verdict.Pass()
}

// revive brings a cluster back whose authorities have expired: nobody trusts anybody then, and no
// quorum serves. The next authorities are made, everything is issued by them, and every member
// restarts with them, without the health that a roll wants, as there is none to lose. A member that
// serves speaks against it: then it is quorate's clock that is wrong.
func revive(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Certificates.Rotation
	a := trust.Of(s.Git.Spec.TLS, s.Observed, s.Now)
	if serving := serves(s); serving != "" {
		if r.Set == r.New && len(r.Next) > 0 {
			return verdict.Pass() // it is back, and the rest is an ordinary roll
		}
		return verdict.Unhealthy(fmt.Sprintf("certificates: by quorate's clock %s, and %s serves all the same", r.Over, serving),
			"check the clock of quorate's machine, and of the nodes; nothing is restarted meanwhile").Again(verdict.Later)
	}
	switch a.Phase {
	case trust.Make:
		return verdict.Do(action.MakeAuthorities{Secrets: r.Absent}, r.Over+", and nobody trusts anybody any more")
	case trust.Issue:
		return verdict.Do(action.SwitchCertificates{By: state.ByNext}, r.Over+"; nothing is trusted that could be lost by it")
	case trust.Publish:
		return verdict.Do(action.PublishTrust{Secret: r.New, Bundle: state.BundleBoth}, r.Over+"; who reads what it trusts from now on trusts the next authorities")
	case trust.Drop:
		return restartAll(s, r.Over, "the next authorities")
	case trust.None, trust.TrustBoth, trust.Overlap, trust.Mark, trust.Settle, trust.Retire:
	}
	return verdict.Pass()
}

// serves names a member that is ready, or follows a leader, "" for none.
func serves(s *situation.Situation) string {
	for _, p := range s.Observed.Pods {
		if p.Ready || p.EtcdReady {
			return p.Name
		}
	}
	if round := s.Observed.Round(); round != nil {
		for _, m := range round.Members {
			if m.Leader != "" {
				return m.Name
			}
		}
	}
	return ""
}

// restartAll gives every member what it is to trust, one right after the other: each reads that when
// it starts, and no quorum is there to keep. What the StatefulSet controller has not seen yet is
// waited for below.
func restartAll(s *situation.Situation, why, with string) verdict.Verdict {
	set := s.Observed.Set
	if set == nil || !s.Formed() {
		return verdict.Pass() // whatever starts has them
	}
	if v := volumes.Stay(s, ""); !set.Settled || !v.Silent() {
		return v
	}
	switch {
	case !s.Started():
		return verdict.Do(action.NewStartRoll(s), why+"; members read whom they trust when they start")
	case set.Partition > 0:
		return verdict.Do(action.ResizeSet{SetUID: set.UID, From: set.Replicas, To: set.Replicas, Partition: 0}, why+"; every member restarts with "+with)
	}
	for _, p := range s.Outdated() {
		if !p.Terminating {
			return verdict.Do(action.RestartMember{
				SetUID: set.UID, Member: p.Name, Ordinal: p.Ordinal, PodUID: p.UID, MemberID: s.Observed.Record.Members[p.Name],
				ByDeletion: true, From: p.Version, To: set.Version,
			}, why+"; it trusts nobody before it restarts, and no quorum is there to lose")
		}
	}
	return verdict.Pass()
}

// strangers tells that pods mount a trust that does not have what their Secrets hold, and that no member
// serves; "" otherwise. While one serves, the rule trusted holds.
func strangers(s *situation.Situation) string {
	r := s.Observed.Certificates.Rotation
	if r == nil || len(r.Strangers) == 0 || s.Observed.Record.Hibernated || serves(s) != "" {
		return ""
	}
	return "members mount " + r.Strangers[0] + ", which is gone or does not trust the certificates in their Secrets, and none of them serves"
}

// reunite brings a cluster back whose Secrets are from before a change of its authorities, or anew:
// every member restarts with the trust that these say, as no quorum is there to lose.
func reunite(s *situation.Situation) verdict.Verdict {
	r := s.Observed.Certificates.Rotation
	if _, there := r.Trusts[r.Old]; !there {
		return verdict.Do(action.PublishTrust{Secret: r.Old}, strangers(s))
	}
	return restartAll(s, strangers(s), "the authorities of these")
}

// gone is a Secret with what members trust that one mounts, and that is gone; "" for none, or
// for one that cannot be made again.
func gone(s *situation.Situation) string {
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
