package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/sources"
)

// A call wakes the poller, which looks by itself at what is there.
func TestWebhookMakesTheNextLookComeNow(t *testing.T) {
	f, log := cmdtest.NewRepository(t), quiet()
	repository, err := sources.New(sources.Config{URL: f.Dir, Branch: "main", Path: "clusters"})
	if err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientset()
	p := newPoller(followConfig{Repository: repository, Interval: time.Hour, Kube: kube, Namespace: "quorate-system"}, log, prometheus.NewRegistry())
	r := reconciler.New(kube, etcd.New(), record.NewFakeRecorder(10), report.NewMetrics(prometheus.NewRegistry()), log, reconciler.Options{})
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := backuptest.FreeAddress(t)
	hooks, err := serveWebhook(address, secret, p.wakeUp, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hooks.close)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.poll(ctx, r)
	}()
	cmdtest.Await(t, func() bool { return len(r.Desired()) == 1 })
	f.Commit("clusters/users.yaml", desiredtest.ClusterFile("users", "3.6.16"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/webhook", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Gitlab-Token", "s3cret")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		t.Errorf("status %d", res.StatusCode)
	}
	cmdtest.Await(t, func() bool { return len(r.Desired()) == 2 })
	stop()
	<-ended
}

func TestWebhookNeedsASecret(t *testing.T) {
	if _, err := serveWebhook("127.0.0.1:0", "", nil, quiet()); err == nil || !strings.Contains(err.Error(), "--webhook-secret-file") {
		t.Errorf("got %v", err)
	}
}
