package convert

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/capacity"
	"github.com/quorate/quorate/schema/release"
)

// clusterSpec is the spec of an old cluster while it is converted.
type clusterSpec struct {
	*draft
	source
	// at is where the new spec begins: "spec", or "spec.clusterTemplate" in a
	// restore.
	at string
	// newName is the name of the new cluster, for the selectors in it.
	newName string
}

// path is a field of the new spec.
func (c clusterSpec) path(field string) string { return c.at + "." + field }

// finish notes what follows from the whole spec, and puts it in reading order.
func (c clusterSpec) finish() {
	c.versionNote()
	c.sizeNote()
	arrange(c.draft.at(c.at), "version", "replicas", "image", "storage", "podTemplate", "etcd", "tls", "network", "backup", "mode")
}

// version takes a release; the old operators took a leading v as well.
func (c clusterSpec) version(f field) {
	if value, ok := c.text(f); ok {
		c.set(c.path("version"), quoted(strings.TrimLeft(value, "v")))
	}
}

// versionNote tells how to leave a release that is no longer safe.
func (c clusterSpec) versionNote() {
	text := textAt(c.draft.at(c.at), "version")
	version, err := release.Parse(text)
	if err != nil || release.Compare(version, release.Version{Major: 3, Minor: 4}) >= 0 {
		return
	}
	c.note(c.line, c.path("version"), "etcd %s gets no more fixes. Once the data is here, go up one minor at a time, to the newest patch "+
		"of each: a commit per minor, or upgrade.path: Stepwise with the last one. etcd 3.4 and later no longer serve the v2 API by default: "+
		"see that nothing uses it before you begin", text)
}

// replicas takes the number of members.
func (c clusterSpec) replicas(f field) {
	if n, ok := c.integer(f); ok {
		c.set(c.path("replicas"), number(fmt.Sprint(n)))
	}
}

// claim takes size and class from the spec of a volume claim.
func (c clusterSpec) claim(f field) {
	c.walk(f, handlers{
		"storageClassName": c.keep(c.path("storage.storageClassName")),
		"resources":        c.claimResources,
		"accessModes":      c.accessModes,
		"volumeMode":       c.volumeMode,
		"selector":         c.say(c.path("storage"), "has no equivalent: the storage class chooses the volumes"),
		"volumeName":       c.say(c.path("storage"), "has no equivalent: each member gets its own volume"),
		"dataSource":       c.say(c.path("storage"), "has no equivalent: data comes through an EtcdRestore"),
		"dataSourceRef":    c.say(c.path("storage"), "has no equivalent: data comes through an EtcdRestore"),
	})
}

func (c clusterSpec) claimResources(f field) {
	c.walk(f, handlers{
		"requests": func(f field) {
			c.walk(f, handlers{"storage": c.keep(c.path("storage.size"))})
		},
		"limits": c.say(c.path("storage.size"), "has no equivalent: the request is the size of the volume"),
	})
}

func (c clusterSpec) accessModes(f field) {
	for _, mode := range f.value.Content {
		if mode.Value != "ReadWriteOnce" {
			c.note(f.line, c.path("storage"), "%s has no equivalent: a member's volume is always ReadWriteOnce", f.path)
			return
		}
	}
}

func (c clusterSpec) volumeMode(f field) {
	if f.value.Value != "Filesystem" {
		c.note(f.line, c.path("storage"), "%s has no equivalent: etcd needs a file system on its volume", f.path)
	}
}

// needStorage gives a size where the old file has none.
func (c clusterSpec) needStorage(why string) {
	if valueAt(valueAt(c.draft.at(c.at), "storage"), "size") == nil {
		size := int64(8 << 30)
		if quota, err := resource.ParseQuantity(textAt(valueAt(c.draft.at(c.at), "etcd"), "quotaBackendBytes")); err == nil {
			size = max(size, (capacity.Volume(quota.Value(), capacity.MostEntries)>>30+1)<<30)
		}
		c.set(c.path("storage.size"), text(resource.NewQuantity(size, resource.BinarySI).String()))
		c.note(c.line, c.path("storage.size"), "%s", why)
	}
}

// sizeNote warns of a volume that is full before etcd stops writes.
func (c clusterSpec) sizeNote() {
	spec := c.draft.at(c.at)
	size, err := resource.ParseQuantity(textAt(valueAt(spec, "storage"), "size"))
	if err != nil || size.Cmp(resource.MustParse("2Gi")) >= 0 || valueAt(valueAt(spec, "etcd"), "quotaBackendBytes") != nil {
		return
	}
	c.note(c.line, c.path("storage.size"), "%s is less than etcd's default quota of 2Gi: the disk would be full before etcd stops writes. "+
		"Write a larger size now, since it cannot be changed later, or a smaller etcd.quotaBackendBytes", size.String())
}

// affinity takes scheduling rules, with the labels of the old operator's pods
// replaced by those of quorate's.
func (c clusterSpec) affinity(f field) {
	if isEmpty(f.value) {
		return
	}
	rules := clone(f.value)
	at := c.path("podTemplate.spec.affinity")
	c.set(at, rules)
	if c.relabel(rules) {
		c.note(f.line, at, "%s selected the old operator's pods: the labels were replaced by those of quorate's pods", f.path)
	}
}

// relabel replaces the labels of the old operators in every selector, and says
// whether there was any.
func (c clusterSpec) relabel(node *yaml.Node) bool {
	changed := false
	if k, v := pairAt(node, "key"); k != nil && valueAt(node, "operator") != nil {
		changed = c.relabelKey(v, valueAt(node, "values"))
	}
	if labels := valueAt(node, "matchLabels"); labels != nil && labels.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(labels.Content); i += 2 {
			changed = c.relabelKey(labels.Content[i], labels.Content[i+1]) || changed
		}
	}
	for _, part := range node.Content {
		changed = c.relabel(part) || changed
	}
	return changed
}

// relabelKey replaces one label: its key, and the name of the cluster in its
// values.
func (c clusterSpec) relabelKey(key, values *yaml.Node) bool {
	switch {
	case key.Value == "app" && values != nil && (values.Value == "etcd" || len(values.Content) == 1 && values.Content[0].Value == "etcd"):
		key.Value = "app.kubernetes.io/name"
		return true
	case key.Value != "etcd_cluster" && key.Value != groupImprobable+"/cluster-name":
		return false
	}
	key.Value = schema.Group + "/cluster"
	if values != nil {
		for _, value := range append([]*yaml.Node{values}, values.Content...) {
			if value.Kind == yaml.ScalarNode && value.Value == c.source.name {
				value.Value = c.newName
			}
		}
	}
	return true
}

// road is the heading of each cluster: how its data gets here.
func road(s source, endpoint string) string {
	return fmt.Sprintf(`
quorate cannot take over the pods and volumes of the old operator: this declares a new cluster, which starts empty. How the data gets there:
1. Keep the old cluster running. While both are there, give this one another name or namespace: their Services and volumes may have the same names.
2. Commit this file, and wait until the new cluster is ready.
3. Stop whatever writes. Take a last snapshot with the old operator or "etcdctl snapshot save", and keep it.
4. Copy the keys with "etcdctl make-mirror" from %s to the new cluster. It does not copy leases, revisions, users and roles.
5. Compare both, point the clients at the Service %s-client, port 2379, and only then remove the old cluster.
Or, in place of steps 2 and 4, restore that snapshot, with leases, users and roles: "quorate snapshot adopt" makes it a backup, and an EtcdRestore with this spec as its clusterTemplate stands in Git until it is done.`,
		endpoint, s.name)
}
