package publish

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// BranchConfig is where the status is written, and how often.
type BranchConfig struct {
	// Publish names the branch and the credentials. Its owner is found at the first
	// write.
	Publish sources.PublishConfig
	// Interval is the shortest time between two commits. Where the heartbeat of Publish is not
	// longer than it takes until a branch is checked again, it is that.
	Interval time.Duration
	// Kube is asked which Kubernetes cluster this is. Instance is the value of
	// --instance.
	Kube     kubernetes.Interface
	Instance string
	// Home is the daemon's own namespace where it may read no other one of the cluster; it
	// then tells this daemon from others. Default "", which is for one in all namespaces.
	Home string
}

// NewBranch returns a Branch that has written nothing yet.
func NewBranch(c BranchConfig, git func() follow.State, log *slog.Logger, registry prometheus.Registerer) *Branch {
	if c.Publish.Heartbeat > 0 {
		c.Publish.Heartbeat = max(c.Publish.Heartbeat, c.Interval+maxUnchecked)
	}
	w := &Branch{
		writer: writer{what: "status", interval: c.Interval, log: log}, config: c.Publish, kube: c.Kube, instance: c.Instance, home: c.Home, git: git,
		lastSuccess: prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_status_last_success_timestamp_seconds", Help: "When the status branch last was what it should be, as Unix time."}),
		failures:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_status_consecutive_failures", Help: "Writes of the status branch that have failed since the last success."}),
		pushes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quorate_status_push_duration_seconds", Help: "How long one write of the status branch took, whether it failed or not.",
			Buckets: []float64{.05, .1, .5, 1, 5, 30, 120},
		}),
		commits: prometheus.NewCounter(prometheus.CounterOpts{Name: "quorate_status_commits_total", Help: "Commits on the status branch that this process has made."}),
	}
	registry.MustRegister(w.lastSuccess, w.failures, w.commits, w.pushes)
	return w
}

// Branch keeps the status branch up to date.
type Branch struct {
	writer
	config   sources.PublishConfig
	kube     kubernetes.Interface
	instance string
	home     string
	git      func() follow.State

	lastSuccess, failures prometheus.Gauge
	commits               prometheus.Counter
	pushes                prometheus.Histogram

	publisher *sources.Publisher
	written   published // what was written last
}

// published is everything that the branch shows.
type published struct {
	git  follow.State
	list []schema.Status
}

// Statuses is asked for the status of each object.
type Statuses interface {
	// Statuses returns them in a fixed order. whole is false while one is unknown.
	Statuses() (list []schema.Status, whole bool)
}

const (
	// maxStartupWait is how long a daemon waits after its start for the status of every
	// object: before that, many would be published as unknown.
	maxStartupWait = 5 * time.Minute
	// maxUnchecked is how long the branch is assumed to be unchanged since the last write.
	maxUnchecked = 10 * time.Minute
)

// Run writes whenever something has changed, until ctx ends.
func (w *Branch) Run(ctx context.Context, from Statuses) {
	deadline := time.Now().Add(maxStartupWait)
	w.run(ctx, func(now time.Time) { w.Once(ctx, from, now.After(deadline)) })
}

// Once writes if something has changed. With partial, it does not wait until the status
// of every object is known.
func (w *Branch) Once(ctx context.Context, from Statuses, partial bool) {
	list, whole := from.Statuses()
	now := published{git: w.git(), list: list}
	if now.git.Commit == "" || !whole && !partial {
		return
	}
	if w.failed == 0 && time.Since(w.next) < maxUnchecked && reflect.DeepEqual(now, w.written) {
		return
	}
	began := time.Now()
	done, err := w.write(ctx, now)
	w.pushes.Observe(time.Since(began).Seconds())
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.fail(ctx, err)
		w.failures.Set(float64(w.failed))
		return
	}
	if w.failed > 0 {
		w.log.InfoContext(ctx, "status branch updated again", "failures", w.failed)
	}
	w.succeed()
	w.written = now
	w.failures.Set(0)
	w.lastSuccess.SetToCurrentTime()
	if done.Pushed {
		w.commits.Inc()
		w.log.InfoContext(ctx, "status branch updated", "branch", w.config.Branch, "commit", done.Commit)
	}
	w.next = time.Now().Add(w.interval)
}

func (w *Branch) write(ctx context.Context, now published) (sources.Published, error) {
	if w.publisher == nil {
		owner, err := statusOwner(ctx, w.kube, w.instance, w.home)
		if err != nil {
			return sources.Published{}, err
		}
		w.config.Owner = owner
		if w.publisher, err = sources.NewPublisher(w.config); err != nil {
			return sources.Published{}, err
		}
	}
	files, err := statusFiles(now.git, now.list)
	if err != nil {
		return sources.Published{}, err
	}
	return w.publisher.Publish(ctx, sources.Publication{
		Files: files, Subject: statusSubject(w.written, now), Commit: now.git.Commit, Time: time.Now(),
	})
}

// statusOwner identifies this daemon among all that may write to one repository: by its
// instance and its Kubernetes cluster, which has the UID of its kube-system namespace, or by
// the UID of its home.
func statusOwner(ctx context.Context, kube kubernetes.Interface, instance, home string) (string, error) {
	name, of := home, "namespace"
	if home == "" {
		name, of = metav1.NamespaceSystem, "cluster"
	}
	namespace, err := kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("learn which Kubernetes cluster this is, by the UID of its namespace %s: %w; let quorate get it, as deploy/base does", name, err)
	}
	return fmt.Sprintf("%s in %s %s", instance, of, namespace.UID), nil
}

// statusSubject returns the subject of a commit: what has changed.
func statusSubject(before, now published) string {
	was := map[string]schema.Status{}
	for _, s := range before.list {
		was[branches.Path(s)] = s
	}
	var changes []string
	for _, s := range now.list {
		path := branches.Path(s)
		old, there := was[path]
		delete(was, path)
		phase, why := s.Phase()
		if before, _ := old.Phase(); !there || before != phase {
			changes = append(changes, fmt.Sprintf("%s/%s %s (%s)", s.Metadata.Namespace, s.Metadata.Name, strings.ToLower(string(phase)), why.Reason))
		} else if !reflect.DeepEqual(old.Status, s.Status) {
			changes = append(changes, s.Metadata.Namespace+"/"+s.Metadata.Name)
		}
	}
	switch {
	case len(before.list) == 0 && len(now.list) != 1:
		return "status: " + state.Plural(len(now.list), "object")
	case reflect.DeepEqual(before, now):
		return "status: nothing has changed"
	case len(changes) == 0 && len(was) > 0:
		return "status: " + state.Plural(len(was), "object") + " gone"
	case len(changes) == 0:
		return "status: the repository"
	case len(changes) == 1:
		return "status: " + changes[0]
	}
	return fmt.Sprintf("status: %s and %d more", changes[0], len(changes)-1)
}
