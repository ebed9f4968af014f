package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/report"
)

// runFlags are the flags of quorate run.
type runFlags struct {
	repository repositoryFlags
	forge      forgeFlags
	status     statusFlags
	kube       kubeFlags
	lease      leaseFlags
	mass       massLimits
	approve    string
	interval   time.Duration
	listen     string
	hook       string
	hookSecret string
	logFormat  string
}

// minInterval keeps a slip of the pen from becoming a load on the Git server.
const minInterval = 100 * time.Millisecond

// newRun is the daemon.
func newRun() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon",
		Long: `run polls a branch of a Git repository, and makes the etcd clusters of the
Kubernetes cluster what its files say: one action at a time, each with a reason.
It keeps nothing that decides in memory and may be killed at any time.`,
		Example: "  quorate run --repo https://git.example.com/etcd.git --path clusters",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	f.repository.add(cmd)
	f.forge.add(cmd)
	f.status.add(cmd)
	f.kube.add(cmd)
	f.lease.add(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&f.interval, "interval", 30*time.Second, "time between two looks at the repository")
	flags.IntVar(&f.mass.clusters, "max-changed-clusters", 10, "a commit that removes, deletes or gives another version to more clusters waits for approval; 0 for no limit")
	flags.IntVar(&f.mass.percent, "max-changed-percent", 50, "the same as part of all clusters, from three on; 0 for no limit")
	flags.StringVar(&f.approve, "approve-commit", "", "approve a commit by its full hash, whatever its history and signatures are and however much it changes; the annotation quorate.dev/approve on the ConfigMap that the log names does the same")
	flags.StringVar(&f.listen, "listen", ":8080", "address for /metrics, /healthz and /readyz")
	flags.StringVar(&f.hook, "webhook-listen", "", "address for /webhook, where a code host says that something was pushed; default none")
	flags.StringVar(&f.hookSecret, "webhook-secret-file", "", "file with the secret that the code host signs its calls with")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	return cmd
}

// run wires the parts together.
func (f *runFlags) run(ctx context.Context) error {
	log, err := f.logger()
	if err != nil {
		return err
	}
	if f.interval < minInterval {
		return fmt.Errorf("--interval is %s; give at least %s", f.interval, minInterval)
	}
	if err := errors.Join(f.kube.check(), f.mass.check(), checkHash(f.approve)); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	git, err := newPoller(f, log, registry)
	if err != nil {
		return err
	}
	host, err := f.forge.open(f.repository, f.kube.connect)
	if err != nil {
		return err
	}
	proposed := newPulls(f, git, host, log)
	marks := newCommitStatuses(f, git, host, log)
	status, err := f.openStatus(git, log, registry)
	if err != nil {
		return err
	}
	kube, err := f.kube.connect()
	if err != nil {
		return err
	}
	server, err := serve(f.listen, registry, log)
	if err != nil {
		return err
	}
	defer server.close()
	hooks, err := serveWebhook(f.hook, f.hookSecret, git.wakeUp, log)
	if err != nil {
		return err
	}
	defer hooks.close()
	if !awaitAPI(ctx, kube, log) {
		return nil
	}
	if err := f.findGuardImage(ctx, kube); err != nil {
		return err
	}
	git.keepIn(kube, f.lease.namespace, f.kube.options.Owner.Instance)
	f.lease.instance = f.kube.options.Owner.Instance
	return f.lease.hold(ctx, kube, log, func(ctx context.Context, held func() error) error {
		options := f.kube.options
		options.Lease, options.Owner.Source = held, git.repository.Source()
		events, stop := newRecorder(kube)
		defer stop()
		r := reconciler.New(kube, etcd.New(), events, report.NewMetrics(registry), log, options)
		if err := r.Start(ctx); err != nil {
			return err
		}
		ready := func() bool { return r.Ready() && git.read.Load() }
		server.ready.Store(&ready)
		go git.poll(ctx, r)
		if proposed != nil {
			proposed.options = options
			go proposed.follow(ctx, r)
		}
		if marks != nil {
			go marks.follow(ctx, r)
		}
		if status != nil {
			go status.follow(ctx, kube, r)
		}
		log.Info("running", "version", buildVersion(), "source", git.repository.Source(), "following", git.repository.Reference())
		r.Run(ctx)
		return nil
	})
}

// logger writes to standard error. client-go's own messages take the same way.
func (f *runFlags) logger() (*slog.Logger, error) {
	var log *slog.Logger
	switch f.logFormat {
	case "text":
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	case "json":
		log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	default:
		return nil, errors.New("--log-format is text or json")
	}
	klog.SetSlogLogger(log.With("source", "client-go"))
	return log, nil
}

// newRecorder sends Events to the API server until stop is called.
func newRecorder(kube kubernetes.Interface) (events record.EventRecorder, stop func()) {
	// The default of 25 Events an object, and then one in five minutes, would
	// swallow the end of an upgrade. quorate says each thing once as it is.
	broadcaster := record.NewBroadcasterWithCorrelatorOptions(record.CorrelatorOptions{BurstSize: 500, QPS: 1})
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "quorate"}), broadcaster.Shutdown
}

// reachable asks the API server for its version.
func reachable(ctx context.Context, kube kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := kube.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx); err != nil {
		return fmt.Errorf("reach the Kubernetes API server: %w; check its address and your network, nothing was changed", err)
	}
	return nil
}

// awaitAPI waits until the API server answers, and says once why it does not.
// It returns false when ctx ends first.
func awaitAPI(ctx context.Context, kube kubernetes.Interface, log *slog.Logger) bool {
	said := ""
	for {
		err := reachable(ctx, kube)
		if err == nil {
			return true
		}
		if text := err.Error(); ctx.Err() == nil && text != said {
			log.Error("waiting", "error", text)
			said = text
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(2 * time.Second):
		}
	}
}

// findGuardImage takes the image of quorate's own pod where none was given.
func (f *runFlags) findGuardImage(ctx context.Context, kube kubernetes.Interface) error {
	pod, namespace := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE")
	if f.kube.options.Render.GuardImage != "" {
		return nil
	}
	if pod == "" || namespace == "" {
		return errors.New("say with --guard-image which image of quorate checks the members' volumes; only in a pod with POD_NAME and POD_NAMESPACE it is found by itself")
	}
	own, err := kube.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read quorate's own pod for its image: %w; give it with --guard-image", err)
	}
	for _, c := range own.Spec.Containers {
		if c.Name == "quorate" {
			f.kube.options.Render.GuardImage = c.Image
			return nil
		}
	}
	return fmt.Errorf("quorate's own pod %s has no container quorate; give the image with --guard-image", pod)
}

// indent puts two spaces before each line.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
