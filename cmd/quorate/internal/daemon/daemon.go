package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/cmd/quorate/internal/publish"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup/signing"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/memo"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/reconciler/queue"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/reconciler/starvation"
	"github.com/quorate/quorate/schema"
)

// Config is what the daemon follows, reconciles and writes.
type Config struct {
	Kube kubernetes.Interface
	// Clock hears what Kube is answered.
	Clock *ServerClock
	// Version of quorate, for the log.
	Version string
	Options reconciler.Options
	Lease   Lease
	// Follow is what to follow; Run sets its Kube. GitTimeout is the longest time for one
	// read of the repository.
	Follow     follow.Config
	GitTimeout time.Duration
	// Pulls, CommitStatuses and Status are what to write for people; nil for nothing. Run
	// sets their Kube and Options.
	Pulls          *publish.PullsConfig
	CommitStatuses *publish.CommitStatusesConfig
	Status         *publish.BranchConfig
	// Branches reads the status branches of other Kubernetes clusters, which the page shows beside
	// this one; nil for none.
	Branches *branches.Reader
	// Listeners is where the daemon answers, and to whom.
	Listeners Listeners
}

// Run is quorate run. It returns when ctx ends, when the lease is lost, or if it cannot
// start.
func Run(ctx context.Context, c Config, log *slog.Logger) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	leader := newMetrics(registry, c.Version, c.Clock)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
		c.Follow.Begin = collectLater
	}
	if c.Options.Notes == nil {
		c.Options.Notes = c.Kube
	}
	claim := newClaim(c.Lease, c.Kube, log)
	parts := newDivision(c.Lease, c.Kube, registry, log)
	c.Follow.Kube = c.Kube
	if c.Lease.divided() {
		c.Follow.Leads = parts.lead.held
	}
	git := follow.New(c.Follow, log, registry)
	var status *publish.Branch
	if c.Status != nil {
		c.Status.Kube = c.Kube
		status = publish.NewBranch(*c.Status, git.State, log, registry)
	}
	feed := api.NewFeed(git.Details)
	feed.SetEvents(api.NewEvents(c.Kube))
	defer readBranches(ctx, c.Branches, feed)()
	front := front{kube: c.Kube, listen: net.Listen, log: log}
	defer front.close()
	if err := front.open(c.Listeners, registry, feed, git.Wake); err != nil {
		return err
	}
	warnOfStore(c.Options.BackupURL, c.Options.InsecureStores, log)
	warnOfSharedPlaces(append([]string{c.Options.BackupURL}, c.Options.BackupPlaces...), log)
	warnOfUnsigned(c.Options.BackupKeys, log)
	if !awaitAPI(ctx, c.Kube, log) {
		return nil
	}
	var err error
	if c.Options.Render.GuardImage, err = findGuardImage(ctx, c.Kube, c.Options.Render.GuardImage); err != nil {
		return err
	}
	if err := checkHome(ctx, c.Kube, c.Lease.Namespace); err != nil {
		return err
	}
	c.Options.Owner.Source = c.Follow.Repository.Source()
	options := c.Options
	options.Lease, options.Now, options.ServerNow = claim.held, c.Clock.Now, c.Clock.ServerNow
	if c.Lease.divided() {
		options.Lease, options.Shards = parts.together.held, parts
	}
	go starvation.Watch(ctx, log)
	events, stop := newRecorder(c.Options.Notes)
	defer stop()
	members := etcd.New()
	members.Aside, options.Glance = queue.Aside, members.Glance
	r := reconciler.New(c.Kube, members, events, report.NewMetrics(registry), log, options)
	// One that waits for the lease has its caches filled: it acts as soon as it holds it.
	watching, end := context.WithCancel(ctx)
	defer r.Close()
	defer end()
	if err := r.Start(watching); err != nil {
		return err
	}
	mark(ctx, c.Kube, false, log)
	waits := r.Ready
	front.health.ready.Store(&waits)
	// work is what each daemon does that acts. Its lease is held until all of that has ended.
	work := func(ctx context.Context) error {
		ready := func() bool { return r.Ready() && git.Ready() }
		front.health.ready.Store(&ready)
		stuck := func() string {
			now := time.Now()
			return stuckLoop(r.Motionless(now), git.Lasting(now), c.GitTimeout)
		}
		front.health.stuck.Store(&stuck)
		feed.SetStatuses(r)
		var loops sync.WaitGroup
		defer loops.Wait()
		loops.Go(func() { git.Run(ctx, r) })
		log.Info("running", "version", c.Version, "source", c.Follow.Repository.Source(), "following", c.Follow.Repository.Reference())
		r.Run(ctx)
		return nil
	}
	// lead is what one of them does: what it writes is there once.
	lead := func(ctx context.Context) error {
		leader.Set(1)
		defer leader.Set(0)
		mark(ctx, c.Kube, true, log)
		defer mark(ctx, c.Kube, false, log)
		var loops sync.WaitGroup
		defer loops.Wait()
		if c.Pulls != nil {
			c.Pulls.Options = PreviewOptions(c.Options)
			pulls := publish.NewPulls(*c.Pulls, git.State, log)
			feed.SetPulls(func() []api.Pull { return shownPulls(pulls.Plans()) })
			loops.Go(func() { pulls.Run(ctx, live{r}) })
		}
		if c.CommitStatuses != nil {
			statuses := publish.NewCommitStatuses(*c.CommitStatuses, git.State, log)
			loops.Go(func() { statuses.Run(ctx, r) })
		}
		if status != nil {
			loops.Go(func() { status.Run(ctx, r) })
		}
		<-ctx.Done()
		return nil
	}
	if c.Lease.divided() {
		return parts.run(ctx, r, func() string { return git.State().Commit }, git.Wake, work, func(ctx context.Context) error {
			git.Wake() // it accepts commits from now on
			var telling sync.WaitGroup
			defer telling.Wait()
			telling.Go(func() {
				if err := r.Mirror(ctx); err != nil {
					log.Error("statuses of other daemons not read", "error", err.Error())
				}
			})
			return lead(ctx)
		})
	}
	return claim.run(ctx, func(ctx context.Context) error {
		var leading sync.WaitGroup
		defer leading.Wait()
		leading.Go(func() { _ = lead(ctx) })
		return work(ctx)
	})
}

// readBranches has the feed show the status branches of other Kubernetes clusters, until stop is
// called.
func readBranches(ctx context.Context, from *branches.Reader, feed *api.Feed) (stop func()) {
	if from == nil {
		return func() {}
	}
	latest := branches.NewLatest(from)
	feed.SetBranches(latest.Look)
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { latest.Run(ctx) })
	return func() {
		cancel()
		reading.Wait()
	}
}

// warnOfStore tells early what else each cluster would tell with its first backup, or
// after it.
func warnOfStore(backupURL string, insecure bool, log *slog.Logger) {
	if strings.HasPrefix(backupURL, "file:") {
		log.Warn("backups go into files, and no restore can read them without a volume that has these files",
			"backup-url", backupURL, "remedy", "name a PersistentVolumeClaim with them in spec.backup.destination.podAccess.claimName of each cluster")
	}
	if backupURL == "" {
		log.Warn("there is no --backup-url, so that a cluster without a spec.backup.destination of its own has no backup, and its upgrades are refused",
			"remedy", "give --backup-url, which is BACKUP_URL of the ConfigMap quorate-settings with deploy/base, or set spec.backup.destination.objectURLTemplate of each cluster")
		return
	}
	one, err := schema.ExpandObjectURL(backupURL, schema.ObjectURLData{Namespace: "any", Name: "one", Version: "1.0.0", UID: "1"})
	if err != nil {
		log.Warn("no backup is taken at --backup-url", "error", err.Error())
		return
	}
	if param := schema.UnencryptedParam(one); param != "" && !insecure {
		log.Warn("no backup is taken at --backup-url, which reaches its store without TLS", "parameter", param, "remedy", "write https, or add --insecure-stores")
	}
	// Where credentials go is compared with what a file says, which knows of no cluster.
	other, err := schema.ExpandObjectURL(backupURL, schema.ObjectURLData{Namespace: "any", Name: "other", Version: "2.0.0", UID: "2"})
	if err == nil {
		err = schema.CheckStoreAccess(one, false, other)
	}
	if err != nil {
		log.Warn("no backup is taken at --backup-url, where a parameter that says where credentials go differs from backup to backup",
			"remedy", "name no field but {{ .Namespace }} in such parameters")
	}
}

// warnOfSharedPlaces tells of places for backups that are not apart by namespace.
func warnOfSharedPlaces(templates []string, log *slog.Logger) {
	for _, template := range templates {
		one, err := schema.ObjectURLPlace(template, "x")
		other, otherErr := schema.ObjectURLPlace(template, "x-x")
		if err == nil && otherErr == nil && strings.HasPrefix(other, one) {
			log.Warn("backups of all namespaces lie in one place, so that a file in one namespace can restore those of another",
				"place", one, "remedy", "write {{ .Namespace }}/ before all other fields of --backup-url and --backup-place")
		}
	}
}

// warnOfUnsigned warns that anyone who may write to a store decides what is restored from it.
func warnOfUnsigned(keys *signing.Keys, log *slog.Logger) {
	switch {
	case len(keys.Trusted()) == 0:
		log.Warn("manifests of backups are not signed, so that who may write to a store can replace a backup and its manifest together",
			"remedy", "give --backup-signing-key-file; docs/signing.md")
	case keys.Own() == nil:
		log.Warn("backups that are taken are not signed, and no restore takes them but by their sha256 in Git",
			"remedy", "give --backup-signing-key-file beside --backup-trusted-keys-file")
	}
}

// shownPulls is what the page shows of the plans of pull requests.
func shownPulls(plans []publish.PullPlan) []api.Pull {
	list := make([]api.Pull, len(plans))
	for i, p := range plans {
		list[i] = api.Pull{Number: p.Number, Head: p.Head, Planned: p.At.UTC().Format(time.RFC3339), Report: p.Report}
	}
	return list
}

// garbage is GOGC where the environment sets none: the caches of many clusters stay, and each pass
// leaves little garbage, so that collecting sooner costs little and saves memory.
const garbage = 60

// collectLater lets the heap grow half as much again until end is called. What reads a commit of many clusters leaves
// much garbage at once, and pays for it: near the end of a collection the runtime makes a goroutine that allocates
// mark several times as much as it takes. A poll that hangs keeps a fifth more memory at the most.
func collectLater() (end func()) {
	debug.SetGCPercent(garbage * 3 / 2)
	return func() { debug.SetGCPercent(garbage) }
}

// live plans with the caches of the reconciler that acts.
type live struct{ *reconciler.Reconciler }

// Planner returns one with its own connections to the members.
func (l live) Planner() preview.Planner { return l.DryRun(etcd.New()) }

// PreviewOptions converts the options of a reconciler to those of a preview.
func PreviewOptions(o reconciler.Options) preview.Options {
	return preview.Options{Render: o.Render, BackupURL: o.BackupURL, Owner: o.Owner}
}

// newRecorder sends Events to the API server until stop is called.
func newRecorder(kube kubernetes.Interface) (events record.EventRecorder, stop func()) {
	// The default of 25 Events for each object, and then one in five minutes, would
	// drop the end of an upgrade. quorate itself reports everything only once.
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{BurstSize: 500, QPS: 1})
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "quorate"}), broadcaster.Shutdown
}

// Reachable asks the API server for its version.
func Reachable(ctx context.Context, kube kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := kube.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx); err != nil {
		return fmt.Errorf("reach the Kubernetes API server: %w; check its address and your network, nothing was changed", err)
	}
	return nil
}

// awaitAPI waits until the API server answers, and logs each reason once why it does not.
// It returns false if ctx ends first.
func awaitAPI(ctx context.Context, kube kubernetes.Interface, log *slog.Logger) bool {
	var said memo.Once
	for {
		err := Reachable(ctx, kube)
		if err == nil {
			return true
		}
		if text := err.Error(); ctx.Err() == nil && said.Changed("api", "error", text) {
			log.Error("waiting for the Kubernetes API server", "error", text)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(2 * time.Second):
		}
	}
}

// checkHome returns an error if the namespace of the lease does not exist: the lease would be asked
// for again and again. What cannot be read, or is not Kubernetes' own answer, is left to the lease.
func checkHome(ctx context.Context, kube kubernetes.Interface, namespace string) error {
	_, err := kube.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err) {
		return nil
	}
	return fmt.Errorf("there is no namespace %s, where quorate keeps its lease and the commit that it has accepted: create it with kubectl create namespace %s, or name another one with --lease-namespace", namespace, namespace)
}

// findGuardImage returns the given image, or else that of quorate's own pod.
func findGuardImage(ctx context.Context, kube kubernetes.Interface, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	namespace, pod := ownPod()
	if pod == "" {
		return "", errors.New("--guard-image is required: the image of quorate that checks the members' volumes; it is found without the flag only in a pod with POD_NAME and POD_NAMESPACE")
	}
	own, err := kube.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read quorate's own pod for its image: %w; give it with --guard-image", err)
	}
	for _, c := range own.Spec.Containers {
		if c.Name == "quorate" {
			return c.Image, nil
		}
	}
	return "", fmt.Errorf("quorate's own pod %s has no container quorate; give the image with --guard-image", pod)
}
