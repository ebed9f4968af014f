// Package branches reads the status branches of a repository: what the daemons of several
// Kubernetes clusters that follow it say of their objects.
package branches

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// Branch is one status branch: what the daemon of one Kubernetes cluster has written. It is
// shared, and never changed.
type Branch struct {
	// Name is without refs/heads/; Commit is the commit that was read, by its full hash, ""
	// where none was.
	Name, Commit string
	// Written is when that was made, by the clock of its writer.
	Written time.Time
	// Statuses are what it holds, in the order of kind, namespace and name. With a Doubt, all of
	// them are Unknown.
	Statuses []schema.Status
	// Doubt says in one sentence why nothing here counts as how things are now; "" where it does.
	Doubt string
	// Unread are the files that hold no status that is understood, by their paths.
	Unread []string
}

// Path is where the status of an object is on a status branch. Kubernetes names contain nothing
// that has a meaning in a path.
func Path(s schema.Status) string {
	folder := map[string]string{
		schema.KindCluster: "clusters", schema.KindBackup: "backups",
		schema.KindBackupSchedule: "schedules", schema.KindRestore: "restores",
	}[s.Kind]
	return path.Join(folder, s.Metadata.Namespace, s.Metadata.Name+".yaml")
}

// Reader reads the status branches of one repository. Of one that has not moved nothing is read
// again, and of one that has, only files that differ are parsed again. Its methods must not be
// called concurrently.
type Reader struct {
	// Repository is read at its root.
	Repository *sources.Repository
	// Prefix is what the names of the branches begin with. Own is one of them that is not
	// read, since its daemon is this one; "" for none.
	Prefix, Own string
	// Most is how many objects are kept, of all branches together; 0 for all.
	Most int

	kept map[string]*kept
}

// kept is a branch as it was read last.
type kept struct {
	Branch
	heartbeat time.Duration
	files     map[string]file
	// err is why its tip was not read, failures how often in a row, and retry when it is tried
	// again although it has not moved.
	err      error
	failures int
	retry    time.Time
}

// file is a file that was read. Its status has no kind where it is none.
type file struct {
	sum    [sha256.Size]byte
	status schema.Status
}

const (
	// firstRetry is the pause after a branch could not be read; it doubles up to lastRetry.
	firstRetry, lastRetry = 30 * time.Second, 10 * time.Minute
)

// Read reads the branches that have moved. One that cannot be read hides no other, and is tried
// again after ever longer pauses.
func (r *Reader) Read(ctx context.Context) error {
	if r.kept == nil {
		r.kept = map[string]*kept{}
	}
	there := map[string]bool{}
	err := r.Repository.FetchBranches(ctx, r.Prefix, func(name, commit string) bool {
		if name == r.Own {
			return false
		}
		there[name] = true
		k := r.kept[name]
		return k == nil || k.err == nil && k.Commit != commit || k.err != nil && !time.Now().Before(k.retry)
	}, r.take)
	if err != nil {
		return err
	}
	maps.DeleteFunc(r.kept, func(name string, _ *kept) bool { return !there[name] })
	return nil
}

// take keeps what a branch holds.
func (r *Reader) take(b sources.Branch) {
	k := r.kept[b.Name]
	if k == nil {
		k = &kept{Branch: Branch{Name: b.Name}}
		r.kept[b.Name] = k
	}
	if k.err = cmp.Or(b.Err, r.checkSize(b)); k.err != nil {
		k.retry = time.Now().Add(min(firstRetry<<min(k.failures, 10), lastRetry))
		k.failures++
		return
	}
	before := k.files
	*k = kept{Branch: Branch{Name: b.Name, Commit: b.Commit, Written: b.When, Unread: slices.Clone(b.Skipped)}, heartbeat: b.Heartbeat, files: map[string]file{}}
	for _, f := range b.Files {
		read, known := before[f.Path]
		if sum := sha256.Sum256(f.Data); !known || read.sum != sum {
			read = file{sum, parse(f)}
		}
		k.files[f.Path] = read
		if read.status.Kind == "" {
			k.Unread = append(k.Unread, f.Path)
			continue
		}
		k.Statuses = append(k.Statuses, read.status)
	}
	schema.SortStatuses(k.Statuses)
}

// checkSize returns an error if a branch would make what is kept too much.
func (r *Reader) checkSize(b sources.Branch) error {
	total := len(b.Files)
	for name, k := range r.kept {
		if name != b.Name {
			total += len(k.files)
		}
	}
	if r.Most > 0 && total > r.Most {
		return fmt.Errorf("it holds %d objects, and the status branches together more than the %d that are kept: quorate status --all shows them", len(b.Files), r.Most)
	}
	return nil
}

// parse returns the status that a file holds; one without a kind where it holds none, or that of
// an object whose file it is not: names are shown in links.
func parse(f sources.File) schema.Status {
	var s schema.Status
	err := yaml.Unmarshal(f.Data, &s)
	m := s.Metadata
	if err != nil || !slices.Contains(schema.Kinds(), s.Kind) || Path(s) != f.Path ||
		len(validation.IsDNS1123Label(m.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(m.Name)) > 0 {
		return schema.Status{}
	}
	return s
}

const (
	// beats is how many heartbeats a writer may miss until its branch is stale.
	beats = 2
	// MaxHeartbeat is the longest heartbeat that is believed, and quiet is how old a branch
	// without one may be.
	MaxHeartbeat, quiet = 24 * time.Hour, 24 * time.Hour
	// maxUnread is how long what was read counts as how things are now.
	maxUnread = 10 * time.Minute
	// maxAhead is how far the clock of a writer may be ahead.
	maxAhead = 10 * time.Minute
)

// Branches are the branches by name, as they are at a time. read is when the repository was last
// read.
func (r *Reader) Branches(now, read time.Time) []Branch { return at(r.snapshot(), now, read) }

// snapshot is what is kept, by name. Another read leaves it as it is.
func (r *Reader) snapshot() []kept {
	list := make([]kept, 0, len(r.kept))
	for _, name := range slices.Sorted(maps.Keys(r.kept)) {
		list = append(list, *r.kept[name])
	}
	return list
}

func at(list []kept, now, read time.Time) []Branch {
	made := make([]Branch, len(list))
	for i := range list {
		made[i] = list[i].at(now, read)
	}
	return made
}

// at is the branch at a time.
func (k *kept) at(now, read time.Time) Branch {
	b := k.Branch
	if b.Doubt = k.doubt(now, read); b.Doubt == "" {
		return b
	}
	b.Statuses = slices.Clone(b.Statuses)
	for i, s := range b.Statuses {
		b.Statuses[i] = doubted(s, b.Doubt)
	}
	return b
}

// doubt says why a branch is not how things are at a time; "" if it is. It names times and no
// ages: it stays the same for as long as its cause does.
func (k *kept) doubt(now, read time.Time) string {
	written := schema.TimeText(k.Written)
	switch age, beat := now.Sub(k.Written), min(k.heartbeat, MaxHeartbeat); {
	case k.err != nil:
		return "the branch cannot be read: " + k.err.Error()
	case now.Sub(read) > maxUnread:
		return "the repository was last read at " + schema.TimeText(read)
	case age < -maxAhead:
		return fmt.Sprintf("the newest commit is dated %s, which is later than now: check the clocks of its writer and of this reader", written)
	case beat > 0 && age > beats*beat:
		return fmt.Sprintf("nothing was written since %s, and its daemon writes every %s at least: it does not run, or cannot write the branch", written, k.heartbeat)
	case beat == 0 && age > quiet:
		return fmt.Sprintf("nothing was written since %s, and its daemon has no heartbeat that would tell whether it runs: update it, or give it --status-heartbeat", written)
	}
	return ""
}

// doubted is a status that may no longer hold: nothing in it is healthy.
func doubted(s schema.Status, why string) schema.Status {
	phase, was := s.Phase()
	s.Status.Conditions = schema.ConditionsOf(schema.PhaseUnknown, "NoNews", fmt.Sprintf("%s; the last news was %s: %s", why, phase, was.Message))
	if s.Status.Cluster == nil {
		return s
	}
	c := *s.Status.Cluster
	c.Replicas.Healthy = 0
	c.Members = slices.Clone(c.Members)
	for i := range c.Members {
		c.Members[i].Health = schema.HealthUnknown
	}
	s.Status.Cluster = &c
	return s
}
