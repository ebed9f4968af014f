package convert

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/schema"
)

// ossAdvice is what is known of a store that quorate has no scheme for.
const ossAdvice = "Alibaba's OSS has no equivalent. It also speaks S3's protocol: s3://BUCKET/KEY?endpoint=https://oss-REGION.aliyuncs.com" +
	"&region=oss-REGION&use_path_style=false, with a Secret for S3, may work and is not tested"

// coreosBackup converts an EtcdBackup: one with an interval is a schedule.
func (c *conversion) coreosBackup(s source) {
	kind, at := schema.KindBackup, "spec"
	policy := valueAt(valueAt(s.node, "spec"), "backupPolicy")
	if interval := valueAt(policy, "backupIntervalInSecond"); interval != nil && interval.Value != "0" && !isNull(interval) {
		kind, at = schema.KindBackupSchedule, "spec.backupTemplate"
	}
	d := c.draft(s, kind, s.name)
	d.object(s, func(f field) { c.coreosBackupSpec(s, d, f, at) })
	arrange(d.at("spec"), "schedule", "retention", "source", "destination", "backupTemplate")
	arrange(d.at(at), "source", "destination")
	if d.at(at+".source") == nil {
		d.leaveOut("it names no cluster: write source.clusterName or source.clusterURL")
	}
}

func (c *conversion) coreosBackupSpec(s source, d *draft, f field, at string) {
	storageType := textAt(f.value, "storageType")
	d.pickStore(f, storageType, at+".destination", func(st store) {
		st.key = withUID(st.key)
		d.setDestination(at+".destination", st)
		d.note(f.line, at+".destination", "each backup gets its own name, with %s in it, where the old operator wrote over one object "+
			"or appended revision and time: whatever reads the old name must read the newest one", uidMark)
	}, handlers{
		"storageType":     nothing,
		"etcdEndpoints":   func(f field) { c.endpoints(s, d, f, at+".source") },
		"clientTLSSecret": func(f field) { d.clientTLS(f, at+".source") },
		"backupPolicy":    d.backupPolicy,
	})
	if d.at(at+".source.clusterName") != nil {
		remove(d.root, "", at+".source.tls")
	}
}

// pickStore takes the store that the type names, and notes the others.
func (d *draft) pickStore(f field, storageType, at string, take func(store), h handlers) {
	wanted, _, _ := storeNames(storageType)
	for _, name := range []string{"s3", "abs", "gcs", "oss"} {
		switch {
		case name == wanted:
			h[name] = func(f field) { take(d.takeStore(f, storageType, at)) }
		case name == "oss" && storageType == "OSS":
			h[name] = nothing
		default:
			h[name] = d.say("", "was not used, because the type of the store is %s, and was left out", clip(storageType))
		}
	}
	switch {
	case storageType == "OSS":
		d.leaveOut("%s", ossAdvice)
	case wanted == "":
		d.leaveOut("its type of store, %s, is unknown: write the object URL manually", clip(storageType))
	case isEmpty(valueAt(f.value, wanted)):
		d.leaveOut("its type of store is %s, but spec.%s is missing: write the object URL manually", storageType, wanted)
	}
	d.walk(f, h)
}

// endpoints names the cluster: by its name where it is in the same files.
func (c *conversion) endpoints(s source, d *draft, f field, at string) {
	for _, item := range f.value.Content {
		if name := c.clusterBehind(s, item.Value); name != "" {
			d.set(at+".clusterName", text(name))
			return
		}
	}
	if f.value.Kind != yaml.SequenceNode || len(f.value.Content) == 0 {
		d.note(f.line, at, "%s is not a list of URLs", f.path)
		return
	}
	d.clusterURL(field{path: f.path, line: f.line, value: f.value.Content[0]}, at)
	if len(f.value.Content) > 1 {
		d.note(f.line, at, "only the first URL of %s was taken: with clusterName, of a cluster that quorate runs, it picks the best member itself", f.path)
	}
}

// clusterURL names a cluster by URL. One that holds a password is not repeated.
func (d *draft) clusterURL(f field, at string) {
	value, ok := d.text(f)
	if u, err := url.Parse(value); ok && (err != nil || u.User != nil || u.RawQuery != "") {
		d.leaveOut("%s is not a plain URL without user and password: write source.clusterURL manually", f.path)
		return
	}
	if ok {
		d.set(at+".clusterURL", text(value))
	}
}

// clusterBehind is the cluster of the same files and namespace whose client
// Service a URL names, or "".
func (c *conversion) clusterBehind(s source, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	labels := strings.Split(u.Hostname(), ".")
	name, isClient := labels[0], true
	if s.group == groupCoreos {
		name, isClient = strings.CutSuffix(name, "-client")
	}
	if !isClient || len(labels) > 1 && labels[1] != cmp.Or(s.namespace, "default") || len(labels) > 2 && labels[2] != "svc" {
		return ""
	}
	if cluster, ok := c.clusters[objectKey(s.namespace, name)]; !ok || cluster.group != s.group {
		return ""
	}
	return name
}

// clientTLS takes the Secret for a cluster by URL.
func (d *draft) clientTLS(f field, at string) {
	name, ok := d.text(f)
	if !ok {
		return
	}
	d.set(at+".tls.secretName", text(name))
	d.note(f.line, at, "the Secret %s must have the keys ca.crt, tls.crt and tls.key instead of etcd-client-ca.crt, etcd-client.crt and "+
		"etcd-client.key; it is not needed for a cluster that quorate runs", word(name))
}

// backupPolicy takes interval and number of backups.
func (d *draft) backupPolicy(f field) {
	d.walk(f, handlers{
		"timeoutInSecond":        d.say("", "has no equivalent: a file sets no limit to the time of a backup"),
		"backupIntervalInSecond": d.interval,
		"maxBackups":             d.maxBackups,
	})
}

// interval turns seconds into a schedule.
func (d *draft) interval(f field) {
	n, ok := d.integer(f)
	if !ok || n == 0 || d.kind != schema.KindBackupSchedule {
		return
	}
	if n < 0 || n > int64(10*365*24*time.Hour/time.Second) {
		d.leaveOut("%s is %d: write how often there should be a backup", f.path, n)
		return
	}
	if n < 60 {
		d.note(f.line, "spec.schedule", "%s is %d: a backup a minute is the most that is possible", f.path, n)
		n = 60
	}
	every := strings.TrimSuffix((time.Duration(n) * time.Second).String(), "0s")
	if !strings.HasSuffix(every, "m") {
		every = (time.Duration(n) * time.Second).String()
	}
	if hours, whole := strings.CutSuffix(every, "h0m"); whole {
		every = hours + "h"
	}
	d.set("spec.schedule", text("@every "+every))
}

// maxBackups is how many are kept; 0 keeps all in both worlds.
func (d *draft) maxBackups(f field) {
	n, ok := d.integer(f)
	switch {
	case !ok:
	case n < 0:
		d.leaveOut("%s is %d, and negative numbers are refused: write how many backups to keep, or 0 for all", f.path, n)
	case d.kind == schema.KindBackupSchedule:
		d.set("spec.retention.keepLast", number(strconv.FormatInt(n, 10)))
	case n > 0:
		d.note(f.line, "", "%s has no meaning for a single backup and was left out", f.path)
	}
}

// coreosRestore converts an EtcdRestore. The old operator deleted the cluster
// and recreated it; quorate restores into a new one only.
func (c *conversion) coreosRestore(s source) {
	d := c.draft(s, schema.KindRestore, s.name)
	cluster := ""
	d.object(s, func(f field) {
		d.pickStore(f, textAt(f.value, "backupStorageType"), "spec.source", func(st store) {
			d.set("spec.source.objectURL", text(st.url()))
			if st.secret != "" {
				d.set("spec.source.credentials.secretName", text(st.secret))
			}
		}, handlers{
			"backupStorageType": nothing,
			"etcdCluster": func(f field) {
				d.walk(f, handlers{"name": func(f field) { cluster, _ = d.text(f) }})
			},
		})
	})
	c.template(s, d, cmp.Or(cluster, s.name))
}

// template fills a restore with the spec of a cluster of the same files.
func (c *conversion) template(s source, d *draft, cluster string) {
	old, ok := c.clusters[objectKey(s.namespace, cluster)]
	if !ok || old.group != groupCoreos {
		d.leaveOut("the EtcdCluster %s, whose spec it needs, is not in these files: give its file, too, or write the clusterTemplate manually", clip(cluster))
		return
	}
	name := shorten(cluster, "-restored", 40)
	d.set("spec.clusterName", text(name))
	d.note(d.line, "spec.clusterName", "quorate restores into a new cluster and never over one that exists; the old operator put it "+
		"in the place of %s. Choose a name, and point the clients at it afterwards", word(cluster))
	quiet := clusterSpec{draft: &draft{file: d.file, line: d.line, root: d.root}, source: old, at: "spec.clusterTemplate", newName: name}
	c.coreosSpec(quiet, field{path: "spec", line: old.node.Line, value: valueAt(old.node, "spec")})
	quiet.finish()
	d.note(d.line, "spec.clusterTemplate", "%s", fmt.Sprintf("the spec of EtcdCluster %s: the comments there apply here, too", word(cluster)))
	arrange(d.at("spec"), "source", "clusterName", "clusterTemplate")
}
