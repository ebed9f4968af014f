package schema

import (
	"fmt"
	"slices"
	"strings"
)

// crossFile checks what the documents declare about each other. It adds problems to
// the declarations, before they are sorted into good and held ones.
//
//	a backup or schedule of a cluster that is not in Git          error
//	a schedule of a cluster that is deleted                       warning
//	two schedules, or two clusters, with backups in one place     error, warning
//	a restore into a cluster that is in Git, or of another restore error
//	a restore of a schedule, or cluster, that is not in Git        error, warning
func (g *gathering) crossFile() {
	byPrefix := map[string][]int{}
	byTarget := map[string][]int{}
	g.restored = map[string]bool{}
	for _, d := range g.declared {
		if r, ok := d.object.(*EtcdRestore); ok {
			g.restored[d.namespace+"/"+r.Spec.ClusterName] = true
		}
	}
	for i := range g.declared {
		d := &g.declared[i]
		switch o := d.object.(type) {
		case *EtcdCluster:
			byPrefix[d.place] = append(byPrefix[d.place], i)
		case *EtcdBackup:
			g.source(d, "spec.source.clusterName", o.Spec.Source.ClusterName)
		case *EtcdBackupSchedule:
			g.source(d, "spec.backupTemplate.source.clusterName", o.Spec.BackupTemplate.Source.ClusterName)
			place := placeOf(d.identity, o.Spec.BackupTemplate.Source.ClusterName, g.effective(d.namespace, o.Spec.BackupTemplate))
			byPrefix[place] = append(byPrefix[place], i)
		case *EtcdRestore:
			g.restore(d, o)
			target := d.namespace + "/" + o.Spec.ClusterName
			byTarget[target] = append(byTarget[target], i)
		}
	}
	delete(byPrefix, "") // a place that is not known
	g.samePlace(byPrefix)
	for target, indices := range byTarget {
		g.report(indices, "spec.clusterName", false, func(other string) string {
			return fmt.Sprintf("%s is restored by %s, too: only one restore can make it, give this one another clusterName", target, other)
		})
	}
}

// find is the declaration of an object, good or held, or nil.
func (g *gathering) find(kind, namespace, name string) *declaration {
	if g.byIdentity == nil {
		g.byIdentity = map[identity]int{}
		for i, d := range g.declared {
			g.byIdentity[d.identity] = i
		}
	}
	if i, ok := g.byIdentity[identity{kind, namespace, name}]; ok {
		return &g.declared[i]
	}
	return nil
}

// source checks that the cluster of a backup or schedule is in Git.
func (g *gathering) source(d *declaration, field, cluster string) {
	if cluster == "" {
		return
	}
	if g.restored[d.namespace+"/"+cluster] {
		return // also in the place of one that is deleted
	}
	found := g.find(KindCluster, d.namespace, cluster)
	if found == nil {
		g.blame(d, field, "%s", g.missing(KindCluster, d.namespace, cluster))
		return
	}
	schedule, ok := d.object.(*EtcdBackupSchedule)
	if !ok || schedule.Spec.Suspend {
		return
	}
	if c, ok := found.object.(*EtcdCluster); ok && c.Spec.State == StateDeleted {
		g.warn(IDDeletedSource, d, field, "%s has state: Deleted, so there is nothing to back up: remove the schedule, or suspend it", cluster)
	}
}

// restore checks the two ends of a restore.
func (g *gathering) restore(d *declaration, r *EtcdRestore) {
	if s := r.Spec.Source.Schedule; s != "" && g.find(KindBackupSchedule, d.namespace, s) == nil {
		g.blame(d, "spec.source.schedule", "%s", g.missing(KindBackupSchedule, d.namespace, s))
	}
	if c := r.Spec.Source.ClusterName; c != "" && g.find(KindCluster, d.namespace, c) == nil {
		// A cluster that is gone may well be the reason for the restore.
		g.warn(IDGoneSource, d, "spec.source.clusterName", "%s; the backups of a cluster that is gone are searched for under the daemon's --backup-url only, others are named by objectURL", g.missing(KindCluster, d.namespace, c))
	}
	target := g.find(KindCluster, d.namespace, r.Spec.ClusterName)
	if target == nil {
		return
	}
	if c, ok := target.object.(*EtcdCluster); ok && c.Spec.State == StateDeleted {
		return
	}
	g.blame(d, "spec.clusterName", "%s is declared at %s, and a restore never overwrites a cluster: give the new cluster another name; if the restore is done, remove this document and keep that one",
		target.identity, target.origin)
}

// missing reports that an object is not in Git, and which one may be meant. It stops
// searching after a while, for it compares with all names.
func (g *gathering) missing(kind, namespace, name string) string {
	const mostHints = 100
	g.hints++
	if g.hints > mostHints {
		return fmt.Sprintf("there is no %s %s/%s in Git", kind, namespace, name)
	}
	var names []string
	for _, d := range g.declared {
		switch {
		case d.kind != kind || d.name == "":
		case d.name == name:
			return fmt.Sprintf("%s is not in namespace %s but in %s: move one of the two", name, namespace, d.namespace)
		case d.namespace == namespace:
			names = append(names, d.name)
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("there is no %s %s/%s in Git%s", kind, namespace, name, didYouMean(name, names))
}

// effective is the destination of a request: its own, or its cluster's.
func (g *gathering) effective(namespace string, b BackupRequest) Destination {
	if b.Destination.ObjectURLTemplate != "" {
		return b.Destination
	}
	if d := g.find(KindCluster, namespace, b.Source.ClusterName); d != nil {
		if c, ok := d.object.(*EtcdCluster); ok {
			return c.Spec.Backup.Destination
		}
	}
	return Destination{}
}

// placeOf is where the backups of a declaration go: all that comes before the UID
// in their URL, and the server. It is "" for a place that only the daemon knows.
func placeOf(id identity, cluster string, to Destination) string {
	const uid = "0123456789ab"
	url, err := ExpandObjectURL(to.ObjectURLTemplate, ObjectURLData{Namespace: id.namespace, Name: cluster, Version: "3.6.16", UID: uid})
	if to.ObjectURLTemplate == "" || err != nil {
		return ""
	}
	object, query, _ := strings.Cut(url, "?")
	prefix, _, _ := strings.Cut(object, uid)
	// The query names the server. Its order does not matter.
	parameters := strings.Split(query, "&")
	slices.Sort(parameters)
	return id.kind + " " + prefix + "?" + strings.Join(parameters, "&")
}

// samePlace reports backups of different makers that end up side by side.
func (g *gathering) samePlace(byPrefix map[string][]int) {
	for _, indices := range byPrefix {
		field, warning := "spec.backupTemplate.destination", false
		if g.declared[indices[0]].kind == KindCluster {
			field, warning = "spec.backup.destination", true
		}
		g.report(indices, field, warning, func(other string) string {
			return "the backups go to the same place as those of " + other + ": add {{ .Name }}, or another directory, to one of the templates"
		})
	}
}

// report tells each of several declarations about another one.
func (g *gathering) report(indices []int, field string, warning bool, message func(other string) string) {
	if len(indices) < 2 {
		return
	}
	for at, i := range indices {
		other := g.declared[indices[(at+1)%len(indices)]]
		d := &g.declared[i]
		if other.identity == d.identity {
			continue // said already: the object is declared twice
		}
		note := g.blame
		if warning {
			note = func(d *declaration, field, format string, args ...any) { g.warn(IDPlaces, d, field, format, args...) }
		}
		note(d, field, "%s", message(fmt.Sprintf("%s at %s", other.identity, other.origin)))
	}
}

// blame notes an error of a declaration.
func (g *gathering) blame(d *declaration, field, format string, args ...any) {
	g.note(d, d.origin.Problem(IDCrossFile, field, format, args...))
}

// warn notes a warning about a declaration.
func (g *gathering) warn(id ID, d *declaration, field, format string, args ...any) {
	problem := d.origin.Problem(id, field, format, args...)
	problem.Warning = true
	g.note(d, problem)
}

// note adds a problem to a declaration, and to all problems.
func (g *gathering) note(d *declaration, problem Problem) {
	problem.Object = d.String()
	d.problems = append(d.problems, problem)
	g.problems = append(g.problems, problem)
}
