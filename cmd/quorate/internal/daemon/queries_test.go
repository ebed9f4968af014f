package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/clustertest"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/schema"
)

// targetLabels are on each series that the monitors have scraped.
func targetLabels() []string { return []string{"namespace", "pod", "instance", "job"} }

// etcdMetrics are those of the members' port that rules and dashboards use, with their
// own labels.
func etcdMetrics() map[string][]string {
	all := map[string][]string{
		"up":                                        nil,
		"process_resident_memory_bytes":             nil,
		"etcd_server_has_leader":                    nil,
		"etcd_server_leader_changes_seen_total":     nil,
		"etcd_server_slow_read_indexes_total":       nil,
		"etcd_server_slow_apply_total":              nil,
		"etcd_server_proposals_failed_total":        nil,
		"etcd_server_proposals_pending":             nil,
		"etcd_server_proposals_committed_total":     nil,
		"etcd_server_quota_backend_bytes":           nil,
		"etcd_mvcc_db_total_size_in_bytes":          nil,
		"etcd_mvcc_db_total_size_in_use_in_bytes":   nil,
		"etcd_network_peer_round_trip_time_seconds": {"To"},
		"etcd_disk_wal_fsync_duration_seconds":      nil,
		"etcd_disk_backend_commit_duration_seconds": nil,
		"grpc_server_handled_total":                 {"grpc_code", "grpc_method", "grpc_service", "grpc_type"},
	}
	for name, labels := range all {
		all[name] = append(slices.Clone(labels), "etcd_namespace", "etcd_cluster")
	}
	return all
}

// words are the values that labels of quorate's series have; matchers of others are free.
func words() map[string][]string {
	return map[string][]string{
		"kind": {
			string(decision.Waiting), string(decision.Confirm), string(decision.Unhealthy), string(decision.Unreachable), string(decision.Stopped), string(decision.Refused), string(decision.ObserveOnly),
			"PodDisruptionBudget", "Service", "StatefulSet",
		},
		"mode":   {string(schema.ModeEnforce), string(schema.ModeObserve)},
		"action": {action.TakeBackup{}.Kind(), action.RestartMember{}.Kind(), action.ApplyObject{}.Kind(), action.MoveLeader{}.Kind()},
	}
}

// selector is a metric of a query, and how it is chosen.
var selector = regexp.MustCompile(`\b([a-zA-Z_:][a-zA-Z0-9_:]*)\b(\{[^}]*\})?(\s*\()?`)

// checkQuery wants each metric of a PromQL expression to exist, with the labels that it
// is asked for. It returns all labels that it may have.
func checkQuery(t *testing.T, known map[string][]string, where, expr string) (labels []string) {
	t.Helper()
	labels = targetLabels()
	grouping := regexp.MustCompile(`\b(by|without|on|ignoring)\s*\(([^)]*)\)`)
	rest := regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(grouping.ReplaceAllString(expr, " "), "")
	metrics := 0
	for _, found := range selector.FindAllStringSubmatch(rest, -1) {
		name, matchers, called := found[1], found[2], found[3] != ""
		if called || slices.Contains([]string{"and", "or", "unless", "bool", "offset"}, name) {
			continue
		}
		metrics++
		own, there := known[name]
		if !there {
			t.Errorf("%s: there is no metric %s", where, name)
		}
		own = append(slices.Clone(own), targetLabels()...)
		for _, m := range regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`).FindAllStringSubmatch(matchers, -1) {
			if !slices.Contains(own, m[1]) {
				t.Errorf("%s: %s has no label %s", where, name, m[1])
			}
			for _, value := range strings.Split(m[3], "|") {
				if of := words()[m[1]]; of != nil && !slices.Contains(of, value) {
					t.Errorf("%s: %s of %s is never %q", where, m[1], name, value)
				}
			}
		}
		labels = append(labels, own...)
	}
	if metrics == 0 {
		t.Errorf("%s: no metric in %s", where, expr)
	}
	for _, group := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(group[2], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(labels, label) {
				t.Errorf("%s: no metric has the label %s of %s", where, label, group[0])
			}
		}
	}
	return labels
}

// knownMetrics are quorate's and etcd's, with their labels; a histogram's three series.
func knownMetrics(t *testing.T) map[string][]string {
	all := etcdMetrics()
	for _, m := range allMetrics(t) {
		all[m.name] = m.labels
	}
	for name, labels := range all {
		if strings.HasSuffix(name, "_seconds") {
			for _, suffix := range []string{"_sum", "_count"} {
				all[name+suffix] = labels
			}
			all[name+"_bucket"] = append(slices.Clone(labels), "le")
		}
	}
	return all
}

// Every metric and label of a rule exists, and its texts name labels that it has.
func TestRulesUseMetricsThatExist(t *testing.T) {
	known := knownMetrics(t)
	for _, r := range readRules(t) {
		labels := checkQuery(t, known, r.Alert, r.Expr)
		for _, text := range r.Annotations {
			for _, used := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				if !slices.Contains(labels, used[1]) {
					t.Errorf("%s: no label %s for %q", r.Alert, used[1], text)
				}
			}
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
			t.Errorf("%s: a summary, a description or a severity is missing", r.Alert)
		}
	}
}

// So does every metric of a rule that a page shows.
func TestPagesUseMetricsThatExist(t *testing.T) {
	known := knownMetrics(t)
	for _, page := range []string{"README.md", "docs/status.md", "docs/alerts.md"} {
		text, err := os.ReadFile(root + page)
		if err != nil {
			t.Fatal(err)
		}
		shown := regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(string(text), -1)
		for _, expr := range shown {
			checkQuery(t, known, page, expr[1])
		}
		if len(shown) == 0 {
			t.Errorf("%s shows no rule", page)
		}
	}
}

// The check itself finds what is wrong.
func TestQueriesAreReallyChecked(t *testing.T) {
	known := map[string][]string{"quorate_orphans": nil, "quorate_cluster_hold": {"kind", "etcd_cluster"}}
	for expr, good := range map[string]bool{
		`max without (instance, pod) (quorate_orphans) > 0`:                      true,
		`sum by (etcd_cluster) (rate(quorate_cluster_hold{kind="Refused"}[5m]))`: true,
		`quorate_orphan > 0`:                      false,
		`quorate_orphans{kind="Refused"}`:         false,
		`quorate_cluster_hold{kind="Refusal"}`:    false,
		`sum by (cluster) (quorate_cluster_hold)`: false,
	} {
		probe := &testing.T{}
		checkQuery(probe, known, "", expr)
		if probe.Failed() == good {
			t.Errorf("%s: failed is %t", expr, probe.Failed())
		}
	}
}

// dashboard is the part of Grafana's JSON that a query can stand in.
type dashboard struct {
	UID, Title    string
	SchemaVersion int `json:"schemaVersion"`
	Panels        []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ H, W, X, Y int } `json:"gridPos"`
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
}

// Prometheus takes every query of a dashboard.
func TestDashboardsAreValidPromQL(t *testing.T) {
	files, err := filepath.Glob(monitoring + "dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var rules []any
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		add := func(expr string) {
			expr = strings.NewReplacer("$__rate_interval", "5m", "$namespace", "shop", "$cluster", "orders").Replace(expr)
			rules = append(rules, map[string]string{"record": fmt.Sprintf("dashboard:query:%d", len(rules)), "expr": expr})
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				add(target.Expr)
			}
		}
		for _, a := range d.Annotations.List {
			if a.Expr != "" {
				add(a.Expr)
			}
		}
	}
	promtool(t, "check", "rules", writeYAML(t, "rules.yaml", map[string]any{"groups": []any{map[string]any{"name": "dashboards", "rules": rules}}}))
}

// The PodMonitor finds the pods that quorate makes, on the port that they have, and takes the
// name of their cluster from the label that it is in.
func TestThePodMonitorFindsTheMembers(t *testing.T) {
	text, err := os.ReadFile(monitoring + "podmonitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var monitor struct {
		Spec struct {
			Selector            metav1.LabelSelector
			PodMetricsEndpoints []struct {
				Port        string
				Relabelings []struct {
					SourceLabels []string
					TargetLabel  string
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &monitor); err != nil {
		t.Fatal(err)
	}
	rendered, err := manifests.Render(clustertest.Orders(), reconcilertest.OrdersOptions())
	if err != nil {
		t.Fatal(err)
	}
	pod := rendered.StatefulSet.Spec.Template
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
		t.Errorf("%s does not match %v (%v)", selector, pod.Labels, err)
	}
	from := map[string]string{}
	for _, r := range monitor.Spec.PodMetricsEndpoints[0].Relabelings {
		from[r.TargetLabel] = strings.Join(r.SourceLabels, ";")
	}
	cluster := "__meta_kubernetes_pod_label_" + regexp.MustCompile(`\W`).ReplaceAllString(naming.LabelCluster, "_")
	if from["etcd_cluster"] != cluster || from["etcd_namespace"] != "__meta_kubernetes_namespace" {
		t.Errorf("relabelings %v, and the name is in %s", from, cluster)
	}
	if port := monitor.Spec.PodMetricsEndpoints[0].Port; !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1ac.ContainerPortApplyConfiguration) bool { return *p.Name == port }) {
		t.Errorf("no container has the port %s", port)
	}
}

// Every query of a dashboard is about metrics that exist, and no panel lies on another.
func TestDashboardsUseMetricsThatExist(t *testing.T) {
	known := knownMetrics(t)
	files, err := filepath.Glob(monitoring + "dashboards/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("%q, %v", files, err)
	}
	uids := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := filepath.Base(file)
		if d.UID == "" || uids[d.UID] || d.Title == "" || d.SchemaVersion < 36 || len(d.Panels) < 6 {
			t.Errorf("%s: uid %q, title %q, schema %d, %d panels", name, d.UID, d.Title, d.SchemaVersion, len(d.Panels))
		}
		uids[d.UID] = true
		places, ids := map[string]string{}, map[int]bool{}
		for _, p := range d.Panels {
			if ids[p.ID] || p.Title == "" {
				t.Errorf("%s: panel %d %q", name, p.ID, p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					place := fmt.Sprint(x, " ", y)
					if places[place] != "" || x >= 24 {
						t.Errorf("%s: %s lies on %s", name, p.Title, places[place])
					}
					places[place] = p.Title
				}
			}
			for _, target := range p.Targets {
				checkQuery(t, known, name+" "+p.Title, target.Expr)
			}
			if len(p.Targets) == 0 && p.Type != "row" && p.Type != "text" {
				t.Errorf("%s: %s shows nothing", name, p.Title)
			}
		}
		for _, a := range d.Annotations.List {
			if a.Expr != "" {
				checkQuery(t, known, name+" "+a.Name, a.Expr)
			}
		}
		for _, v := range d.Templating.List {
			if asked := regexp.MustCompile(`label_values\((.*), (\w+)\)`).FindStringSubmatch(string(v.Query)); asked != nil {
				checkQuery(t, known, name+" $"+v.Name, "sum by ("+asked[2]+") ("+strings.ReplaceAll(asked[1], `\"`, `"`)+")")
			} else if v.Type == "query" {
				t.Errorf("%s: $%s asks %s", name, v.Name, v.Query)
			}
		}
	}
}
