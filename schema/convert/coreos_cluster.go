package convert

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/schema"
)

// What the last release of coreos/etcd-operator filled in.
const (
	coreosRepository = "quay.io/coreos/etcd"
	coreosVersion    = "3.2.13"
)

// coreosCluster converts an EtcdCluster, and the backup and restore policies
// that stood in it until v0.6.
func (c *conversion) coreosCluster(s source) {
	d := c.draft(s, schema.KindCluster, s.name)
	d.header += road(s, "http(s)://"+s.name+"-client:2379")
	spec := clusterSpec{draft: d, source: s, at: "spec", newName: s.name}
	d.object(s, func(f field) {
		c.coreosSpec(spec, f)
		if policy := valueAt(f.value, "backup"); !isNull(policy) {
			c.inlineBackup(s, d, field{path: "spec.backup", line: policy.Line, value: policy})
		}
		if policy := valueAt(f.value, "restore"); !isNull(policy) {
			c.inlineRestore(s, field{path: "spec.restore", line: policy.Line, value: policy})
		}
	})
	spec.finish()
}

// coreosSpec converts the spec of a cluster. The policies are for documents of
// their own.
func (c *conversion) coreosSpec(spec clusterSpec, f field) {
	spec.set(spec.path("version"), quoted(coreosVersion))
	if isEmpty(valueAt(f.value, "version")) {
		spec.note(f.line, spec.path("version"), "spec.version was left out: the old operator ran %s then. Write what your members report", coreosVersion)
	}
	if isNull(valueAt(f.value, "size")) {
		spec.note(f.line, "", "spec.size is missing: write how many members there should be as spec.replicas")
	}
	spec.walk(f, handlers{
		"size": spec.replicas, "version": spec.version,
		"repository": spec.repository, "baseImage": spec.repository,
		"paused": spec.paused, "pod": spec.pod, "TLS": spec.tls,
		"backup": nothing, "restore": nothing,
		"selfHosted": spec.say("", "has no equivalent: quorate does not run the etcd of the Kubernetes cluster that it runs in itself. Do not use this file for one"),
	})
	spec.needStorage("the old members had no lasting volume; quorate's always have one. Choose its size now, it cannot be changed later")
	if isEmpty(valueAt(f.value, "TLS")) {
		spec.set(spec.path("tls.mode"), text(string(schema.TLSDisabled)))
		spec.note(f.line, spec.path("tls"), "the old cluster had no TLS. The clients must be pointed "+
			"at the new cluster anyway: delete this field, and quorate issues and renews certificates")
	}
}

// repository takes an image, unless it is the one that is the default here too.
func (c clusterSpec) repository(f field) {
	if value, ok := c.text(f); ok && value != coreosRepository {
		c.set(c.path("image.repository"), text(value))
	}
}

// paused is what Observe is in quorate.
func (c clusterSpec) paused(f field) {
	if c.isTrue(f) {
		c.set(c.path("mode"), text(string(schema.ModeObserve)))
		c.note(f.line, c.path("mode"), "%s became mode: Observe: quorate plans and reports, and makes no cluster until this line is gone", f.path)
	}
}

// pod takes the pod policy.
func (c clusterSpec) pod(f field) {
	c.walk(f, handlers{
		"labels":                       c.move(c.path("podTemplate.metadata.labels")),
		"annotations":                  c.move(c.path("podTemplate.metadata.annotations")),
		"nodeSelector":                 c.move(c.path("podTemplate.spec.nodeSelector")),
		"tolerations":                  c.move(c.path("podTemplate.spec.tolerations")),
		"resources":                    c.move(c.path("etcd.resources")),
		"securityContext":              c.move(c.path("podTemplate.spec.securityContext")),
		"affinity":                     c.affinity,
		"antiAffinity":                 c.antiAffinity(!isEmpty(valueAt(f.value, "affinity"))),
		"etcdEnv":                      c.etcdEnv,
		"persistentVolumeClaimSpec":    c.claim,
		"pv":                           c.volume,
		"ClusterDomain":                c.clusterDomain,
		"busyboxImage":                 c.say(c.path("podTemplate"), "has no equivalent: no pod of quorate's needs busybox. Its first container is the image of --guard-image"),
		"DNSTimeoutInSecond":           c.say(c.path("podTemplate"), "has no equivalent: the name of a member is published before its pod is ready, nothing waits for it"),
		"automountServiceAccountToken": c.say(c.path("podTemplate"), "has no equivalent: no member ever gets a token"),
		"hostNetwork":                  c.say(c.path("podTemplate"), "has no equivalent: members are in the network of the pods"),
	})
	arrange(c.draft.at(c.path("podTemplate.spec")), "affinity", "nodeSelector", "tolerations", "securityContext")
}

// antiAffinity was a short form, which an affinity overrides.
func (c clusterSpec) antiAffinity(overridden bool) func(field) {
	return func(f field) {
		if !c.isTrue(f) || overridden {
			return
		}
		labels, selector, term, rules := mapping(), mapping(), mapping(), mapping()
		put(labels, schema.Group+"/cluster", text(c.newName))
		put(selector, "matchLabels", labels)
		put(term, "labelSelector", selector)
		put(term, "topologyKey", text("kubernetes.io/hostname"))
		put(rules, "requiredDuringSchedulingIgnoredDuringExecution", sequence(term))
		c.set(c.path("podTemplate.spec.affinity.podAntiAffinity"), rules)
	}
}

// volume takes the volume of members, which v0.6 had announced.
func (c clusterSpec) volume(f field) {
	c.walk(f, handlers{
		"volumeSizeInMB": func(f field) {
			if n, ok := c.integer(f); ok {
				c.set(c.path("storage.size"), text(fmt.Sprintf("%dMi", n)))
			}
		},
		"storageClass": c.keep(c.path("storage.storageClassName")),
	})
}

// clusterDomain was written with a leading dot.
func (c clusterSpec) clusterDomain(f field) {
	if value, ok := c.text(f); ok {
		c.set(c.path("network.clusterDomain"), text(strings.Trim(value, ".")))
	}
}
