package plan

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/situation"
)

// verdict is what one rule says: nothing (the zero verdict), a hold, a step, or
// that there is nothing to do whatever the rules below would say.
type verdict struct {
	hold *decision.Hold
	step *decision.Step
	idle bool
}

// silent reports whether the rule had nothing to say.
func (v verdict) silent() bool { return v.hold == nil && v.step == nil && !v.idle }

// rule is one line of the safety policy.
type rule struct {
	name string
	eval func(*situation.Situation) verdict
}

// table is the safety policy: the first rule that has something to say wins, so
// whatever is above a rule is true when it is asked.
//
//	rule          says                                                                         guards
//	readable      a file with errors leaves its cluster alone                                  I12
//	ownership     foreign objects are never changed                                            I7
//	owner         one daemon and one place in Git act on a cluster                             I27
//	record        no record beside a live cluster: nothing is guessed                          I4 I12
//	restore       a backup becomes a cluster where nothing exists, once                        I7 I9 I13
//	deletion      a cluster goes only when Git says Deleted; a file that is gone says nothing  I6 I12
//	immutable     a change that has no safe way yet is refused                                 I5 I22
//	certificates  missing ones are issued, bad ones hold                                       I22
//	bootstrap     record → services → StatefulSet → IDs recorded                               I4 I24
//	drift         services, budget, replica count back to what Git says                        I25
//	recovering    a recovery that has begun is brought to its end                              I5 I8 I13 I21
//	enlarge       larger volumes are asked for, whatever else is wrong                         I6
//	hibernated    a cluster that sleeps is left asleep, or woken                               I4
//	resize        as many pods as there are members                                            I20
//	settled       the StatefulSet controller has caught up                                     I3
//	recovery      a lost quorum: what Git says, once, or nothing                               I8 I13 I17 I18
//	holdings      whose data a volume holds is written on its claim                            I6 I7
//	membership    a change of the member list that has begun is finished                       I1 I19 I24
//	repair        a permanently lost member is replaced, one, after a backup                   I1 I5 I17
//	alarms        space is freed, and an alarm ends when its cause has                         I9 I23
//	path          every hop of every member is one that etcd supports                          I14
//	mend          a member broken by an abandoned roll comes back before a downgrade           I15
//	member        a restarted member comes back, or the roll stops                             I2 I15
//	health        the gate: every member, by ID, as it reports itself                          I1 I2 I15 I17
//	fight         nothing begins while another writer undoes what quorate does                 I25
//	fleet         few clusters at once are disrupted, wave by wave                             I28
//	window        members restart inside a maintenance window                                  I26
//	confirm       the gate again, with hashes and catch-up                                     I15 I16
//	hibernate     a backup, then every member sleeps on its volume                             I6
//	backup        a verified backup of this cluster for this target                            I11
//	shrink        one member at a time, the highest ordinal first                              I1 I20
//	remove        volumes of removed members, where Git says so                                I6
//	flush         no log holds what the next minor cannot read                                 I14
//	downgrade     etcd's downgrade API is called before an older minor starts                  I14
//	start         the new template, touching no pod                                            I25
//	soak          the last restarted member has been ready for a while                         I16
//	leader        leadership leaves before its member stops                                    I20
//	restart       one member, from the highest ordinal down                                    I2 I20
//	end           done when the cluster version is the new one                                 I14
//	volumes       they have grown, and new members get the same                                I25
//	grow          one learner at a time, and only between two rolls                            I1 I19
//	admit         clients come to a restored cluster when all members have joined              I7 I8
//	defragment    databases are defragmented one at a time, on safe releases only             I23 I26
//	applied       what was applied is recorded                                                 I13
//	expiry        certificates that only a person can replace are reported before they end     I22
func table() []rule {
	return []rule{
		{"readable", readable},
		{"ownership", ownership},
		{"owner", owner},
		{"record", record},
		{"restore", restore},
		{"deletion", deletion},
		{"immutable", immutable},
		{"certificates", certificates},
		{"bootstrap", bootstrap},
		{"drift", drift},
		{"recovering", recovering},
		{"enlarge", enlarge},
		{"hibernated", hibernated},
		{"resize", resize},
		{"settled", settled},
		{decision.RuleRecovery, recovery},
		{"holdings", holdings},
		{"membership", membership},
		{"repair", repair},
		{"alarms", alarms},
		{"path", path},
		{"mend", mend},
		{"member", member},
		{"health", health},
		{"fight", fight},
		{"fleet", fleet},
		{"window", window},
		{"confirm", confirm},
		{"hibernate", hibernate},
		{"backup", backup},
		{"shrink", shrink},
		{"remove", remove},
		{"flush", flush},
		{"downgrade", downgrade},
		{"start", start},
		{"soak", soak},
		{"leader", leader},
		{"restart", restart},
		{"end", end},
		{"volumes", volumes},
		{"grow", grow},
		{"admit", admit},
		{"defragment", defragment},
		{"applied", applied},
		{"expiry", expiry},
	}
}

// first asks the rules in order.
func first(rules []rule, s *situation.Situation) verdict {
	for _, r := range rules {
		v := r.eval(s)
		if v.hold != nil {
			v.hold.Rule = r.name
		}
		if !v.silent() {
			return v
		}
	}
	return verdict{}
}

// oneOf is what the first part of a rule says that has something to say.
func oneOf(s *situation.Situation, parts ...func(*situation.Situation) verdict) verdict {
	for _, part := range parts {
		if v := part(s); !v.silent() {
			return v
		}
	}
	return pass()
}

// The times between two passes, by what is awaited.
const (
	quickly = 250 * time.Millisecond
	soon    = 2 * time.Second
	later   = 30 * time.Second
	rarely  = 5 * time.Minute
	instant = time.Duration(0)
)

// idle is the verdict that all is as it should be, and that no rule below is
// asked.
func idle() verdict { return verdict{idle: true} }

// pass is the verdict of a rule that has nothing to say.
func pass() verdict { return verdict{} }

// do is the verdict of a rule that wants an action.
func do(a action.Action, reason string) verdict {
	return verdict{step: &decision.Step{Action: a, Reason: reason}}
}

// wait is a hold that ends on its own.
func wait(message string, since time.Time) verdict {
	return verdict{hold: &decision.Hold{Kind: decision.Waiting, Message: message, Since: since, Again: soon}}
}

// refuse is a hold that ends with a new commit.
func refuse(message, do string) verdict {
	return verdict{hold: &decision.Hold{Kind: decision.Refused, Message: message, Do: do, Again: rarely}}
}

// about adds to a verdict which member it is about, and what was measured.
func (v verdict) about(r situation.Remark) verdict {
	switch {
	case v.hold != nil:
		v.hold.Member, v.hold.Detail = r.Member, r.Detail
	case v.step != nil:
		v.step.Detail = r.Detail
	}
	return v
}

// at adds to a hold the member that it is about.
func (v verdict) at(member string) verdict {
	v.hold.Member = member
	return v
}

// advise adds to a hold what a person can do.
func (v verdict) advise(do string) verdict {
	v.hold.Do = do
	return v
}

// again sets when a hold is looked at again.
func (v verdict) again(in time.Duration) verdict {
	v.hold.Again = in
	return v
}

// measured adds what was measured.
func (v verdict) measured(format string, args ...any) verdict {
	detail := fmt.Sprintf(format, args...)
	switch {
	case v.hold != nil:
		v.hold.Detail = detail
	case v.step != nil:
		v.step.Detail = detail
	}
	return v
}

// unhealthy is a hold that ends when the cluster is healthy.
func unhealthy(message, do string) verdict {
	return verdict{hold: &decision.Hold{Kind: decision.Unhealthy, Message: message, Do: do, Again: soon}}
}
