package plan

import "fmt"

// mend gives a member back what it was before an abandoned roll broke it, where
// Git now wants an older minor: that release cannot help it, because etcd refuses
// to go down while a member is away. Elsewhere the roll itself mends its victim.
func mend(s *situation) verdict {
	if !s.formed() || s.o.Set == nil || s.o.Set.CurrentTemplate == "" || !s.goesDown() {
		return pass()
	}
	p := s.abandoned()
	if p == nil || line(s.o.Set.CurrentVersion) != line(s.clusterVersion()) {
		return pass()
	}
	if p.Ordinal >= s.o.Set.Partition {
		return do(ResizeSet{SetUID: s.o.Set.UID, From: s.o.Set.Replicas, To: s.o.Set.Replicas, Partition: s.o.Set.Replicas},
			fmt.Sprintf("the roll that broke %s (%s) is given up, so that it can come back as it was", p.Name, p.Trouble))
	}
	return do(RestartMember{
		SetUID: s.o.Set.UID, Member: p.Name, Ordinal: p.Ordinal, PodUID: p.UID, MemberID: s.o.Record.Members[p.Name],
		Partition: s.o.Set.Partition, ByDeletion: true, From: p.Version, To: s.o.Set.CurrentVersion,
	}, "an abandoned roll left it broken; it comes back as it was before that roll, and the way down begins with every member")
}

// abandoned is a member that does not run because of a template that is neither
// that of the last roll which ended nor what Git wants; nil for none.
func (s *situation) abandoned() *Pod {
	for i := range s.o.Pods {
		p := &s.o.Pods[i]
		if s.isMember(p.Name) && !p.Ready && !p.Terminating && p.Trouble != "" &&
			p.Template != s.o.Set.CurrentTemplate && p.Template != s.d.Template {
			return p
		}
	}
	return nil
}
