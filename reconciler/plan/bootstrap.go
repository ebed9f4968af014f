package plan

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/schema/release"
)

// certificates issues what is missing and holds on what is wrong.
func certificates(s *situation) verdict {
	if len(s.o.Certificates.Problems) > 0 {
		return verdict{hold: &Hold{
			Kind:    HoldUnhealthy,
			Message: "certificates: " + strings.Join(s.o.Certificates.Problems, "; "),
			Do:      "nothing is restarted meanwhile, since a member that restarts could not rejoin; replace the Secrets named here",
			Again:   later,
		}}
	}
	switch {
	case s.o.Record == nil:
		return pass()
	case len(s.o.Certificates.Missing) == 0 && len(s.o.Certificates.Narrow) > 0:
		return do(WidenCertificates{Secrets: s.o.Certificates.Narrow},
			"they were issued for fewer members than Git wants; the same authority signs, and members load a certificate when they need it")
	case len(s.o.Certificates.Missing) == 0:
		return pass()
	}
	return do(IssueCertificates{Secrets: s.o.Certificates.Missing},
		"members and clients prove who they are with certificates; missing: "+strings.Join(s.o.Certificates.Missing, ", "))
}

// bootstrap makes a new cluster: what a member needs before it starts, then
// all members at once, then the record of who they are.
func bootstrap(s *situation) verdict {
	if s.formed() {
		return pass()
	}
	if refused := messages(release.Bad(s.wanted()), release.Refuse); len(refused) > 0 {
		return refuse(refused[0], "name another release in spec.version")
	}
	if s.o.Record == nil {
		return do(CreateRecord{Owner: s.claimant(), Founders: s.d.Spec.Replicas}, "no cluster of this name exists: its record, with a token of its own, comes before anything else")
	}
	for _, obj := range s.o.Objects {
		if obj.State == ObjectMissing {
			return do(ApplyObject{obj.Kind, obj.Name}, "members find each other, and clients find them, through it")
		}
	}
	restoring := s.o.Record.Recovering
	switch {
	case restoring != nil && s.o.Set == nil:
		return do(CreateSet{0}, "it says where and as whom the first member will run; no pod starts before its volume is restored")
	case restoring != nil && !s.started():
		a := s.startRoll()
		a.Partition = 0
		return do(a, "no member has started yet, and Git now says otherwise")
	case restoring != nil:
		return s.fillVolume(*restoring)
	}
	if s.o.Set == nil {
		if v := s.begunOtherwise(); !v.silent() {
			return v
		}
		return do(CreateSet{s.founders()},
			fmt.Sprintf("everything that %s of etcd %s needs is in place", members(int(s.founders())), s.d.Spec.Version))
	}
	if v := s.resize(); !v.silent() {
		return v
	}
	return forming(s)
}

// begunOtherwise refuses to start other members than those that had begun the
// cluster, when it was deleted before it had formed: what they have written is on
// the volumes, and only they are sure to read it.
func (s *situation) begunOtherwise() verdict {
	was := s.o.Record.Applied
	if was == nil || len(s.o.Volumes) == 0 || s.sameSettings() {
		return pass()
	}
	return refuse(
		fmt.Sprintf("volume claim %s is of members of etcd %s that had begun this cluster when it was deleted, and the file has changed since", s.o.Volumes[0].Claim, was.Version),
		"revert the file to what it was before the deletion, or delete the volume claims if nothing on them is needed")
}

// forming waits until every member has joined, and then has their IDs recorded.
func forming(s *situation) verdict {
	r := s.o.round()
	if problem := s.unformed(r); problem != "" {
		if p := s.stillborn(); p != nil {
			return s.reform(p)
		}
		v := wait("the cluster is forming: "+problem, s.oldestPod())
		if began := s.oldestPod(); !began.IsZero() && s.now.Sub(began) > comeback {
			v.hold.Do = "a cluster that never held data can be begun anew: delete its StatefulSet, its volume claims and ConfigMap " + s.d.Name + "-record"
		}
		return v
	}
	members := map[string]string{}
	for _, m := range r.Members {
		members[m.Name] = m.ID
	}
	oldest, _, _ := s.span()
	return do(RecordFormed{ClusterID: r.ClusterID, Members: members, BornOn: oldest.Line()},
		"every member has joined; from now on an empty volume is a loss, not a beginning")
}

// unformed says what is missing for the cluster to have formed, or "".
func (s *situation) unformed(r *Round) string {
	for _, p := range s.o.Pods {
		if p.Trouble != "" {
			return p.Name + ": " + p.Trouble
		}
	}
	switch {
	case r == nil:
		return "no member was asked yet"
	case r.Problem != "":
		return r.Problem
	case len(r.Members) != int(s.founders()):
		return fmt.Sprintf("%d of %d members have joined", len(r.Members), s.founders())
	case r.leader() == nil:
		return "no leader yet"
	}
	for _, m := range r.Members {
		if m.Problem != "" || m.Name == "" {
			return fmt.Sprintf("member %s: %s", nameOf(m), m.Problem)
		}
	}
	return ""
}

// stillborn is a pod that cannot start with the template that it was made from,
// when Git now says another template and etcd has never run in any pod: so there
// is nothing that could be lost. Else nil.
func (s *situation) stillborn() *Pod {
	var broken *Pod
	for i := range s.o.Pods {
		switch p := &s.o.Pods[i]; {
		case p.Ran:
			return nil
		case p.Template != s.d.Template && p.Trouble != "" && !p.Terminating && broken == nil:
			broken = p
		}
	}
	return broken
}

// reform gives a cluster that could not form another template. There is no data
// and no quorum to protect, and no member gets ready before a quorum is up: so
// the partition goes to 0 and the broken pods make way.
func (s *situation) reform(p *Pod) verdict {
	if !s.started() {
		a := s.startRoll()
		a.Partition = 0
		return do(a, fmt.Sprintf("the cluster has never formed, because of %s: %s; Git now says otherwise", p.Name, p.Trouble))
	}
	return do(RestartMember{
		SetUID: s.o.Set.UID, Member: p.Name, Ordinal: p.Ordinal, PodUID: p.UID,
		Partition: s.o.Set.Partition, ByDeletion: true, From: p.Version, To: s.o.Set.Version,
	}, "the cluster has never formed, and this pod cannot start with the template it has: "+p.Trouble)
}
