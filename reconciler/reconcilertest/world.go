// Package reconcilertest is the world in which the reconciler is tested.
package reconcilertest

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/schema"
)

// World is the cluster shop/orders on a fake API server, with a StatefulSet
// controller and etcd behind it. It lives in a synctest bubble, where waiting
// takes no time and the caches have caught up when everybody waits.
type World struct {
	*testing.T
	API  *FakeAPI
	Etcd *FakeEtcd
	// members is what quorate asks: Etcd, or what Ask has put in its place.
	members reconciler.Members
	events  *eventrecord.FakeRecorder
	// end ends the process that runs.
	end      func()
	Registry *prometheus.Registry
	Log      *bytes.Buffer
	R        *reconciler.Reconciler
	Wish     desired.Cluster
	// backups is the directory that backups go to.
	Backups string
	// broken maps a version to what its pods wait for instead of running.
	Broken map[string]corev1.ContainerStateWaiting
	// drills is what a container of each restore drill's pod says; nil, or a container
	// without a name, for none.
	Drills func() corev1.ContainerStatus
	// Starting, where it is set, changes each pod of a member before it is created.
	Starting func(pod *corev1.Pod)
}

// CertificateEpoch is the time of tests about certificates.
var CertificateEpoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func OrdersOptions() manifests.Options {
	return manifests.Options{GuardImage: "ghcr.io/quorate/quorate:v0.1.0", ClusterDomain: "cluster.local"}
}

// Run runs a test in its own world.
func Run(t *testing.T, test func(w *World), edits ...func(*schema.EtcdCluster)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		test(newWorld(t, dir, edits...))
	})
}

// InRealTime is a world outside of any bubble, for members that are processes. What waits
// for the caches to catch up is not for it.
func InRealTime(t *testing.T, edits ...func(*schema.EtcdCluster)) *World {
	t.Helper()
	return newWorld(t, t.TempDir(), edits...)
}

// collectRarely lets the heap grow to five times of what is in use, unless GOGC says otherwise: worlds are small and
// soon gone, and to collect them took a third of their time.
var collectRarely = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
})

func newWorld(t *testing.T, backups string, edits ...func(*schema.EtcdCluster)) *World {
	t.Helper()
	collectRarely()
	c := clustertest.Orders(edits...)
	schema.Default(&c)
	w := &World{
		T: t, API: NewFakeAPI(), events: eventrecord.NewFakeRecorder(1000), Registry: prometheus.NewRegistry(),
		Log: &bytes.Buffer{}, Backups: backups, Wish: desired.Cluster{EtcdCluster: c, Commit: "0a1b2c3"},
	}
	w.Etcd = &FakeEtcd{Version: w.VersionOf, Database: backuptest.Snapshot(8 << 10), Leader: "orders-0", Saved: map[string]int64{}}
	w.members = w.Etcd
	for i := range int(c.Spec.Replicas) {
		w.Etcd.Members = append(w.Etcd.Members, naming.Member(c.Metadata.Name, int32(i)))
	}
	w.R = reconciler.New(w.API, w.Etcd, w.events, report.NewMetrics(w.Registry), slog.New(slog.NewJSONHandler(w.Log, nil)), reconciler.Options{
		Render:       OrdersOptions(),
		BackupURL:    "file://" + backups + "/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?root=" + backups,
		BackupPlaces: []string{"file:///"},
	})
	ctx, stop := context.WithCancel(t.Context())
	first := w.R
	w.end = func() {
		stop()
		first.Close()
	}
	t.Cleanup(func() {
		w.end()
		w.R.Close()
	})
	if err := w.R.Start(ctx); err != nil {
		t.Fatal(err)
	}
	w.API.ClearActions()
	return w
}

// Formed is a world whose cluster stands and is what Git says.
func Formed(t *testing.T, test func(w *World), edits ...func(*schema.EtcdCluster)) {
	t.Helper()
	Run(t, func(w *World) {
		w.UntilIdle()
		w.MustPass()
		w.API.ClearActions()
		w.Log.Reset()
		w.DrainEvents()
		test(w)
	}, edits...)
}

func SetsResource() apischema.GroupVersionResource {
	return appsv1.SchemeGroupVersion.WithResource("statefulsets")
}

func PodsResource() apischema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("pods")
}
