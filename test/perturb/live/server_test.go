package live

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/test/lab"
	"github.com/quorate/quorate/test/needs"
)

// api is the one API server of all runs, each of which has its namespace.
var api struct {
	url       *url.URL
	transport http.RoundTripper
	kube      kubernetes.Interface
	kubelets  *kubelets
}

// worlds is how many runs there are at a time: most of a run is waiting.
const worlds = 40

func TestMain(m *testing.M) { os.Exit(run(m)) } //nolint:forbidigo // TestMain returns no error

func run(m *testing.M) int {
	debug.SetGCPercent(400) // a world is small, and soon gone
	etcdtest.AtOnce(worlds)
	if err := needs.Time(); err != nil {
		return needs.Main(err)
	}
	sandbox, err := lab.WithKubernetes()
	if err != nil {
		return needs.Main(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop, err := start(ctx, sandbox)
	defer stop()
	defer cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		return 1
	}
	return m.Run()
}

// start starts etcd, the API server, the controllers and the kubelets, and returns what ends
// them.
func start(ctx context.Context, sandbox *lab.Sandbox) (stop func(), err error) {
	var ends []func()
	stop = func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
	dir, err := os.MkdirTemp("", "quorate-live-")
	if err != nil {
		return stop, err
	}
	ends = append(ends, func() { _ = os.RemoveAll(dir) })
	store, err := sandbox.StartEtcd(ctx, "3.6.16", filepath.Join(dir, "etcd"), "--unsafe-no-fsync")
	if err != nil {
		return stop, err
	}
	ends = append(ends, store.Close)
	server, err := sandbox.StartAPIServer(ctx, store.URL, filepath.Join(dir, "api"), "--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false")
	if err != nil {
		return stop, err
	}
	ends = append(ends, server.Close)
	names := []string{"statefulset-controller", "disruption-controller", "persistentvolumeclaim-protection-controller", "garbage-collector-controller"}
	controllers, err := sandbox.StartControllers(ctx, server, filepath.Join(dir, "controllers"), names, "--concurrent-statefulset-syncs=20")
	if err != nil {
		return stop, err
	}
	ends = append(ends, controllers.Close)
	return stop, reach(ctx, server.Config)
}

// reach lets the tests reach the API server.
func reach(ctx context.Context, config *rest.Config) (err error) {
	config.QPS = -1 // no limit
	if api.url, err = url.Parse(config.Host); err != nil {
		return err
	}
	if api.transport, err = rest.TransportFor(config); err != nil {
		return err
	}
	if api.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	api.kubelets, err = startKubelets(ctx, api.kube)
	return err
}
