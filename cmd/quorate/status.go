package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// statusFlags are the flags about the branch that quorate writes.
type statusFlags struct {
	mode     string
	config   sources.PublishConfig
	secret   string
	interval time.Duration
}

// The values of --status.
const (
	statusNone   = "none"
	statusBranch = "branch"
)

// minStatusInterval is one commit a second: more would be noise and load for nobody.
const minStatusInterval = time.Second

func (f *statusFlags) add(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.StringVar(&f.mode, "status", statusNone, "branch: write how everything is to a branch of the repository, one file an object and a page for people; none: write nothing to Git")
	flags.StringVar(&c.Branch, "status-branch", sources.DefaultStatusBranch, "that branch, which has a history of its own; one that quorate did not begin is never written to")
	flags.DurationVar(&f.interval, "status-interval", time.Minute, "shortest time between two commits on it")
	flags.StringVar(&c.Auth.Dir, "status-credentials-dir", "", "directory with credentials that may write it, as in --git-credentials-dir; default those for reading")
	flags.StringVar(&f.secret, "status-secret", "", "Secret with the same, in quorate's namespace")
	flags.StringVar(&c.Author, "status-author", "quorate <quorate@localhost>", "author of its commits")
	flags.StringVar(&c.SigningKeyFile, "status-signing-key-file", "", "file with an OpenPGP or SSH private key that signs them")
	flags.IntVar(&c.Compact, "status-compact", 500, "begin its history anew after so many commits, where the server lets a branch be rewritten")
}

// check refuses flags that contradict each other, or that would let quorate follow
// what it writes.
func (f *statusFlags) check(followed sources.Config) error {
	switch {
	case f.mode == statusNone && cmp.Or(f.config.Auth.Dir, f.secret, f.config.SigningKeyFile) != "":
		return errors.New("--status-credentials-dir, --status-secret and --status-signing-key-file are for --status branch: add it")
	case f.mode == statusNone:
		return nil
	case f.mode != statusBranch:
		return errors.New("--status is branch or none")
	case f.config.Auth.Dir != "" && f.secret != "":
		return errors.New("give --status-credentials-dir or --status-secret, not both")
	case f.interval < minStatusInterval:
		return fmt.Errorf("--status-interval is %s; give at least %s", f.interval, minStatusInterval)
	case branchOf(followed) == f.config.Branch:
		return fmt.Errorf("--status-branch is %s, which quorate follows: it would follow what it writes; name another one", f.config.Branch)
	}
	return nil
}

// open prepares the writer; it is nil where nothing is to be written.
func (f *runFlags) openStatus(git *poller, log *slog.Logger, registry prometheus.Registerer) (*statusWriter, error) {
	read := f.repository.config
	if err := f.status.check(read); err != nil || f.status.mode == statusNone {
		return nil, err
	}
	c := f.status.config
	c.URL, c.CAFile, c.Timeout, c.Limits = read.URL, read.CAFile, read.Timeout, read.Limits
	secret := f.status.secret
	if c.Auth.Dir == "" && secret == "" {
		c.Auth, secret = read.Auth, f.repository.secret
	}
	var err error
	if c.Auth.Secret, err = readerOf(f.kube.connect, secret); err != nil {
		return nil, err
	}
	c.Owner = "not known yet" // the rest is checked before anything runs
	if _, err := sources.NewPublisher(c); err != nil {
		return nil, err
	}
	w := &statusWriter{
		turns: turns{what: "status", interval: f.status.interval, log: log}, config: c, instance: f.kube.options.Owner.Instance, git: git.shown.get,
		lastSuccess: prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_status_last_success_timestamp_seconds", Help: "When the status branch last was what it should be, as Unix time."}),
		failures:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "quorate_status_consecutive_failures", Help: "Writes of the status branch that have failed since the last success."}),
		commits:     prometheus.NewCounter(prometheus.CounterOpts{Name: "quorate_status_commits_total", Help: "Commits on the status branch that this process has made."}),
	}
	registry.MustRegister(w.lastSuccess, w.failures, w.commits)
	return w, nil
}

// statusWriter keeps the status branch. It reads what is known, and decides nothing.
type statusWriter struct {
	turns
	config   sources.PublishConfig
	instance string
	git      func() gitState

	lastSuccess, failures prometheus.Gauge
	commits               prometheus.Counter

	publisher *sources.Publisher
	written   shownStatus // what was written last
}

// shownStatus is all that the branch tells of.
type shownStatus struct {
	git  gitState
	list []schema.Status
}

// statuses is what knows how everything is.
type statuses interface {
	Statuses() (list []schema.Status, whole bool)
}

const (
	// statusPatience is how long after its start a daemon waits until everything was
	// looked at: before, half of it would be told to be unknown.
	statusPatience = 5 * time.Minute
	// statusAgain is how long it is believed that the branch is as it was left.
	statusAgain = 10 * time.Minute
)

// follow writes again and again until ctx ends.
func (w *statusWriter) follow(ctx context.Context, kube kubernetes.Interface, from statuses) {
	impatient := time.Now().Add(statusPatience)
	w.each(ctx, func(now time.Time) { w.once(ctx, kube, from, now.After(impatient)) })
}

// once writes if there is something to write; unwhole says that not everything needs
// to have been looked at.
func (w *statusWriter) once(ctx context.Context, kube kubernetes.Interface, from statuses, unwhole bool) {
	list, whole := from.Statuses()
	now := shownStatus{git: w.git(), list: list}
	if now.git.commit == "" || !whole && !unwhole {
		return
	}
	if w.failed == 0 && time.Since(w.next) < statusAgain && reflect.DeepEqual(now, w.written) {
		return
	}
	done, err := w.write(ctx, kube, now)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.fail(ctx, err)
		w.failures.Set(float64(w.failed))
		return
	}
	if w.failed > 0 {
		w.log.InfoContext(ctx, "status is written again", "failures", w.failed)
	}
	w.succeed()
	w.written = now
	w.failures.Set(0)
	w.lastSuccess.SetToCurrentTime()
	if done.Pushed {
		w.commits.Inc()
		w.log.InfoContext(ctx, "status", "branch", w.config.Branch, "commit", done.Commit)
	}
	w.next = time.Now().Add(w.interval)
}

func (w *statusWriter) write(ctx context.Context, kube kubernetes.Interface, now shownStatus) (sources.Published, error) {
	if w.publisher == nil {
		owner, err := statusOwner(ctx, kube, w.instance)
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
		Files: files, Subject: statusSubject(w.written, now), Commit: now.git.commit, Time: time.Now(),
	})
}

// statusOwner is this quorate among all that may write to one repository: the
// instance, and the Kubernetes cluster that it is in, which is known by the one
// namespace that each has.
func statusOwner(ctx context.Context, kube kubernetes.Interface, instance string) (string, error) {
	namespace, err := kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("learn which Kubernetes cluster this is, by the UID of its namespace %s: %w; let quorate get it, as deploy/base does", metav1.NamespaceSystem, err)
	}
	return fmt.Sprintf("%s in cluster %s", cmp.Or(instance, defaultInstance), namespace.UID), nil
}

// statusSubject says in a line what has changed.
func statusSubject(before, now shownStatus) string {
	was := map[string]schema.Status{}
	for _, s := range before.list {
		was[statusPath(s)] = s
	}
	var changes []string
	for _, s := range now.list {
		path := statusPath(s)
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
		return "status: " + plural(len(now.list), "object")
	case len(changes) == 0 && len(was) > 0:
		return "status: " + plural(len(was), "object") + " gone"
	case len(changes) == 0:
		return "status: the repository"
	case len(changes) == 1:
		return "status: " + changes[0]
	}
	return fmt.Sprintf("status: %s and %d more", changes[0], len(changes)-1)
}
