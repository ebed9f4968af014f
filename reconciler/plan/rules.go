package plan

import (
	"github.com/quorate/quorate/reconciler/plan/auth"
	"github.com/quorate/quorate/reconciler/plan/bundles"
	"github.com/quorate/quorate/reconciler/plan/certificates"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/plan/logs"
	"github.com/quorate/quorate/reconciler/plan/objects"
	"github.com/quorate/quorate/reconciler/plan/recovery"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/times"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/plan/volumes"
)

// rule is one line of the safety policy.
type rule struct {
	name string
	eval func(*situation.Situation) verdict.Verdict
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
//	times         a wait that began by a wrong clock is counted from when quorate saw it           I17 I19
//	recovering    a recovery that has begun is brought to its end                              I5 I8 I13 I21
//	enlarge       larger volumes are asked for, whatever else is wrong                         I6
//	hibernated    a cluster that sleeps is left asleep, or woken                               I4
//	resize        as many pods as there are members, none as what may not start                I14 I20
//	remedy        no quorum, whole data: a commit of settings goes to what is down             I1 I5 I14 I17
//	settled       the StatefulSet controller has caught up                                     I3
//	reachable     members that are ready and do not answer are not lost                        I17 I18
//	recovery      a lost quorum: what Git says, once, or nothing                               I8 I13 I17 I18
//	trusted       members that run trust every certificate that is in use                      I22
//	holdings      whose data a volume holds is written on its claim                            I6 I7
//	noauth        what etcd does not support with authentication on waits until it is off    I14 I15
//	membership    a change of the member list that has begun is finished                       I1 I19 I24
//	repair        a permanently lost member, unheard by the leader, is replaced, one, backed up I1 I5 I17
//	alarms        space is freed, and an alarm ends when its cause has                         I9 I23
//	clients       applications get certificates, new ones in time                              I22
//	copies        and find them in other namespaces, before members refuse the ones from before    I22
//	missing       a pod that Kubernetes refuses, or nobody creates, is told                    I2 I25
//	storage       volumes that exist become nothing that they cannot                           I6 I22
//	path          every hop of every member is one that etcd supports                          I14
//	quota         no member gets a smaller quota than its database comes near                  I23
//	mend          a member broken by an abandoned roll comes back before a downgrade           I15
//	member        a restarted member comes back, or the roll stops                             I2 I15
//	health        the gate: every member, by ID, as it reports itself                          I1 I2 I15 I17
//	claims        nothing stops a member while a volume would go with its pod                  I6
//	fight         nothing begins while another writer, or admission, undoes what quorate does  I25
//	auth          users and roles as Git says, one by one, and authentication last           I29
//	fleet         few clusters at once are disrupted, wave by wave                             I28
//	window        members restart inside a maintenance window                                  I26
//	confirm       the gate again, with catch-up                                                I15 I16
//	hibernate     a backup, then every member sleeps on its volume                             I6
//	backup        a verified backup of this cluster for this target                            I11
//	shrink        one member at a time, the highest ordinal first                              I1 I20
//	remove        volumes of removed members, where Git says so                                I6
//	flush         no log holds what the next minor cannot read                                 I14
//	downgrade     etcd's downgrade API is called before an older minor starts                  I14
//	start         the new template, touching no pod                                            I25
//	surge         the only member is replaced by way of a second one                           I1 I16 I19
//	soak          the last restarted member has been ready for a while                         I16
//	leader        leadership leaves before its member stops                                    I20
//	compare       all members hold the same data before the first of them stops                I15
//	restart       one member, from the highest ordinal down                                    I2 I20
//	end           done when the cluster version is the new one                                 I14
//	volumes       they have grown, and new members get the same                                I25
//	grow          one learner at a time, and only between two rolls                            I1 I19
//	admit         clients come to a restored cluster when all members have joined              I7 I8
//	defragment    databases are defragmented one at a time, on safe releases only             I23 I26
//	users         users who cannot be there yet, and why authentication stays off, are told  I29
//	applied       what was applied is recorded                                                 I13
//	transport     spec.tls.mode changes while members listen to both, and etcd's list follows    I22
//	issuer        quorate takes over from another program, or this from it, while both are trusted  I22
//	rotation      authorities change in phases, while each member trusts what all others show    I22
//	bundle        another trust of certificates that others issue is kept, and then rolled out I22
//	expiry        what only a person can mend of certificates is reported                      I22
func table() []rule {
	return []rule{
		{"readable", readable},
		{"ownership", ownership},
		{"owner", owner},
		{"record", record},
		{"restore", restore},
		{"deletion", deletion},
		{"immutable", immutable},
		{"certificates", certificates.Issue},
		{"bootstrap", bootstrap},
		{"drift", objects.Drift},
		{"times", times.Note},
		{"recovering", recovery.Run},
		{"enlarge", volumes.Enlarge},
		{"hibernated", hibernated},
		{"resize", resize},
		{decision.RuleRemedy, recovery.Remedy},
		{"settled", settled},
		{"reachable", recovery.Reachable},
		{decision.RuleRecovery, recovery.Lost},
		{"trusted", bundles.Trusted},
		{"holdings", volumes.Holdings},
		{"noauth", auth.Off},
		{"membership", membership},
		{"repair", repair},
		{"alarms", alarms},
		{"clients", certificates.Clients},
		{"copies", certificates.Copies},
		{"missing", missing},
		{"storage", storage},
		{"path", path},
		{"quota", quota},
		{"mend", mend},
		{"member", member},
		{"health", health},
		{"claims", volumes.Claims},
		{"fight", objects.Fight},
		{"auth", auth.Change},
		{"fleet", fleet},
		{"window", window},
		{"confirm", confirm},
		{"hibernate", hibernate},
		{"backup", backup},
		{"shrink", shrink},
		{"remove", remove},
		{"flush", logs.Flush},
		{"downgrade", downgrade},
		{"start", start},
		{"surge", surges},
		{"soak", soak},
		{"leader", leader},
		{"compare", compare},
		{"restart", restart},
		{"end", end},
		{"volumes", volumes.Grown},
		{"grow", grow},
		{"admit", admit},
		{"defragment", defragment},
		{"users", auth.Missing},
		{"applied", applied},
		{"transport", certificates.Transport},
		{"issuer", certificates.Issuer},
		{"rotation", certificates.Rotate},
		{"bundle", bundles.TakeUp},
		{"expiry", certificates.Expiry},
	}
}

// first asks the rules in order.
func first(rules []rule, s *situation.Situation) verdict.Verdict {
	for _, r := range rules {
		v := r.eval(s)
		if v.Hold != nil {
			v.Hold.Rule = r.name
		}
		if !v.Silent() {
			return v
		}
	}
	return verdict.Pass()
}
