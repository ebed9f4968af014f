// Package desiredtest has files that declare clusters, for tests.
package desiredtest

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// BrokenFile is a document of quorate of which only the kind can be read.
const BrokenFile = "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: [\n"

// ClusterFile returns a good file for one cluster.
func ClusterFile(name, version string) string {
	return "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: " + name + ", namespace: shop}\nspec:\n" +
		"  version: \"" + version + "\"\n  replicas: 3\n  storage: {size: 8Gi}\n"
}

// Parse parses files by path.
func Parse(files map[string]string) schema.Set {
	var list []schema.File
	for _, path := range slices.Sorted(maps.Keys(files)) {
		list = append(list, schema.File{Path: path, Data: []byte(files[path])})
	}
	return schema.Parse(list)
}

// Summary lists clusters as "namespace/name version" or "namespace/name held".
func Summary(clusters []desired.Cluster) []string {
	var list []string
	for _, c := range clusters {
		if len(c.Problems) > 0 {
			list = append(list, c.Key()+" held")
			continue
		}
		list = append(list, c.Key()+" "+c.Spec.Version)
	}
	slices.Sort(list)
	return list
}
