package reconciler

import (
	"cmp"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/manifests"
)

// trialImage is an etcd of the very release that gave the backup, from where the
// cluster's own images come.
func (s *Scheduler) trialImage(q desired.Backup, version string) string {
	c, named := s.clusters.Get(q.Metadata.Namespace + "/" + q.Spec.Source.ClusterName)
	if !named || len(c.Problems) > 0 {
		return cmp.Or(s.options.Render.Repository, manifests.DefaultRepository) + ":v" + version
	}
	if c.Spec.Version != version {
		c.Spec.Version, c.Spec.Image.Digest = version, ""
	}
	return manifests.Image(c.EtcdCluster, s.options.Render)
}
