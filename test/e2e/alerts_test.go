package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/checkout"
	"github.com/quorate/quorate/test/freeport"
)

// TestAlerts lets a real Prometheus scrape quorate and real members, and a real Alertmanager
// tell what fires: what somebody does by hand, a store that says nothing, a node that stops, a
// daemon that is killed; and that each ends. It runs alone, because it stops a node.
func TestAlerts(t *testing.T) {
	takesLong(t)
	w := newWorld(t, "alerts")
	sandbox := w.cluster.Sandbox
	if sandbox == nil {
		t.Skip("only in the sandbox can a node be stopped")
	}
	store, err := url.Parse(shared.store.Endpoint())
	w.must(err)
	door := w.startTunnel(store.Host)
	w.options.BackupURL = strings.Replace(shared.store.URLTemplate(), url.QueryEscape(shared.store.Endpoint()), url.QueryEscape("http://"+door.address), 1)
	w.options.Listen, err = freeport.At("127.0.0.1")
	w.must(err)
	want := spec{version: "3.6.16", replicas: 3}
	w.create(want)
	schedule := fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdBackupSchedule
metadata: {name: minutely, namespace: %s}
spec:
  schedule: "* * * * *"
  startingDeadline: 1m
  backupTemplate: {source: {clusterName: orders}}
`, w.namespace)
	w.commitFiles("Ask for backups", map[string]string{file: w.text(want), "clusters/backups.yaml": schedule})
	w.awaitBackup("EtcdBackupSchedule " + w.namespace + "/minutely")
	p := w.startPrometheus()
	p.eventually("quorate and three members to be scraped", "count(up == 1) == 4")
	p.eventually("members to have the name of their cluster", fmt.Sprintf(`count(etcd_server_has_leader{etcd_namespace=%q,etcd_cluster="orders"} == 1) == 3`, w.namespace))
	for _, quiet := range []string{"QuorateAbsent", "QuorateDrift", "QuorateBackupOverdue", "QuorateQuorumAtRisk", "EtcdInsufficientMembers"} {
		w.eventually(quiet+" not to fire at rest", holdLimit, func(context.Context) (bool, error) { return !p.fires(quiet), nil })
	}

	// 50, 255: somebody scales by hand, and quorate mends it before anybody scrapes.
	w.kubectl("scale", "statefulset/orders", "--replicas=5")
	p.awaitFiring("QuorateDrift")
	w.runbook("QuorateDrift")
	p.awaitResolved("QuorateDrift")

	// 173, 174, 255: a store that accepts and says nothing.
	door.leadTo(w.silence())
	p.awaitFiring("QuorateBackupOverdue")
	w.runbook("QuorateBackupOverdue")
	door.leadTo(store.Host)
	p.awaitResolved("QuorateBackupOverdue")

	// 76, 255: a node stops. No further member may be lost.
	stopped := w.nodeOf("orders-2")
	if stopped == w.nodeOf("orders-0") || stopped == w.nodeOf("orders-1") {
		t.Fatalf("%s has more than one member", stopped)
	}
	w.must(sandbox.StopNode(t.Context(), stopped))
	back := sync.OnceFunc(func() { w.bringBack(stopped) })
	t.Cleanup(back)
	p.awaitFiring("QuorateQuorumAtRisk")
	w.runbook("QuorateQuorumAtRisk")
	p.awaitFiring("EtcdMemberDown")
	back()
	p.awaitResolved("QuorateQuorumAtRisk")
	p.awaitResolved("EtcdMemberDown")

	// 255: the daemon is killed, and another one comes.
	w.daemon.Kill()
	p.awaitFiring("QuorateAbsent")
	w.must(w.daemon.Start())
	p.awaitResolved("QuorateAbsent")
}

// silence is the address of a server that accepts connections and says nothing.
func (w *world) silence() string {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	return listener.Addr().String()
}

// prometheus is a Prometheus with an Alertmanager, and what that has told.
type prometheus struct {
	*world
	address string

	mu sync.Mutex
	// firing are the alerts of this test's cluster, or of none, by name, and seen those
	// that have fired at all.
	firing, seen map[string]bool
}

// startPrometheus starts both on the rules of deploy/monitoring, whose waits are shortened.
func (w *world) startPrometheus() *prometheus {
	w.Helper()
	p := &prometheus{world: w, firing: map[string]bool{}, seen: map[string]bool{}}
	told := httptest.NewServer(http.HandlerFunc(p.told))
	w.Cleanup(told.Close)
	dir := w.TempDir()
	var err error
	p.address, err = freeport.At("127.0.0.1")
	w.must(err)
	manager, err := freeport.At("127.0.0.1")
	w.must(err)
	w.writeYAML(filepath.Join(dir, "alertmanager.yml"), map[string]any{
		"route": map[string]any{
			"receiver": "test", "group_by": []string{"alertname", "etcd_namespace", "etcd_cluster"},
			"group_wait": "1s", "group_interval": "1s", "repeat_interval": "1h",
		},
		"receivers": []any{map[string]any{"name": "test", "webhook_configs": []any{map[string]any{"url": told.URL, "send_resolved": true}}}},
	})
	w.writeRules(filepath.Join(dir, "rules.yaml"))
	members := filepath.Join(dir, "members.json")
	w.keepTargets(members)
	w.writeYAML(filepath.Join(dir, "prometheus.yml"), map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{"rules.yaml"},
		"alerting":   map[string]any{"alertmanagers": []any{map[string]any{"static_configs": []any{map[string]any{"targets": []string{manager}}}}}},
		"scrape_configs": []any{
			map[string]any{"job_name": "quorate", "static_configs": []any{map[string]any{"targets": []string{w.options.Listen}}}},
			map[string]any{
				"job_name":        "quorate-etcd",
				"file_sd_configs": []any{map[string]any{"files": []string{members}, "refresh_interval": "1s"}},
				"relabel_configs": w.relabelings(),
			},
		},
	})
	w.startTool("prometheus-alertmanager", dir, "--config.file=alertmanager.yml", "--storage.path=alertmanager",
		"--web.listen-address="+manager, "--cluster.listen-address=")
	w.startTool("prometheus", dir, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+p.address)
	return p
}

func (w *world) writeYAML(path string, content any) {
	w.Helper()
	text, err := yaml.Marshal(content)
	w.must(err)
	w.must(os.WriteFile(path, text, 0o600))
}

// writeRules copies the rules. Only how long they wait and look back is less: minutes are
// seconds, and hours and days minutes.
func (w *world) writeRules(path string) {
	w.Helper()
	root, err := checkout.Root()
	w.must(err)
	text, err := os.ReadFile(filepath.Join(root, "deploy", "monitoring", "rules.yaml"))
	w.must(err)
	short := regexp.MustCompile(`(for: |\[)(\d+)m\b`).ReplaceAllString(string(text), "${1}${2}s")
	w.must(os.WriteFile(path, []byte(regexp.MustCompile(`(for: |\[)(\d+)[hd]\b`).ReplaceAllString(short, "${1}${2}m")), 0o600))
}

// relabelings are those of the PodMonitor, as Prometheus itself writes them.
func (w *world) relabelings() (list []any) {
	w.Helper()
	root, err := checkout.Root()
	w.must(err)
	text, err := os.ReadFile(filepath.Join(root, "deploy", "monitoring", "podmonitor.yaml"))
	w.must(err)
	var monitor struct {
		Spec struct {
			PodMetricsEndpoints []struct {
				Relabelings []struct {
					SourceLabels []string
					TargetLabel  string
				}
			}
		}
	}
	w.must(yaml.Unmarshal(text, &monitor))
	for _, r := range monitor.Spec.PodMetricsEndpoints[0].Relabelings {
		list = append(list, map[string]any{"source_labels": r.SourceLabels, "target_label": r.TargetLabel})
	}
	return list
}

// keepTargets writes where the members are, with the labels that discovery in Kubernetes
// would give them, again each second: Debian's Prometheus has no such discovery.
func (w *world) keepTargets(path string) {
	w.Helper()
	write := func(ctx context.Context) error {
		pods, err := w.cluster.Pods(ctx, w.namespace, name)
		if err != nil {
			return err
		}
		targets := []any{}
		for _, p := range pods {
			if p.Status.PodIP == "" {
				continue
			}
			labels := map[string]string{"__meta_kubernetes_namespace": p.Namespace, "__meta_kubernetes_pod_name": p.Name}
			for key, value := range p.Labels {
				labels["__meta_kubernetes_pod_label_"+regexp.MustCompile(`\W`).ReplaceAllString(key, "_")] = value
			}
			targets = append(targets, map[string]any{"targets": []string{net.JoinHostPort(p.Status.PodIP, fmt.Sprint(naming.MetricsPort))}, "labels": labels})
		}
		text, err := json.Marshal(targets)
		if err != nil {
			return err
		}
		// Prometheus must not read half of it.
		if err := os.WriteFile(path+".new", text, 0o600); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}
	w.must(write(w.Context()))
	ctx, end := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			_ = write(ctx) // the API server may be busy; the last ones stay
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	w.Cleanup(func() {
		end()
		done.Wait()
	})
}

// startTool starts one of Debian's programs until the test ends.
func (w *world) startTool(tool, dir string, args ...string) {
	w.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		w.Fatalf("%v: `make alertmanager` installs it", err)
	}
	w.startProgram(path, dir, args...)
}

// startProgram starts a program until the test ends. A failed test shows what it said last.
func (w *world) startProgram(path, dir string, args ...string) {
	w.Helper()
	tool := filepath.Base(path)
	log, err := os.Create(filepath.Join(dir, tool+".log"))
	w.must(err)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	w.must(cmd.Start())
	w.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && w.Failed() {
			w.Logf("%s said:\n%s", tool, text[max(0, len(text)-4000):])
		}
	})
}

// told takes what Alertmanager tells.
func (p *prometheus) told(_ http.ResponseWriter, r *http.Request) {
	var message struct {
		Alerts []struct {
			Status string
			Labels map[string]string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range message.Alerts {
		if of := a.Labels["etcd_namespace"]; of != "" && of != p.namespace {
			continue
		}
		alert := a.Labels["alertname"]
		p.firing[alert] = a.Status == "firing"
		p.seen[alert] = p.seen[alert] || p.firing[alert]
	}
}

// fires reports whether Alertmanager has told that an alert fires, and not that it is over.
func (p *prometheus) fires(alert string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.firing[alert]
}

func (p *prometheus) awaitFiring(alert string) {
	p.Helper()
	p.world.eventually(alert+" to fire", rollLimit, func(context.Context) (bool, error) { return p.fires(alert), nil })
}

func (p *prometheus) awaitResolved(alert string) {
	p.Helper()
	p.world.eventually(alert+" to end", rollLimit, func(context.Context) (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.seen[alert] && !p.firing[alert], nil
	})
}

// eventually waits until a query has a result.
func (p *prometheus) eventually(what, query string) {
	p.Helper()
	p.world.eventually(what, holdLimit, func(ctx context.Context) (bool, error) {
		ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/api/v1/query?query="+url.QueryEscape(query), nil)
		if err != nil {
			return false, err
		}
		answer, err := http.DefaultClient.Do(ask)
		if err != nil {
			return false, nil // it is still starting
		}
		defer func() { _ = answer.Body.Close() }()
		var found struct {
			Data struct{ Result []json.RawMessage }
		}
		err = json.NewDecoder(answer.Body).Decode(&found)
		return err == nil && len(found.Data.Result) > 0, nil
	})
}
