package schema

import (
	"reflect"
	"strings"
)

// moved returns where a field is that a person brought along from elsewhere, or
// wrote at the wrong place, and which field is meant; or "".
func moved(root reflect.Type, field, key string) (hint, meant string) {
	if hint, meant, ok := renamed(field, key); ok {
		return ": " + hint, meant
	}
	if looksSecret(key) {
		return ": if it is a secret, it must not be in Git, and everyone who can read the repository can use it; name a Kubernetes Secret with credentials.secretName", ""
	}
	if place, ok := elsewhere(root, key); ok && place != field {
		return " here: move it below " + place + ", and indent it", child(place, key)
	}
	return "", ""
}

// renamed knows the fields of coreos/etcd-operator, of improbable-eng's
// etcd-cluster-operator and of Kubernetes that have another name here, or none.
func renamed(field, key string) (hint, meant string, ok bool) {
	// The spec of a cluster is part of a restore, too, and so on.
	base, place := "spec", child(field, key)
	for _, template := range []string{"spec.clusterTemplate", "spec.backupTemplate"} {
		if rest, ok := strings.CutPrefix(place, template+"."); ok {
			base, place = template, "spec."+rest
		}
	}
	row, ok := renamedFields()[place]
	if row[1] != "" {
		meant = base + "." + row[1]
	}
	return row[0], meant, ok
}

// renamedFields maps a field to what to do, and to the field of the spec that it
// stands for.
func renamedFields() map[string][2]string {
	return map[string][2]string{
		"status": {"leave it out, quorate reports the status itself", ""},

		"metadata.creationTimestamp": {"Kubernetes sets it, leave it out", ""},
		"metadata.generation":        {"Kubernetes sets it, leave it out", ""},
		"metadata.managedFields":     {"Kubernetes sets it, leave it out", ""},
		"metadata.resourceVersion":   {"Kubernetes sets it, leave it out", ""},
		"metadata.uid":               {"Kubernetes sets it, leave it out", ""},
		"metadata.generateName":      {"write the whole name as metadata.name", ""},
		"metadata.finalizers":        {"leave it out, only spec.state: Deleted deletes anything", ""},
		"metadata.ownerReferences":   {"leave it out, quorate sets those of its own objects", ""},

		"spec.size":                        {"the number of members is spec.replicas", "replicas"},
		"spec.members":                     {"the number of members is spec.replicas", "replicas"},
		"spec.etcdVersion":                 {"the release is spec.version", "version"},
		"spec.baseImage":                   {"the image is named by spec.image.repository", ""},
		"spec.repository":                  {"the image is named by spec.image.repository", ""},
		"spec.image.tag":                   {"the tag is v and spec.version", ""},
		"spec.pod":                         {"write spec.podTemplate, with labels and annotations in its metadata and the rest in its spec", ""},
		"spec.podTemplate.etcdEnv":         {"write the flags of etcd to spec.etcd.options, without dashes", ""},
		"spec.TLS":                         {"write spec.tls, and its mode", ""},
		"spec.tls.static":                  {"write mode: Secrets, and spec.tls.secrets", ""},
		"spec.paused":                      {"write spec.mode: Observe", ""},
		"spec.suspend":                     {"write spec.mode: Observe", ""},
		"spec.selfHosted":                  {"there is no such mode, leave it out", ""},
		"spec.volumeClaimTemplate":         {"write spec.storage.size and spec.storage.storageClassName", ""},
		"spec.storage.resources":           {"write spec.storage.size", "storage.size"},
		"spec.storage.storageClass":        {"write spec.storage.storageClassName", ""},
		"spec.storage.volumeClaimTemplate": {"write spec.storage.size and spec.storage.storageClassName", "storage.size"},

		"spec.maxBackups":                    {"write spec.retention.keepLast in an EtcdBackupSchedule", ""},
		"spec.successfulBackupsHistoryLimit": {"write spec.retention.keepLast", ""},
		"spec.failedBackupsHistoryLimit":     {"leave it out, failed backups are not kept", ""},
		"spec.backupPolicy":                  {"write an EtcdBackupSchedule with schedule: \"@every 6h\" and retention.keepLast", ""},
		"spec.etcdEndpoints":                 {"write source.clusterURL, or source.clusterName for a cluster of quorate", ""},
		"spec.clusterEndpoints":              {"write source.clusterURL, or source.clusterName for a cluster of quorate", ""},
		"spec.clientTLSSecret":               {"write source.tls.secretName", ""},
		"spec.storageType":                   {"the store is the scheme of objectURLTemplate: s3, gs, azblob or file", ""},
		"spec.backupStorageType":             {"the store is the scheme of objectURL: s3, gs, azblob or file", ""},
		"spec.s3":                            {"write objectURLTemplate: \"s3://bucket/{{ .UID }}.db\" or, in a restore, objectURL, and credentials.secretName", ""},
		"spec.gcs":                           {"write objectURLTemplate: \"gs://bucket/{{ .UID }}.db\" or, in a restore, objectURL, and credentials.secretName", ""},
		"spec.abs":                           {"write objectURLTemplate: \"azblob://bucket/{{ .UID }}.db\" or, in a restore, objectURL, and credentials.secretName", ""},
		"spec.etcdCluster":                   {"write spec.clusterName", ""},
	}
}

// elsewhere finds the field that has a known field of this name, in the document
// whose type is root. Of several places the highest counts, if it is alone there.
func elsewhere(root reflect.Type, key string) (place string, ok bool) {
	type part struct {
		field string
		t     reflect.Type
	}
	for level := []part{{"", root}}; len(level) > 0; {
		var places []string
		var next []part
		for _, p := range level {
			for name, t := range jsonFields(p.t) {
				if name == key {
					places = append(places, p.field)
				}
				// Kubernetes' own types have too many names of all kinds.
				if t.Kind() == reflect.Struct && t.PkgPath() == root.PkgPath() {
					next = append(next, part{child(p.field, name), t})
				}
			}
		}
		if len(places) > 0 {
			return places[0], len(places) == 1
		}
		level = next
	}
	return "", false
}
