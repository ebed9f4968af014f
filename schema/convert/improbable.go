package convert

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/quorate/quorate/schema"
)

// improbableCluster converts an EtcdCluster.
func (c *conversion) improbableCluster(s source) {
	d := c.draft(s, schema.KindCluster, s.name)
	d.header += road(s, "http://"+s.name+":2379")
	spec := clusterSpec{draft: d, source: s, at: "spec", newName: s.name}
	d.object(s, func(f field) { spec.improbable(f) })
	spec.finish()
}

// improbable converts the spec of a cluster.
func (c clusterSpec) improbable(f field) {
	c.walk(f, handlers{
		"version": c.version, "replicas": c.replicas,
		"storage": func(f field) { c.walk(f, handlers{"volumeClaimTemplate": c.claim}) },
		"podTemplate": func(f field) {
			c.walk(f, handlers{
				"metadata": func(f field) {
					c.walk(f, handlers{"annotations": c.move(c.path("podTemplate.metadata.annotations"))})
				},
				"resources": c.move(c.path("etcd.resources")),
				"affinity":  c.affinity,
			})
		},
	})
	c.needStorage("the old file named no size. Choose it now, it cannot be changed later")
	c.set(c.path("tls.mode"), text(string(schema.TLSDisabled)))
	c.note(f.line, c.path("tls"), "the old operator had no TLS. The clients must be pointed "+
		"at the new cluster anyway: delete this field, and quorate issues and renews certificates")
}

// improbableBackup converts an EtcdBackup.
func (c *conversion) improbableBackup(s source) {
	d := c.draft(s, schema.KindBackup, s.name)
	d.object(s, func(f field) { c.backupRequest(s, d, f, "spec") })
}

// improbableSchedule converts an EtcdBackupSchedule.
func (c *conversion) improbableSchedule(s source) {
	d := c.draft(s, schema.KindBackupSchedule, s.name)
	const advice = "counted objects in Kubernetes, not stored backups: quorate keeps no such objects. To keep a number of backups write retention.keepLast"
	d.object(s, func(f field) {
		d.walk(f, handlers{
			"schedule":                      d.keep("spec.schedule"),
			"backupTemplate":                func(f field) { c.backupRequest(s, d, f, "spec.backupTemplate") },
			"successfulBackupsHistoryLimit": d.say("spec", advice),
			"failedBackupsHistoryLimit":     d.say("spec", advice),
		})
	})
	if d.at("spec.backupTemplate") == nil {
		d.leaveOut("it has no backupTemplate: write what to back up and where to")
	}
}

// backupRequest converts source and destination of a backup.
func (c *conversion) backupRequest(s source, d *draft, f field, at string) {
	d.walk(f, handlers{
		"source": func(f field) {
			d.walk(f, handlers{"clusterURL": func(f field) {
				if name := c.clusterBehind(s, f.value.Value); name != "" {
					d.set(at+".source.clusterName", text(name))
					return
				}
				d.clusterURL(f, at+".source")
			}})
		},
		"destination": func(f field) {
			take := func(f field) { d.urlTemplate(f, at+".destination") }
			// Early releases and their samples said objectURL.
			d.walk(f, handlers{"objectURLTemplate": take, "objectURL": take})
		},
		// Both were in the project's design, and in no release.
		"type":             d.say(at, "has no equivalent: a backup is always a snapshot"),
		"clusterEndpoints": d.say(at, "has no equivalent: write source.clusterName, or source.clusterURL with one URL"),
	})
	if d.at(at+".source") == nil {
		d.leaveOut("it names no cluster: write source.clusterName or source.clusterURL")
	}
	if d.at(at+".destination") == nil {
		d.leaveOut("it names no place to write to: write destination.objectURLTemplate")
	}
}

// urlTemplate converts the template of an object URL.
func (d *draft) urlTemplate(f field, at string) {
	value, ok := d.text(f)
	if !ok {
		return
	}
	value, ok = d.objectURL(field{path: f.path, line: f.line, value: text(value)}, at)
	if !ok {
		return
	}
	value = d.templateFields(f, value, at)
	place, query, hasQuery := strings.Cut(value, "?")
	if !strings.Contains(place, ".UID") {
		place = withUID(place)
		d.note(f.line, at, "%s was put into the name: without it one backup would write over another", uidMark)
	}
	if hasQuery {
		place += "?" + query
	}
	d.set(at+".objectURLTemplate", text(place))
	d.storeSecret(f, place, at)
}

// storeSecret names a Secret where the old operator's own credentials went to a server, or
// were one of several, by the word of a file: quorate's do not.
func (d *draft) storeSecret(f field, objectURL, at string) {
	if schema.CheckStoreAccess(objectURL, false, "") == nil || schema.CheckStoreAccess(objectURL, true, "") != nil {
		return
	}
	d.set(at+".credentials.secretName", text("backup-store"))
	d.note(f.line, at, "the credentials were the old operator's own. Put them into a Secret backup-store, with the keys access-key-id and secret-access-key and the label quorate.dev/use: backups; "+
		"or give quorate this server by --backup-url, and leave the destination out")
}

// templateFields replaces what only the old operator's templates could name.
func (d *draft) templateFields(f field, value, at string) string {
	action := regexp.MustCompile(`\{\{-?\s*\.((?:ObjectMeta\.)?[A-Za-z]+)[^{}]*\}\}`)
	return action.ReplaceAllStringFunc(value, func(match string) string {
		switch name := strings.TrimPrefix(action.FindStringSubmatch(match)[1], "ObjectMeta."); name {
		case "UID", "Namespace":
			return "{{ ." + name + " }}"
		case "Name":
			d.note(f.line, at, "{{ .Name }} was the name of the backup, and is the name of the cluster here")
			return "{{ .Name }}"
		default:
			d.note(f.line, at, "%s has no equivalent and became %s: the time of a backup is in what is stored with it", clip(match), uidMark)
			return uidMark
		}
	})
}

// objectURL is an object URL with the parameters that quorate's library knows.
// One that holds a secret is not repeated.
func (d *draft) objectURL(f field, at string) (string, bool) {
	value, ok := d.text(f)
	if !ok {
		return "", false
	}
	place, query, _ := strings.Cut(value, "?")
	values, err := url.ParseQuery(query)
	if err != nil || strings.ContainsAny(place, "@#") {
		d.leaveOut("%s is not a plain URL without user and password: write it manually, with the credentials in a Secret", f.path)
		return "", false
	}
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, argument, _ := strings.Cut(part, "=")
		switch name {
		case "":
		case "endpoint":
			kept = append(kept, "endpoint="+withScheme(argument, values.Get("disableSSL") == "true"))
		case "region", "s3ForcePathStyle", "use_path_style", "profile":
			kept = append(kept, part)
		case "disableSSL":
			// The scheme of the endpoint says it.
		default:
			d.note(f.line, at, "the parameter %s of the URL has no equivalent and was left out", clip(name))
		}
	}
	if len(kept) > 0 {
		place += "?" + strings.Join(kept, "&")
	}
	return place, true
}

// withScheme gives an endpoint the scheme that another parameter said.
func withScheme(endpoint string, plain bool) string {
	switch {
	case strings.Contains(endpoint, "://") || strings.Contains(strings.ToLower(endpoint), "%3a%2f%2f"):
		return endpoint
	case plain:
		return "http://" + endpoint
	}
	return "https://" + endpoint
}

// improbableRestore converts an EtcdRestore.
func (c *conversion) improbableRestore(s source) {
	d := c.draft(s, schema.KindRestore, s.name)
	spec := clusterSpec{draft: d, source: s, at: "spec.clusterTemplate"}
	d.object(s, func(f field) {
		d.walk(f, handlers{
			"source": func(f field) {
				d.walk(f, handlers{"objectURL": func(f field) {
					if value, ok := d.objectURL(f, "spec.source"); ok {
						d.set("spec.source.objectURL", text(value))
						d.storeSecret(f, value, "spec.source")
					}
				}})
			},
			"clusterTemplate": func(f field) {
				spec.source.name = textAt(f.value, "clusterName")
				spec.newName = c.freeName(d, spec.source, f)
				d.walk(f, handlers{"clusterName": nothing, "spec": spec.improbable})
			},
		})
	})
	if d.at(spec.at) == nil {
		d.leaveOut("it has no clusterTemplate with a spec: write the cluster to restore into")
	}
	spec.finish()
	arrange(d.at("spec"), "source", "clusterName", "clusterTemplate")
}

// freeName is the name of the restored cluster: another one where a cluster of
// that name is in the same files.
func (c *conversion) freeName(d *draft, s source, f field) string {
	name := s.name
	if _, taken := c.clusters[s.key()]; taken {
		name = shorten(s.name, "-restored", 40)
		d.note(f.line, "spec.clusterName", "quorate restores into a new cluster and never over one that exists, and %s is in these files. "+
			"Choose a name, and point the clients at it afterwards", word(s.name))
	}
	if name != "" {
		d.set("spec.clusterName", text(name))
	}
	return name
}
