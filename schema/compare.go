package schema

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/schema/release"
)

// Compare reports what is wrong with a change that neither side of it shows
// alone: before is what was there, after is what is proposed. The problems
// are at the fields of after; those of what vanished name its old file. They
// are sorted like those of a Set. Nothing is reported of objects that are held on
// either side, nor of a document that only moved to another file.
func Compare(before, after Set) []Problem {
	c := &comparison{before: before, after: after}
	for i := range before.Clusters {
		old := &before.Clusters[i]
		if now, ok := lookup(after.Clusters, old.Metadata, clusterName); ok {
			c.cluster(old, now)
		} else {
			c.vanished(old)
		}
	}
	for i := range before.Restores {
		old := &before.Restores[i]
		if now, ok := lookup(after.Restores, old.Metadata, restoreName); ok {
			c.restore(old, now)
		}
	}
	for i := range before.Backups {
		old := &before.Backups[i]
		if now, ok := lookup(after.Backups, old.Metadata, backupName); ok && !same(old.Spec, now.Spec) {
			c.warn(IDOtherBackup, now.Origin, KindBackup, old.Metadata, "spec", "is changed, which makes it another backup: the first one stays in the store")
		}
	}
	SortProblems(c.problems)
	return c.problems
}

// lookup returns an object by namespace and name in a list that is sorted by them.
func lookup[T any](sorted []T, m Metadata, name func(*T) Metadata) (*T, bool) {
	i, ok := slices.BinarySearchFunc(sorted, m, func(o T, m Metadata) int { return byName(name(&o), m) })
	if !ok {
		return nil, false
	}
	return &sorted[i], true
}

func clusterName(c *Cluster) Metadata { return c.Metadata }
func backupName(b *Backup) Metadata   { return b.Metadata }
func restoreName(r *Restore) Metadata { return r.Metadata }

// comparison gathers what is wrong with a change.
type comparison struct {
	before, after Set
	problems      []Problem
}

// fail notes an error of an object.
func (c *comparison) fail(id ID, at Origin, kind string, m Metadata, field, format string, args ...any) {
	p := at.Problem(id, field, format, args...)
	p.Object = identity{kind, m.Namespace, m.Name}.String()
	c.problems = append(c.problems, p)
}

// warn notes something unwise.
func (c *comparison) warn(id ID, at Origin, kind string, m Metadata, field, format string, args ...any) {
	c.fail(id, at, kind, m, field, format, args...)
	c.problems[len(c.problems)-1].Warning = true
}

// restore compares the two sides of one restore. What it accepts of its backup makes
// it no other one, and is warned of.
func (c *comparison) restore(before, after *Restore) {
	was, is := before.Spec, after.Spec
	if accepted := is.Source.AcceptHashMismatch; accepted != "" && accepted != was.Source.AcceptHashMismatch {
		c.warn(IDAcceptHashMismatch, after.Origin, KindRestore, before.Metadata, "spec.source.acceptHashMismatch", acceptedMismatch)
	}
	if accepted := is.Source.AcceptUnsigned; accepted != "" && accepted != was.Source.AcceptUnsigned {
		c.warn(IDAcceptUnsigned, after.Origin, KindRestore, before.Metadata, "spec.source.acceptUnsigned", acceptedUnsigned)
	}
	if keys := is.Source.TrustedKeys; len(keys) > 0 && !slices.Equal(keys, was.Source.TrustedKeys) {
		c.warn(IDAcceptUnsigned, after.Origin, KindRestore, before.Metadata, "spec.source.trustedKeys", "names the keys by which the backup must be signed, in the place of those that the daemon trusts: who has one of them decides what is restored")
	}
	was.Source, is.Source = was.Source.withoutAccepted(), is.Source.withoutAccepted()
	if !same(was, is) {
		c.warn(IDOtherRestore, after.Origin, KindRestore, before.Metadata, "spec", "is changed, which makes it another restore: if the first one is done, add a new document instead")
	}
}

const acceptedMismatch = "lets a backup be restored whose keys are not those that etcd hashed when it was taken: some may be missing, of another time, or damaged"

const acceptedUnsigned = "lets a backup be restored whose manifest is not signed: nobody knows who wrote it, so check where that backup is from"

// change is the two sides of one cluster's spec, and where its problems go.
type change struct {
	before, after *ClusterSpec
	fail          func(field, format string, args ...any)
	warn          func(id ID, field, format string, args ...any)
}

// cluster compares the two sides of one cluster, rule by rule.
//
//	rule       what it guards against
//	deletion   losing data unnoticed
//	recovery   losing writes unnoticed
//	owner      two owners that act on one cluster
//	storage    what volumes do not support
//	quota      a database that is full
//	tls        members that cannot talk to each other
//	network    what Services do not support
//	version    steps that etcd does not support
//	auth       steps that it does not support while authentication is on
//
// All but the first three ask what running members can follow, and are left out
// where none have to: an observed cluster is not touched, and need not have been what
// its file said; a deleted one without its volumes is gone.
func (c *comparison) cluster(before, after *Cluster) {
	ch := change{
		before: &before.Spec, after: &after.Spec,
		fail: func(field, format string, args ...any) {
			c.fail(IDForbiddenChange, after.Origin, KindCluster, after.Metadata, field, format, args...)
		},
		warn: func(id ID, field, format string, args ...any) {
			c.warn(id, after.Origin, KindCluster, after.Metadata, field, format, args...)
		},
	}
	deletionChange(ch)
	recoveryChange(ch)
	ownerChange(ch)
	observed := before.Spec.Mode == ModeObserve || after.Spec.Mode == ModeObserve
	gone := before.Spec.State == StateDeleted && before.Spec.Deletion.Volumes == VolumesDelete
	if observed || gone {
		return
	}
	for _, rule := range []func(change){storageChange, quotaChange, tlsChange, networkChange, versionChange, authChange} {
		rule(ch)
	}
}

// deletionChange warns of what cannot be undone.
func deletionChange(c change) {
	if c.after.State != StateDeleted {
		return
	}
	was, is := c.before.Deletion, c.after.Deletion
	if c.before.State != StateDeleted {
		was = DeletionSpec{} // it had no effect
	}
	if is.Volumes == VolumesDelete && was.Volumes != VolumesDelete {
		c.warn(IDDeletesVolumes, "spec.deletion.volumes", "is Delete: the volumes and all data on them are deleted permanently with this change")
	}
	if is.Backup == BackupSkip && was.Backup != BackupSkip {
		c.warn(IDDeletesWithoutBackup, "spec.deletion.backup", "is Skip: the cluster is deleted without a last backup")
	}
}

// recoveryChange warns of what a recovery loses.
func recoveryChange(c change) {
	r, was := c.after.Recovery, c.before.Recovery
	if r.AcceptHashMismatch != "" && r.AcceptHashMismatch != was.AcceptHashMismatch {
		c.warn(IDAcceptHashMismatch, "spec.recovery.acceptHashMismatch", acceptedMismatch)
	}
	if r.AcceptUnsigned != "" && r.AcceptUnsigned != was.AcceptUnsigned {
		c.warn(IDAcceptUnsigned, "spec.recovery.acceptUnsigned", acceptedUnsigned)
	}
	r.AcceptHashMismatch, was.AcceptHashMismatch = "", ""
	r.AcceptUnsigned, was.AcceptUnsigned = "", ""
	if r.Source() != "" && r != was {
		c.warn(IDRecovers, "spec.recovery", "recovers cluster %s from %s: what only the lost members had is lost, and clients see a new cluster with later revisions", clip(r.ClusterID), clip(r.Source()))
	}
}

// ownerChange warns that a cluster gets another owner.
func ownerChange(c change) {
	if from := c.after.TakeOver; from != "" && from != c.before.TakeOver {
		c.warn(IDTakesOver, "spec.takeOver", "takes the cluster from %s with this change: write mode: Observe there first, so that no step is in progress", clip(from))
	}
}

// storageChange refuses what volumes do not support.
func storageChange(c change) {
	was, is := c.before.Storage, c.after.Storage
	if is.Size.Cmp(was.Size) < 0 {
		c.fail("spec.storage.size", "shrinks from %s to %s, which volumes cannot: keep %s, or restore a backup into a new cluster to get smaller volumes",
			&was.Size, &is.Size, &was.Size)
	}
	from, to := className(was), className(is)
	switch {
	case from == to:
	case was.ClassChange == ClassChangeReplace && is.ClassChange != ClassChangeReplace:
		c.warn(IDReplacesMembers, "spec.storage.storageClassName", "changes from %s back to %s, and no more members are replaced: where one has its volume in %s already, the cluster is held until the file says classChange: Replace again", from, to, from)
	case is.ClassChange == ClassChangeReplace:
		c.warn(IDReplacesMembers, "spec.storage.storageClassName", "changes from %s to %s: every member is replaced by a new one on a new volume, one at a time, and the old volumes are deleted", from, to)
	default:
		c.fail("spec.storage.storageClassName", "changes from %s to %s, which volumes cannot: revert it, or write storage.classChange: Replace to have the members replaced one at a time, or restore a backup into a new cluster", from, to)
	}
}

// quotaChange warns of a smaller quota: what the databases have nobody knows without the cluster.
func quotaChange(c change) {
	was, is := quotaOf(c.before), quotaOf(c.after)
	if is.Cmp(was) < 0 {
		c.warn(IDQuotaShrinks, "spec.etcd.quotaBackendBytes", "shrinks from %s to %s: the cluster takes no more writes where a database has reached that, so quorate holds the change where one comes near it", &was, &is)
	}
}

// quotaOf is the size at which etcd refuses writes, its default where the file names none.
func quotaOf(spec *ClusterSpec) resource.Quantity {
	if q := spec.Etcd.QuotaBackendBytes; q != nil {
		return *q
	}
	return resource.MustParse("2Gi")
}

// className names a storage class in a message.
func className(s StorageSpec) string {
	if s.StorageClassName == nil {
		return "the default class"
	}
	return clip(*s.StorageClassName)
}

// tlsChange tells what another mode means, and refuses the changes of it that lock quorate out.
func tlsChange(c change) {
	was, is := c.before.TLS.Mode, c.after.TLS.Mode
	switch plain := c.after.TLS.Secrets == (TLSSecretNames{}); {
	case was == is:
	case was == TLSSecrets && plain:
		c.fail("spec.tls.secrets", "is left out together with mode Secrets: keep it until the change is over, because members show these certificates until then")
	case (was == TLSDisabled || is == TLSDisabled) && (c.after.AuthEnabled() || c.before.AuthEnabled() && !c.after.AuthDisabled()):
		c.fail("spec.tls.mode", "changes from %s to %s with auth.enabled: quorate would be locked out on the way: write auth.enabled: false in this change, and true again in one after it", was, is)
	case was == TLSDisabled || is == TLSDisabled:
		c.warn(IDModeChange, "spec.tls.mode", "changes from %s to %s: members restart twice, one at a time; between the two they speak plain text and TLS, and clients have %s to move (tls.overlap)", was, is, c.after.TLS.OverlapTime())
	default:
		c.warn(IDModeChange, "spec.tls.mode", "changes from %s to %s: members restart three times, one at a time: they trust both issuers, show the other one's certificates, and trust it alone; clients have %s before and after the second time (tls.overlap)", was, is, c.after.TLS.OverlapTime())
	}
}

// networkChange refuses what Services cannot change. A family that is not
// written is Kubernetes' choice, and may well be the one that is written now.
func networkChange(c change) {
	was, is := c.before.Network.IPFamilies, c.after.Network.IPFamilies
	if len(was) > 0 && len(is) > 0 && was[0] != is[0] {
		c.fail("spec.network.ipFamilies", "the first family changes from %s to %s and is immutable: keep %s first, another one may follow it", was[0], is[0], was[0])
	}
}

// versionChange checks the way from one release to the other.
func versionChange(c change) {
	from, err := release.Parse(c.before.Version)
	to, errTo := release.Parse(c.after.Version)
	if err != nil || errTo != nil || from == to {
		return // validation reports it
	}
	for _, finding := range versionFindings(from, to, c.after.Upgrade.Path) {
		if finding.Severity == release.Refuse {
			c.fail("spec.version", "%s", finding.Message)
		} else {
			c.warn(IDVersionChange, "spec.version", "%s", finding.Message)
		}
	}
}

// authChange refuses a step that etcd does not support while authentication is on. Where the
// change switches it on, the rollout comes first; where it switches it off, that does.
func authChange(c change) {
	from, err := release.Parse(c.before.Version)
	to, errTo := release.Parse(c.after.Version)
	if err != nil || errTo != nil || from == to || !c.before.AuthEnabled() || !c.after.AuthEnabled() {
		return
	}
	if why := release.HopWithAuth(from, to); why != "" {
		c.fail("spec.version", "%s → %s: %s: write auth.enabled: false in this change, and true again in one after the rollout", from, to, why)
	}
}

// versionFindings are those of each step of the path. A bad target is refused here
// only, where it is new: validation warns of it, since the cluster may be about
// to leave it.
func versionFindings(from, to release.Version, path UpgradePath) []release.Finding {
	stops := []release.Version{to}
	if path == PathStepwise {
		var err error
		if stops, err = release.Path(from, to); err != nil {
			return []release.Finding{{Severity: release.Refuse, Message: err.Error()}}
		}
	}
	var findings []release.Finding
	at := from
	for _, stop := range stops {
		findings = append(append(findings, release.Hop(at, stop)...), logFindings(at, stop)...)
		at = stop
	}
	if slices.ContainsFunc(findings, isRefusal) {
		return findings
	}
	for _, bad := range release.Bad(to) {
		if isRefusal(bad) {
			findings = append(findings, bad)
		}
	}
	return findings
}

// logFindings reports what a step costs whose new minor cannot read every log. Only
// the live cluster can tell whether its log is one of these.
func logFindings(from, to release.Version) []release.Finding {
	oldest, limited := release.OldestLog(to)
	if _, before := release.OldestLog(from); !limited || before || release.Compare(from, to) > 0 {
		return nil
	}
	// The members write a log that the new minor reads when they run the minor below it,
	// which is not that of from where a minor is skipped.
	below := release.Version{Major: to.Major, Minor: to.Minor - 1}
	return []release.Finding{{Severity: release.Warn, Message: fmt.Sprintf(
		"%s → %s: %s panics at log entries from before %s: unless quorate knows that the cluster has none, it restarts every member once more on %s first",
		from, to, to.Line(), oldest, below.Line())}}
}

// isRefusal reports whether a finding forbids the change.
func isRefusal(f release.Finding) bool { return f.Severity == release.Refuse }

// vanished reports a cluster that is no longer in Git: that deletes nothing.
func (c *comparison) vanished(old *Cluster) {
	if c.mayBeHeld(old) || old.Spec.State == StateDeleted || old.Spec.Mode == ModeObserve {
		return
	}
	id := identity{KindCluster, old.Metadata.Namespace, old.Metadata.Name}
	message := "is no longer in Git, which deletes nothing: it would keep running as an orphan; to delete it write state: Deleted first, to let go of it write mode: Observe first"
	if to := c.movedTo(old); to != "" {
		message = fmt.Sprintf("is no longer in Git, but %s/%s is: a cluster cannot change its namespace, that would be a new, empty one; restore a backup there instead, and write state: Deleted here",
			to, old.Metadata.Name)
	}
	// Its file may be gone, and then no line of it can be shown.
	c.fail(IDVanished, Origin{File: old.Origin.File}, KindCluster, old.Metadata, "", "%s %s", id, message)
}

// mayBeHeld reports whether after holds the cluster, or cannot tell.
func (c *comparison) mayBeHeld(old *Cluster) bool {
	held := slices.ContainsFunc(c.after.Held, func(h Held) bool {
		if h.Kind != KindCluster && h.Kind != "" {
			return false
		}
		named := h.Namespace == old.Metadata.Namespace && h.Name == old.Metadata.Name
		return named || h.Name == "" && h.Origin.File == old.Origin.File
	})
	return held || slices.ContainsFunc(c.after.Unreadable, func(p Problem) bool { return p.File == old.Origin.File })
}

// movedTo is the namespace in which a cluster of the same name is new, or "".
func (c *comparison) movedTo(old *Cluster) string {
	for i := range c.after.Clusters {
		m := c.after.Clusters[i].Metadata
		if m.Name != old.Metadata.Name {
			continue
		}
		if _, known := lookup(c.before.Clusters, m, clusterName); !known {
			return m.Namespace
		}
	}
	return ""
}

// same compares two specs by what they say.
func same(a, b any) bool { return hashOf(a) == hashOf(b) }
