package etcds

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/naming"
)

const (
	// probed is how often the kubelet asks a member whether it is ready.
	probed = 100 * time.Millisecond
	// grace is how long a member has to end.
	grace = 5 * time.Second
)

// member is the process of one pod.
type member struct {
	pod *corev1.Pod
	// began is when the kubelet tried to start it, and left when it ended.
	began, left time.Time
	// volume is the directory of its claim, and client and peer are where it listens.
	volume, client, peer string
	cmd                  *exec.Cmd
	said                 bytes.Buffer
	ready                atomic.Bool
	// ended is closed when its process has ended.
	ended chan struct{}
}

// flags are those of the pod's template, with the addresses of this machine.
func (m *member) flags() []string {
	var flags []string
	for _, c := range m.pod.Spec.Containers {
		if c.Name != naming.ContainerEtcd {
			continue
		}
		for _, flag := range c.Args {
			flag = strings.NewReplacer("$(POD_NAME)", m.pod.Name, naming.VolumePath, m.volume).Replace(flag)
			if !strings.HasPrefix(flag, "--listen-") {
				flags = append(flags, flag)
			}
		}
	}
	return append(flags, "--listen-client-urls=http://"+m.client, "--listen-peer-urls=http://"+m.peer, "--log-level=error")
}

// start starts the process, where the guard lets it: with what the record says now.
func (m *member) start(binary, peers string, record map[string]string) error {
	path := filepath.Join(m.volume, "..", m.pod.Name+"-record.json")
	if err := os.WriteFile(path, []byte(record[naming.KeyRecord]), 0o600); err != nil {
		return err
	}
	if err := guard.Check(path, m.volume, m.pod.Name); err != nil {
		return err
	}
	m.cmd = exec.Command(binary, m.flags()...)
	// Names of peers are known to nobody but the proxy.
	m.cmd.Env = []string{"HTTP_PROXY=" + peers, "GOMAXPROCS=1"}
	for _, key := range []string{naming.KeyInitialCluster, naming.KeyInitialState, naming.KeyInitialToken} {
		m.cmd.Env = append(m.cmd.Env, "ETCD_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))+"="+record[key])
	}
	m.cmd.Stdout, m.cmd.Stderr = &m.said, &m.said
	if err := m.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = m.cmd.Wait() // how it ended is in what it said
		m.left = time.Now()
		close(m.ended)
	}()
	go m.probe()
	return nil
}

// probe asks the member whether it is ready, until it is, as it stays.
func (m *member) probe() {
	tick := time.NewTicker(probed)
	defer tick.Stop()
	for {
		select {
		case <-m.ended:
			return
		case <-tick.C:
		}
		if answers(m.client) {
			m.ready.Store(true)
			return
		}
	}
}

func answers(client string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+client+"/health", http.NoBody)
	if err != nil {
		return false
	}
	response, err := plainWay.RoundTrip(r)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// stop asks the process to end, and kills it when it does not.
func (m *member) stop() {
	m.ready.Store(false)
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-m.ended:
	case <-time.After(grace):
		m.kill()
	}
}

// kill ends the process, as a power cut would.
func (m *member) kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill() // it may have ended
		<-m.ended
	}
}

// alive reports whether the process runs.
func (m *member) alive() bool {
	select {
	case <-m.ended:
		return false
	default:
		return m.cmd != nil
	}
}

// over is for how long the process has ended, or did not start; 0 while it runs.
func (m *member) over() time.Duration {
	switch {
	case m.alive():
		return 0
	case m.cmd == nil:
		return time.Since(m.began)
	}
	return time.Since(m.left)
}

// peerProxy lets members reach each other by the names that they have in Kubernetes.
func peerProxy(peers map[string]string) http.Handler {
	return &httputil.ReverseProxy{
		FlushInterval: -1, // streams never end
		ErrorLog:      log.New(io.Discard, "", 0),
		Transport:     &http.Transport{},
		Rewrite: func(r *httputil.ProxyRequest) {
			name, _, _ := strings.Cut(r.In.URL.Host, ".")
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", peers[name], r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// ordinals are the names of the first n members.
func ordinals(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("orders-", i)
	}
	return slices.Clip(names)
}
