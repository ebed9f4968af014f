package page

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/schema"
)

// objectView is the page of one object.
type objectView struct {
	row
	// Says is what quorate says of the object, without what a person can do, which has a
	// line of its own.
	Says string
	// Members are those of a cluster.
	Members []member
	// Commit is the one that declares the object, with its author where it is known.
	Commit api.Commit
	// Timeline are the backups and drills, the newest first.
	Timeline []moment
	// Happened is what Kubernetes still knows of what has happened to a cluster, and NoEvents
	// why nothing is known.
	Happened api.Happened
	NoEvents string
	// Written is when what a status branch says of it was written; "" where it is this daemon
	// that reconciles it.
	Written string
	// Related are the other objects of the same cluster.
	Related []row
}

// member is one member, with its database.
type member struct {
	schema.MemberStatus
	// Database is nil where the last pass has not measured it.
	Database *database
}

// database is the database of a member. Low and High are parts of its quota, in bytes: up
// to Low all is well, above High a person should look (as the alerts have it).
type database struct {
	schema.MemberDatabase
	Low, High int64
	// Percent of the quota that are taken.
	Percent int64
}

// moment is something that has happened, or is to.
type moment struct {
	Time, Text string
	// Backup is the one that was taken; nil for none.
	Backup *schema.BackupStatus
	// Bad is whether a person should look.
	Bad bool
}

// object shows one object.
func (p *pages) object(w http.ResponseWriter, r *http.Request) {
	here, err := p.feed.Look()
	if err != nil {
		p.problem(w, http.StatusServiceUnavailable, "Not ready", err)
		return
	}
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	found, look := api.Found{Branch: r.URL.Query().Get("branch")}, here
	if found.Branch != "" {
		here.Branches = p.feed.Branches()
		look, err = here.OnBranch(found.Branch)
	}
	if err == nil {
		found.Status, err = look.Find(r.PathValue("kind"), namespace, name)
	}
	if err != nil {
		p.problem(w, http.StatusNotFound, "No such object", err)
		return
	}
	v, o := objectView{row: rowOf(found)}, found.Status.Status
	v.Commit = api.Commit{Hash: o.Commit}
	if git := api.GitOf(p.feed.Git()); git.Accepted != nil && git.Accepted.Hash == o.Commit {
		v.Commit = *git.Accepted
	}
	if v.Says = v.Why.Message; o.Cluster != nil && o.Cluster.Hold != nil {
		v.Says = strings.TrimSuffix(v.Says, "; "+o.Cluster.Hold.Do)
	}
	f := frame{Title: namespace + "/" + name}
	if found.Branch != "" {
		v.beside(here)
		f.Watch = "git"
	} else {
		p.live(&v, look)
		f.Watch, f.Partial = namespace+"/", !look.Whole
	}
	v.relate(look.List)
	p.show(w, http.StatusOK, f, objectPage(&v))
}

// live shows of a cluster what only the daemon that reconciles it knows.
func (p *pages) live(v *objectView, look api.Look) {
	namespace, name := v.Metadata.Namespace, v.Metadata.Name
	v.measure(p.feed.Measured(namespace, name))
	if v.Kind != schema.KindCluster {
		return
	}
	var err error
	if v.Happened, err = p.feed.Happened(look, namespace, name); err != nil {
		v.NoEvents = err.Error()
	}
}

// beside shows how old is what a status branch says of an object.
func (v *objectView) beside(look api.Look) {
	v.measure(schema.Measured{})
	v.NoEvents = "only the daemon in that Kubernetes cluster knows it"
	on, _ := look.Branches.Find(v.Branch)
	v.Written, v.Doubted = schema.TimeText(on.Written), on.Doubt != ""
}

// measure shows of a cluster what the last pass has measured.
func (v *objectView) measure(m schema.Measured) {
	c := v.Status.Status.Cluster
	if c == nil {
		return
	}
	for _, s := range c.Members {
		row := member{MemberStatus: s}
		if i := slices.IndexFunc(m.Members, func(d schema.MemberDatabase) bool { return d.Name == s.Name }); i >= 0 {
			row.Database = databaseOf(m.Members[i])
		}
		v.Members = append(v.Members, row)
	}
}

func databaseOf(d schema.MemberDatabase) *database {
	quota := float64(d.Quota)
	return &database{MemberDatabase: d, Low: int64(quota * .65), High: int64(quota * .85), Percent: int64(float64(d.Size) / max(quota, 1) * 100)}
}

// relate finds the other objects of the same cluster, and what has happened to it.
func (v *objectView) relate(list []schema.Status) {
	cluster := v.Cluster
	if v.Kind == schema.KindCluster {
		cluster = v.Metadata.Namespace + "/" + v.Metadata.Name
	}
	v.happened(v.Status)
	for _, s := range list {
		r := rowOf(api.Found{Branch: v.Branch, Status: s})
		isCluster := s.Kind == schema.KindCluster && s.Metadata.Namespace+"/"+s.Metadata.Name == cluster
		if r.To == v.To || !isCluster && (r.Cluster != cluster || cluster == "") {
			continue
		}
		v.Related = append(v.Related, r)
		if v.Kind == schema.KindCluster {
			v.happened(s)
		}
	}
	slices.SortStableFunc(v.Timeline, func(a, b moment) int { return strings.Compare(b.Time, a.Time) })
	v.Timeline = slices.CompactFunc(v.Timeline, func(a, b moment) bool {
		return a.Time == b.Time && a.Backup != nil && b.Backup != nil && a.Backup.URL == b.Backup.URL
	})
}

// happened adds the backups and drills that a status tells of.
func (v *objectView) happened(s schema.Status) {
	taken := func(b *schema.BackupStatus, by string) {
		if b != nil {
			v.Timeline = append(v.Timeline, moment{Time: b.Time, Text: "backup for " + cmp.Or(b.For, by), Backup: b})
		}
	}
	switch o := s.Status; {
	case o.Cluster != nil:
		for i := range o.Cluster.Backups {
			taken(&o.Cluster.Backups[i], "the cluster")
		}
	case o.Schedule != nil:
		taken(o.Schedule.Last, "schedule "+s.Metadata.Name)
		if d := o.Schedule.Drill; d != nil {
			v.Timeline = append(v.Timeline, moment{Time: d.Time, Text: "restore drill of " + d.URL + ": " + d.Result, Bad: d.Result != "passed"})
		}
		if o.Schedule.Next != "" {
			v.Timeline = append(v.Timeline, moment{Time: o.Schedule.Next, Text: "next backup for schedule " + s.Metadata.Name})
		}
	case o.Backup != nil:
		taken(o.Backup.Taken, "EtcdBackup "+s.Metadata.Name)
	case o.Restore != nil && o.Restore.Time != "":
		v.Timeline = append(v.Timeline, moment{Time: o.Restore.Time, Text: "restored by EtcdRestore " + s.Metadata.Name})
	}
}
