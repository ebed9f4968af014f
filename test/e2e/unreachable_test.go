package e2e

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorate/quorate/test/lab"
)

// TestUnreachableAPIServer cuts quorate off the API server: from the start, and
// in the middle of an upgrade.
func TestUnreachableAPIServer(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "api")
	tunnel := w.tunnelledKubeconfig()
	tunnel.stop()
	want := spec{version: "3.5.35", replicas: 3}
	w.commit("Add orders", want)
	w.start()

	// One clear sentence, and an orderly end.
	line := w.await("a line about the API server", holdLimit, func(l lab.LogLine) bool { return l.Msg == "waiting for the Kubernetes API server" })
	for _, part := range []string{"reach the Kubernetes API server", "connection refused", "nothing was changed"} {
		if !strings.Contains(line.Error, part) {
			t.Errorf("the sentence lacks %q: %s", part, line.Error)
		}
	}
	time.Sleep(quiet)
	if n := len(w.lines(0, func(l lab.LogLine) bool { return l.Level == "ERROR" })); n != 1 {
		t.Errorf("%d lines about errors, want 1:\n%s", n, tail(w.daemon, 10))
	}
	w.must(w.daemon.Stop())

	// The API server comes while quorate waits for it.
	w.mark = w.daemon.Log.Mark()
	w.must(w.daemon.Start())
	w.await("a line about the API server", holdLimit, func(l lab.LogLine) bool { return l.Msg == "waiting for the Kubernetes API server" })
	w.must(tunnel.start())
	w.awaitIdle(want.version, createLimit)

	// It goes away right after a member has been told to restart.
	writer, pods := w.load(), w.watchPods()
	want.version = "3.6.16"
	w.commit("Upgrade", want)
	w.await("the second restart", rollLimit, lab.Done("restart orders-1 "))
	tunnel.stop()
	time.Sleep(quiet)
	if !w.daemon.Running() {
		t.Error("quorate has ended because the API server is away")
	}
	w.must(tunnel.start())
	w.awaitIdle(want.version, rollLimit)
	w.expectRoll(pods, "orders-2", "orders-1", "orders-0")
	w.expectVersion(3, want.version)
	w.finishLoad(writer)
}

// tunnelledKubeconfig has the daemon reach the API server through a tunnel.
func (w *world) tunnelledKubeconfig() *tunnel {
	w.Helper()
	config, err := clientcmd.LoadFromFile(w.options.Kubeconfig)
	w.must(err)
	current := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	server, err := url.Parse(current.Server)
	w.must(err)
	tunnel := w.startTunnel(server.Host)
	current.Server = "https://" + tunnel.address
	if current.TLSServerName == "" {
		current.TLSServerName = server.Hostname()
	}
	w.options.Kubeconfig = filepath.Join(w.TempDir(), "kubeconfig")
	w.must(clientcmd.WriteToFile(*config, w.options.Kubeconfig))
	return tunnel
}
