package stores

import (
	"cmp"
	"fmt"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema/release"
)

// DescribeSource adds what the member said of itself.
func DescribeSource(m *backup.Manifest, member state.Member) {
	m.EtcdVersion, m.StorageVersion = member.Version, member.StorageVersion
	m.Revision = max(m.Revision, member.Revision)
	if member.HashRevision > 0 {
		m.Hash, m.HashRevision, m.CompactRevision, m.Keys = member.Hash, member.HashRevision, member.CompactRevision, member.Keys
	}
}

// FitsVolume refuses a backup that the volumes of the new cluster have no room for. A file
// system takes some of a volume for itself: the step that restores measures what is left.
func FitsVolume(m backup.Manifest, c desired.Cluster) error {
	size, volume := cmp.Or(m.SnapshotSize, m.Size), c.Spec.Storage.Size.Value()
	if need := state.RestoreRoom(size); size > 0 && need > volume {
		return fmt.Errorf("the database in the backup at %s has %s, so that its restore needs %s, and the volumes of the new cluster have %s; set spec.clusterTemplate.storage.size to more than that",
			m.Object, state.SizeText(size), state.SizeText(need), state.SizeText(volume))
	}
	return nil
}

// FitsRelease refuses a backup that the release cannot start on. From 3.6 on the
// storage version says what is in the database; before, the member's own does.
func FitsRelease(m backup.Manifest, version string) error {
	if !release.StartsOn(cmp.Or(m.StorageVersion, m.EtcdVersion), version) {
		return fmt.Errorf("the backup at %s was made by etcd %q with storage version %q, and etcd %s cannot start on that; name a release of the same minor, or of the one after it, in spec.clusterTemplate.version",
			m.Object, m.EtcdVersion, m.StorageVersion, version)
	}
	return nil
}
