package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/schema"
)

// The example is what its policy allows, and each command says what is not.
func TestCommandsKnowThePolicy(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "examples", "fleet"))
	example := filepath.Join("..", "..", "deploy", "policy", "policy.yaml")
	if status, stdout, stderr := quorateSays(t, "validate", "--policy="+example, "production", "staging"); status != 0 || !strings.Contains(stdout, "0 errors") {
		t.Fatalf("%d\n%s%s", status, stdout, stderr)
	}
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	narrow := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(narrow, []byte(strings.Replace(string(text), "members: 7", "members: 3", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "(rule search) allows 3 members"
	for _, args := range [][]string{
		{"validate", "production"}, {"validate", "-o=sarif", "production"}, {"plan", "--offline", "--base=HEAD", "production"},
	} {
		if status, stdout, stderr := quorateSays(t, append(args, "--policy="+narrow)...); status != 1 || !strings.Contains(stdout+stderr, want) {
			t.Errorf("%s: %d\n%s%s", args, status, stdout, stderr)
		}
	}
	for file, want := range map[string]string{"none.yaml": "--policy: open none.yaml", "production/search/catalog.yaml": "--policy: production/search/catalog.yaml"} {
		for _, args := range [][]string{
			{"validate", "production"}, {"plan", "--offline", "--base=HEAD", "production"}, {"plan", "production"}, {"run", "--repo=https://git.example.com/etcd.git"},
		} {
			if status, _, stderr := quorateSays(t, append(args, "--policy="+file)...); status != 1 || !strings.Contains(stderr, want) {
				t.Errorf("%s with %s: %d, %s", args, file, status, stderr)
			}
		}
	}
}

// 477: each command knows --namespaces.
func TestCommandsKnowTheNamespaces(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "examples", "fleet"))
	for namespaces, want := range map[string]string{
		"payments": "quorate does not work in namespace", "not_one": `--namespaces names "not_one", which is no namespace`, "": "",
	} {
		for _, args := range [][]string{{"validate", "production"}, {"plan", "--offline", "--base=HEAD", "production"}} {
			if want == "" && args[0] == "plan" {
				continue // whatever differs from HEAD
			}
			status, stdout, stderr := quorateSays(t, append(args, "--namespaces="+namespaces)...)
			if (status == 1) != (want != "") || !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s with %q: %d\n%s%s", args, namespaces, status, stdout, stderr)
			}
		}
	}
	if status, _, stderr := quorateSays(t, "run", "--repo=https://git.example.com/etcd.git", "--namespaces=a/b"); status != 1 || !strings.Contains(stderr, "which is no namespace") {
		t.Errorf("%d, %s", status, stderr)
	}
}

// 579: each command knows --check-hosts; the daemon asks no host without it, and the others know of none.
func TestCommandsKnowTheHostsOfChecks(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "examples", "fleet"))
	const held = "quorate may not ask prometheus.monitoring.svc:9090: --check-hosts names "
	for hosts, want := range map[string]string{
		"orders.example.com:443": held + "orders.example.com:443",
		"orders.example.com":     "--check-hosts: \"orders.example.com\" has no port",
		"http://a:80":            "--check-hosts: \"http://a:80\" is not a host with a port",
		"Prometheus.monitoring.svc:9090,orders.example.com:443": "",
		"": "",
	} {
		for _, args := range [][]string{{"validate", "production"}, {"plan", "--offline", "--base=HEAD", "production"}} {
			if want == "" && args[0] == "plan" {
				continue // whatever differs from HEAD
			}
			if hosts != "" {
				args = append(args, "--check-hosts="+hosts)
			}
			status, stdout, stderr := quorateSays(t, args...)
			if (status == 1) != (want != "") || !strings.Contains(stdout+stderr, want) {
				t.Errorf("%s with %q: %d\n%s%s", args, hosts, status, stdout, stderr)
			}
		}
	}
	if status, _, stderr := quorateSays(t, "run", "--repo=https://git.example.com/etcd.git", "--check-hosts=a"); status != 1 || !strings.Contains(stderr, "has no port") {
		t.Errorf("%d, %s", status, stderr)
	}
	f := &runFlags{}
	f.repository.config.URL, f.repository.config.Branch = "https://git.example.com/etcd.git", "main"
	f.status.mode = "none"
	c, err := f.config(nil)
	if err != nil || c.Options.CheckHosts == nil || len(c.Options.CheckHosts) > 0 || c.Follow.Bounds.CheckHosts == nil {
		t.Errorf("by default %v, hosts %#v and %#v", err, c.Options.CheckHosts, c.Follow.Bounds.CheckHosts)
	}
	f.bounds.checkHosts = []string{"Orders.example.com:443"}
	if c, err = f.config(nil); err != nil || strings.Join(c.Options.CheckHosts, " ") != "orders.example.com:443" || strings.Join(c.Follow.Bounds.CheckHosts, " ") != "orders.example.com:443" {
		t.Errorf("%v, hosts %v and %v", err, c.Options.CheckHosts, c.Follow.Bounds.CheckHosts)
	}
}

// The policy of the page is one.
func TestThePolicyOfThePageIsOne(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "policy.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if shown == nil {
		t.Fatal("docs/policy.md shows no policy")
	}
	if _, err := schema.ParsePolicy("docs/policy.md", shown[1]); err != nil {
		t.Error(err)
	}
}
