package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/checkout"
	"github.com/quorate/quorate/test/freeport"
	"github.com/quorate/quorate/test/lab"
)

// A newcomer reads the README, and does what it says, word for word: installs quorate, creates a cluster, upgrades
// it by a commit, and sees the alert when somebody changes it by hand; and restores a backup as docs/backup.md says.
func TestANewcomersPath(t *testing.T) {
	takesLong(t)
	const system = "quorate-system"
	w, run := newInstallation(t, "demo", system)
	readme := w.guide("README.md")
	w.removeAtEnd(system, run)
	for _, command := range readme.commands("Install", 0) {
		run(command)
	}
	w.ours(w.namespace, system)
	w.awaitReady(system)
	w.expectVersion(3, "3.5.35")
	w.put("before", "the upgrade")

	for _, command := range readme.commands("One upgrade", 0) {
		run(command)
	}
	w.eventually("the upgrade", rollLimit, func(context.Context) (bool, error) {
		ok, _ := lab.AtVersion(w.members(), 3, "3.6.16")
		return ok, nil
	})
	w.awaitReady(system)
	if said := run("quorate status demo/orders"); !strings.Contains(said, "3.6.16") || !strings.Contains(said, "Ready") {
		t.Errorf("quorate status says: %s", said)
	}

	p := w.prometheusOf(system, readme.rules)
	p.eventually("quorate to be scraped", `quorate_drift_corrections_total{etcd_cluster="orders"}`)
	for _, command := range readme.commands("One alert", 0) {
		run(command)
	}
	p.eventually("the alert on drift", `ALERTS{alertname="EtcdDrift",alertstate="firing",etcd_namespace="demo",etcd_cluster="orders"}`)
	w.awaitReady(system)
	w.expectVersion(3, "3.6.16")

	w.put("after", "the backup")
	for _, command := range w.guide("docs/backup.md").commands("Restore", 0) {
		run(command)
	}
	w.eventually("the restored cluster to be ready", rollLimit, func(ctx context.Context) (bool, error) {
		set, err := w.cluster.Client.AppsV1().StatefulSets(w.namespace).Get(ctx, "orders-copy", metav1.GetOptions{})
		return err == nil && set.Labels["quorate.dev/phase"] == string(schema.PhaseReady), nil // it is made in a moment
	})
	w.expectKeys("orders-copy", map[string]string{"before": "the upgrade", "after": ""})
	w.expectKeys(name, map[string]string{"before": "the upgrade", "after": "the backup"})

	before := w.uids()
	for _, command := range readme.commands("Install", 1) {
		run(command)
	}
	w.expectToGoOn(system, before, "3.6.16")
}

// guidePage is a page whose commands a newcomer runs.
type guidePage struct {
	*page
	t *testing.T
	// rules are the alerting rules that it shows.
	rules string
}

// commands are those of one block under a heading.
func (p *guidePage) commands(heading string, block int) []string {
	p.t.Helper()
	if len(p.parts[heading]) <= block {
		p.t.Fatalf("the page has %d blocks of commands under %q", len(p.parts[heading]), heading)
	}
	return p.parts[heading][block].commands
}

// removeAtEnd has what the README installs removed at the end of the test.
func (w *world) removeAtEnd(system string, run func(string) string) {
	w.Helper()
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("quorate said last:\n%s", w.deployedLog(system))
		}
		run("helm uninstall quorate --namespace " + system + " --ignore-not-found --wait")
	})
}

// guide reads a page, with the repository and the store of the test in place of those that it names: both are
// reached without TLS, and the store by keys in the environment.
func (w *world) guide(path string) *guidePage {
	w.Helper()
	const repository = "https://git.example.com/platform/etcd.git"
	root, err := checkout.Root()
	w.must(err)
	set := " --set 'extraArgs={--insecure-git,--insecure-stores,--interval=1s}'"
	for i, variable := range slices.Sorted(maps.Keys(shared.store.Credentials())) {
		set += fmt.Sprintf(" --set-string 'env[%d].name=%s,env[%d].value=%s'", i, variable, i, shared.store.Credentials()[variable])
	}
	names := strings.NewReplacer(
		"--set repo="+repository, "--set repo="+w.git.URL()+set, repository, w.git.URL(),
		"s3://backups/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=eu-west-1", shared.store.URLTemplate(),
	)
	text, err := os.ReadFile(filepath.Join(root, path))
	w.must(err)
	_, rules, _ := strings.Cut(string(text), "```yaml\ngroups:")
	rules, _, _ = strings.Cut(rules, "```")
	return &guidePage{w.readPage(filepath.Join(root, path), names), w.T, "groups:" + rules}
}

// prometheusOf starts a Prometheus with these rules that scrapes the quorate of a namespace.
func (w *world) prometheusOf(system, rules string) *prometheus {
	w.Helper()
	p, dir := &prometheus{world: w}, w.TempDir()
	var err error
	p.address, err = freeport.At("127.0.0.1")
	w.must(err)
	w.must(os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600))
	pods, err := w.cluster.Client.CoreV1().Pods(system).List(w.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=daemon"})
	w.must(err)
	targets := []string{}
	for i := range pods.Items {
		targets = append(targets, net.JoinHostPort(pods.Items[i].Status.PodIP, "8080"))
	}
	w.writeYAML(filepath.Join(dir, "prometheus.yml"), map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": []any{map[string]any{"job_name": "quorate", "static_configs": []any{map[string]any{"targets": targets}}}},
	})
	w.startTool("prometheus", dir, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+p.address)
	return p
}

// put writes a key, as an application does.
func (w *world) put(key, value string) {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, name)
	w.must(err)
	defer func() { _ = client.Close() }()
	_, err = client.Put(w.Context(), key, value)
	w.must(err)
}

// expectKeys wants these keys in a cluster; one without a value is not there.
func (w *world) expectKeys(cluster string, want map[string]string) {
	w.Helper()
	client, err := w.cluster.Dial(w.Context(), w.namespace, cluster)
	w.must(err)
	defer func() { _ = client.Close() }()
	for key, value := range want {
		got, err := client.Get(w.Context(), key)
		w.must(err)
		if is := len(got.Kvs) == 1 && string(got.Kvs[0].Value) == value; is != (value != "") || value == "" && len(got.Kvs) > 0 {
			w.Errorf("%s has %v for %q, want %q", cluster, got.Kvs, key, value)
		}
	}
}
