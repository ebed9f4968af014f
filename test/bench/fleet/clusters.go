package fleet

import (
	"fmt"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// namespaces is how many namespaces the clusters are in, by turns.
const namespaces = 10

// clusterName is one of many clusters, all alike: by its number, and how many members each has.
// Those with an odd number have TLS.
type clusterName struct {
	number   int
	replicas int32
	// wave is spec.upgrade.wave, of which a change restarts no member.
	wave int32
}

func (c clusterName) name() string      { return fmt.Sprintf("c%05d", c.number) }
func (c clusterName) namespace() string { return namespaceName(c.number % namespaces) }
func (c clusterName) key() string       { return c.namespace() + "/" + c.name() }
func (c clusterName) secure() bool      { return c.number%2 == 1 }

func namespaceName(i int) string { return fmt.Sprintf("fleet-%d", i) }

// id is etcd's.
func (c clusterName) id() uint64 { return numberOf(c.key()) }

// memberID is that of a member.
func (c clusterName) memberID(ordinal int32) uint64 {
	return numberOf(naming.Member(c.name(), ordinal))
}

// path is that of its file in the repository.
func (c clusterName) path() string {
	return fmt.Sprintf("clusters/%s/%s.yaml", c.namespace(), c.name())
}

// manifest is its file.
func (c clusterName) manifest() string {
	mode := schema.TLSDisabled
	if c.secure() {
		mode = schema.TLSManaged
	}
	return fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdCluster
metadata:
  name: %s
  namespace: %s
spec:
  version: %q
  replicas: %d
  storage:
    size: 1Gi
  tls:
    mode: %s
  upgrade:
    wave: %d
`, c.name(), c.namespace(), version, c.replicas, mode, c.wave)
}

// file is the cluster as quorate reads it.
func (c clusterName) file() schema.EtcdCluster {
	return *schema.Parse([]schema.File{{Path: c.path(), Data: []byte(c.manifest())}}).Clusters[0].EtcdCluster
}
