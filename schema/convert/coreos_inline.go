package convert

import (
	"cmp"
	"strings"

	"github.com/quorate/quorate/schema"
)

// inlineBackup converts the backup policy that stood in an EtcdCluster: the
// destination goes to the cluster, when and how many to a schedule.
func (c *conversion) inlineBackup(s source, cluster *draft, f field) {
	d := c.draft(s, schema.KindBackupSchedule, shorten(s.name, "-backup", 63))
	d.line = f.line
	d.set("spec.schedule", text("@every 30m"))
	d.set("spec.retention.keepLast", number("0"))
	d.set("spec.backupTemplate.source.clusterName", text(s.name))
	storageType := cmp.Or(textAt(f.value, "storageType"), "PersistentVolume")
	d.walk(f, handlers{
		"storageType":                   nothing,
		"backupIntervalInSecond":        d.interval,
		"maxBackups":                    d.maxBackups,
		"s3":                            d.inlineStore(cluster, storageType, "S3"),
		"abs":                           d.inlineStore(cluster, storageType, "ABS"),
		"pv":                            d.inlineVolume,
		"volumeSizeInMB":                d.say("", "has no equivalent: backups go to an object store"),
		"pod":                           d.say("", "has no equivalent: quorate takes backups itself, without a pod per cluster"),
		"autoDelete":                    d.autoDelete,
		"cleanupBackupsOnClusterDelete": d.autoDelete,
	})
	if cluster.at("spec.backup.destination") == nil {
		d.leaveOut("its backups went to a store of type %s, which has no equivalent, or which the old operator's flags named: write "+
			"spec.backup.destination.objectURLTemplate into the EtcdCluster %s, or start quorate with --backup-url, and then use this schedule", clip(storageType), word(s.name))
	}
}

// inlineStore takes the store of a policy if it is the one in use.
func (d *draft) inlineStore(cluster *draft, inUse, storageType string) func(field) {
	return func(f field) {
		if inUse != storageType {
			d.note(f.line, "", "%s was not used, because the type of the store is %s, and was left out", f.path, clip(inUse))
			return
		}
		st := store{scheme: "s3"}
		if storageType == "ABS" {
			st.scheme = "azblob"
		}
		prefix := ""
		keep := func(value *string) func(field) {
			return func(f field) { *value, _ = d.text(f) }
		}
		names := map[string]handlers{
			"S3":  {"s3Bucket": keep(&st.bucket), "prefix": keep(&prefix), "awsSecret": keep(&st.secret)},
			"ABS": {"absContainer": keep(&st.bucket), "absSecret": keep(&st.secret)},
		}
		d.walk(f, names[storageType])
		const at = "spec.backup.destination"
		cluster.storeNotes(f, st, at)
		if st.bucket != "" {
			st.key = strings.TrimPrefix(strings.Trim(prefix, "/")+"/", "/") + "{{ .Namespace }}/{{ .Name }}/" + uidMark + ".db"
			cluster.setDestination(at, st)
		}
	}
}

// inlineVolume notes a volume for backups.
func (d *draft) inlineVolume(f field) {
	d.walk(f, handlers{
		"volumeSizeInMB": d.say("", "has no equivalent: backups go to an object store"),
		"storageClass":   d.say("", "has no equivalent: backups go to an object store"),
	})
}

// autoDelete asked for backups to go with the cluster.
func (d *draft) autoDelete(f field) {
	if d.isTrue(f) {
		d.note(f.line, "", "%s has no equivalent: backups outlive their cluster, remove them manually or with retention.maxAge", f.path)
	}
}

// inlineRestore converts the restore policy, by which a cluster began with the
// backups of another.
func (c *conversion) inlineRestore(s source, f field) {
	d := c.draft(s, schema.KindRestore, shorten(s.name, "-restore", 63))
	d.line = f.line
	from := ""
	d.walk(f, handlers{
		"backupClusterName": func(f field) { from, _ = d.text(f) },
		"storageType":       nothing,
	})
	if from == "" {
		d.leaveOut("it names no cluster whose backup to restore: write source.clusterName")
	}
	d.set("spec.source.clusterName", text(from))
	d.note(f.line, "spec.source", "this restores the newest backup that quorate took of %s, found by the destination in that cluster's file. "+
		"The old operator used this policy when it made %s, and never again: delete this document if that is long done", word(from), word(s.name))
	if old, ok := c.clusters[objectKey(s.namespace, from)]; !ok || old.group != groupCoreos {
		d.leaveOut("the EtcdCluster %s, whose backup it restores, is not in these files: give its file, too, or write source.objectURL manually", clip(from))
	}
	c.template(s, d, s.name)
}
