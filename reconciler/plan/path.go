package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/verdict"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// path refuses a change of version that etcd does not support, by what every
// member itself reports. It checks the whole path before its first roll.
func path(s *situation.Situation) verdict.Verdict {
	if !s.Rolling() || (!s.Versioned() && !s.Intermediate()) {
		return verdict.Pass()
	}
	if refused := situation.Messages(release.Bad(s.WantedVersion()), release.Refuse); len(refused) > 0 && !s.GivingUp() {
		return verdict.Refuse(refused[0], "name another release in spec.version")
	}
	versions := s.Versions()
	for _, p := range s.Observed.Pods {
		if !s.IsMember(p.Name) {
			continue
		}
		if _, known := versions[p.Name]; !known {
			return verdict.Refuse(fmt.Sprintf("the etcd version of %s is unknown, so the change to %s cannot be checked", p.Name, s.WantedVersion()),
				"check that member; quorate continues when it reports a release").At(p.Name)
		}
	}
	if s.Desired.Template == "" {
		return verdict.Refuse(fmt.Sprintf("internal error: no pod template for intermediate version %s", s.Desired.Spec.Version), "please report this bug; as a workaround upgrade in two commits")
	}
	if s.VersionUndecided(versions) {
		return verdict.Wait(s, fmt.Sprintf("no member reports %s any more, so the cluster version moves within seconds; then the way back is a downgrade", s.WantedVersion().Line()), s.NewestPod(), checkLeader).Again(verdict.Quickly)
	}
	if back := s.WantedVersion(); s.ClusterVersion() == "" && s.NewerThan(back.Line(), versions) && !s.NeverLeft() {
		return verdict.Unhealthy(fmt.Sprintf("no member reports the cluster version, so whether %s can still be reached is unknown", back),
			"check the members; quorate continues when one reports it, or when spec.version is a release that every member can go to").Measured("%s", s.WhyUnlisted())
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if why := s.Blocked(versions[name]); why != "" {
			return verdict.Refuse(fmt.Sprintf("%s cannot go from %s to %s: %s", name, versions[name], s.Git.Spec.Version, why),
				"set spec.version to a release that every member can go to").At(name)
		}
	}
	return pinned(s)
}

// quota refuses a smaller quota than a database comes near: etcd raises NOSPACE for the whole cluster as soon as the
// first member that has it applies a write.
func quota(s *situation.Situation) verdict.Verdict {
	r, wanted := s.Observed.Round(), s.WantedQuota()
	if !s.Rolling() || r == nil {
		return verdict.Pass()
	}
	for _, m := range r.Members {
		if has := s.QuotaOf(m); wanted < has && situation.ComesNear(m, wanted) {
			return verdict.Refuse(
				fmt.Sprintf("the database of %s comes near the quota that Git asks for, %s instead of %s: "+
					"with it the whole cluster would soon take no more writes (NOSPACE)", m.Name, state.SizeText(wanted), state.SizeText(has)),
				"set spec.etcd.quotaBackendBytes back, or delete keys first and let the members be compacted and defragmented").
				At(m.Name).Measured("it has %s", state.SizeText(m.DBSize))
		}
	}
	return verdict.Pass()
}

// pinned refuses to go through a release whose image is not pinned, where Git
// pins that of the last one.
func pinned(s *situation.Situation) verdict.Verdict {
	if s.Git.Spec.Image.Digest == "" {
		return verdict.Pass()
	}
	for _, stop := range s.Waypoints[:len(s.Waypoints)-1] {
		if stop.Version != s.Observed.Set.Version {
			return verdict.Refuse(fmt.Sprintf("the way to %s goes through %s, and spec.image.digest pins one image only", s.Git.Spec.Version, stop.Version),
				"go there by two commits, each with its digest, or leave spec.image.digest out until the last stop")
		}
	}
	return verdict.Pass()
}

// agreed waits, before a roll to another minor, until the members have agreed on
// the one that they run: with two steps at once the older ones would crash.
func agreed(s *situation.Situation) verdict.Verdict {
	low, _, known := s.VersionSpan()
	version := s.ClusterVersion()
	if !known || !state.Older(state.Minor(version), low.Line()) || !state.Older(low.Line(), s.WantedVersion().Line()) {
		return verdict.Pass()
	}
	return verdict.Wait(s, fmt.Sprintf("every member runs etcd %s; the cluster version is still %s and follows within seconds", low, version), s.NewestPod(), checkLeader).Again(verdict.Quickly)
}
