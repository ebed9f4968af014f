package deploy

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what of the chart is made from deploy/ and from its values")

// chart is the directory of the chart.
const chart = "../../deploy/helm/quorate"

type object = map[string]any

// helmPath is where Helm is: QUORATE_HELM, or else a tool of this module, which it builds.
var helmPath = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("QUORATE_HELM"); path != "" {
		return path, nil
	}
	out, err := exec.Command("go", "tool", "-n", "helm").Output()
	return strings.TrimSpace(string(out)), err
})

// helm runs Helm, which keeps nothing.
func helm(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	path, err := helmPath()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %q: %w\n%s", args, err, problems.String())
	}
	return out.String(), nil
}

// template returns the objects of a release called quorate.
func template(t *testing.T, namespace, values string) []object {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := helm(t, "template", "quorate", chart, "--namespace="+namespace, "--values="+file)
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	for text := range strings.SplitSeq("\n"+out, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// objects are what kustomize has rendered.
func objects(t *testing.T, rendered []*resource.Resource) (all []object) {
	t.Helper()
	for _, r := range rendered {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var o object
		if err := yaml.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// at is what lies at a path of fields and indices, nil for nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

func key(o object) string {
	return fmt.Sprintf("%v %v/%v", o["kind"], at(o, "metadata", "namespace"), at(o, "metadata", "name"))
}

// meant are the objects by what they mean: without the labels by which Helm and people find them,
// and with the settings of the base in the arguments. The namespace is Helm's to make.
func meant(all []object) map[string]object {
	settings := object{}
	for _, o := range all {
		if name, _ := at(o, "metadata", "name").(string); o["kind"] == "ConfigMap" && strings.HasPrefix(name, "quorate-settings") {
			settings, _ = o["data"].(object)
		}
	}
	of := map[string]object{}
	for _, o := range all {
		if o["kind"] == "Namespace" || o["kind"] == "ConfigMap" && reflect.DeepEqual(o["data"], settings) {
			continue
		}
		if o["kind"] == "Deployment" {
			expand(o, settings)
		}
		if kind, _ := o["kind"].(string); strings.HasPrefix(kind, "ValidatingAdmissionPolicy") {
			// kustomize takes them for namespaced, and folds lines its own way; the API server minds neither.
			metadata, _ := o["metadata"].(object)
			delete(metadata, "namespace")
			o["spec"] = unfolded(o["spec"])
		}
		unlabel(o)
		labels, _ := at(o, "metadata", "labels").(object)
		delete(labels, "app.kubernetes.io/name")
		delete(labels, "app.kubernetes.io/part-of")
		if metadata, _ := o["metadata"].(object); len(labels) == 0 {
			delete(metadata, "labels")
		}
		of[key(o)] = o
	}
	return of
}

// unfolded is a value whose texts have one blank wherever they had blanks or ends of lines.
func unfolded(v any) any {
	switch v := v.(type) {
	case string:
		return strings.Join(strings.Fields(v), " ")
	case object:
		for name, each := range v {
			v[name] = unfolded(each)
		}
	case []any:
		for i, each := range v {
			v[i] = unfolded(each)
		}
	}
	return v
}

// expand puts the settings into the arguments, as Kubernetes does.
func expand(deployment, settings object) {
	container, _ := at(deployment, "spec", "template", "spec", "containers", 0).(object)
	args, _ := container["args"].([]any)
	for i, arg := range args {
		for name, value := range settings {
			arg = strings.ReplaceAll(arg.(string), "$("+name+")", value.(string))
		}
		args[i] = arg
	}
	if from, _ := container["envFrom"].([]any); len(from) == 1 {
		delete(container, "envFrom")
	}
}

// unlabel takes off the labels that Helm's conventions ask for, in selectors as well.
func unlabel(v any) {
	switch v := v.(type) {
	case object:
		for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "helm.sh/chart"} {
			delete(v, label)
		}
		if v["app.kubernetes.io/managed-by"] == "Helm" {
			delete(v, "app.kubernetes.io/managed-by")
		}
		for _, each := range v {
			unlabel(each)
		}
	case []any:
		for _, each := range v {
			unlabel(each)
		}
	}
}

// repo are the values of the chart that say what withRepo says.
const repo = "repo: https://git.example.com/etcd.git\nbackupUrl: s3://backups/x\n"

// The chart makes the objects that deploy/base makes, and with its values those that kustomize makes
// of what is added to it.
func TestTheChartMakesWhatDeployMakes(t *testing.T) {
	const (
		monitored = "monitoring: {serviceMonitor: true, podMonitor: true, prometheusRule: true, dashboards: true}\n"
		confined  = "rbac: {clusterWide: false, namespaces: [team-a, team-b]}\n"
	)
	for name, c := range map[string]struct {
		namespace, overlay, values string
		add                        []string
		objects                    int
	}{
		"the base":          {"quorate-system", withRepo, repo, []string{"base"}, 13},
		"another namespace": {"etcd", withRepo, repo, []string{"base"}, 13},
		"some namespaces":   {"quorate-system", withRepo, repo + confined, []string{"overlays/namespaces"}, 13},
		"monitoring":        {"etcd", withRepo, repo + monitored, []string{"base", "monitoring"}, 19},
		"secure metrics": {
			"quorate-system", withRepo + components("monitoring/secure"), repo + monitored + "metrics: {tlsSecret: quorate-tls}\n",
			[]string{"base", "monitoring"},
			19,
		},
		"shards":  {"quorate-system", withRepo, repo + "replicas: 3\nshards: 12\n", []string{"overlays/shards"}, 13},
		"network": {"quorate-system", withRepo, repo + "networkPolicy: {create: true}\n", []string{"base", "network/daemon"}, 14},
		"admission": {
			"etcd", withRepo + "transformers: [" + dir("admission/account") + "]\n", repo + "admission: {create: true}\n",
			[]string{"base", "admission"},
			24,
		},
		"production": {
			"quorate-system", withRepo, repo + monitored + "networkPolicy: {create: true}\nadmission: {create: true}\n",
			[]string{"overlays/production"},
			31,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overlay := c.overlay
			if c.namespace != "quorate-system" {
				overlay += "namespace: " + c.namespace + "\n"
			}
			same(t, meant(template(t, c.namespace, c.values)), meant(objects(t, render(t, overlay, c.add...))), c.objects)
		})
	}
}

// The policies of the namespaces with clusters are those of deploy/network/clusters.
func TestTheChartMakesThePoliciesOfClusters(t *testing.T) {
	helms := meant(template(t, "quorate-system", repo+"networkPolicy: {clusterNamespaces: [shop]}\n"))
	maps.DeleteFunc(helms, func(key string, _ object) bool { return !strings.Contains(key, " shop/") })
	same(t, helms, meant(objects(t, render(t, "namespace: shop\n", "network/clusters"))), 3)
}

// same compares objects, of which there are so many.
func same(t *testing.T, helms, kustomizes map[string]object, n int) {
	t.Helper()
	for key, want := range kustomizes {
		for _, difference := range differences(key, helms[key], want) {
			t.Error(difference)
		}
	}
	for key := range helms {
		if kustomizes[key] == nil {
			t.Errorf("kustomize has no %s", key)
		}
	}
	if len(helms) != n {
		t.Errorf("%d objects, want %d: %q", len(helms), n, slices.Sorted(maps.Keys(helms)))
	}
}

// differences tells where Helm's value is not kustomize's.
func differences(path string, helms, kustomizes any) (all []string) {
	one, isMap := helms.(object)
	other, bothMaps := kustomizes.(object)
	list, isList := helms.([]any)
	otherList, bothLists := kustomizes.([]any)
	switch {
	case reflect.DeepEqual(helms, kustomizes):
	case isMap && bothMaps:
		names := maps.Clone(one)
		maps.Copy(names, other)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			all = append(all, differences(path+"."+name, one[name], other[name])...)
		}
	case isList && bothLists && len(list) == len(otherList):
		for i := range list {
			all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), list[i], otherList[i])...)
		}
	default:
		all = []string{fmt.Sprintf("%s: helm %v, kustomize %v", path, helms, kustomizes)}
	}
	return all
}

// copied are the files of deploy/ that the chart has a copy of: a chart cannot read what lies outside.
func copied(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{
		"base/clusterrole.yaml", "base/role.yaml", "monitoring/podmonitor.yaml", "monitoring/prometheusrule.yaml", "monitoring/dashboards/*.json",
		"network/daemon/networkpolicy.yaml", "network/clusters/members.yaml", "network/clusters/jobs.yaml",
		"admission/[^k]*.yaml", // all but kustomization.yaml
	} {
		found, err := filepath.Glob("../../deploy/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	return files
}

func TestTheChartHasCopiesOfDeploy(t *testing.T) {
	known := map[string]bool{}
	for _, file := range copied(t) {
		name := filepath.Join(chart, "files", strings.TrimPrefix(file, "../../deploy/"))
		known[name] = true
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, string(text))
	}
	err := filepath.WalkDir(filepath.Join(chart, "files"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !known[path] {
			t.Errorf("%s is no copy of anything in deploy/: remove it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// golden compares a file with what it should be, or writes it.
func golden(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is not up to date: run go test . -update in test/deploy (%v)", file, err)
	}
}

// value is one of the chart's values.
type value struct {
	path, comment string
	node          *yamlv3.Node
	// schema of the value, of which it must have one.
	schema object
}

// values are those of values.yaml in their order; what has a comment and fields is described by it as one.
func values(t *testing.T) (all []value, schema object) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	var walk func(prefix string, node *yamlv3.Node, schema object)
	walk = func(prefix string, node *yamlv3.Node, schema object) {
		properties, _ := schema["properties"].(object)
		if schema["additionalProperties"] != false {
			t.Errorf("values.schema.json takes any field at %q", prefix)
		}
		named := map[string]bool{"global": prefix == ""} // Helm's own
		for i := 0; i+1 < len(node.Content); i += 2 {
			name, content := node.Content[i], node.Content[i+1]
			named[name.Value] = true
			v := value{path: prefix + name.Value, comment: comment(name.HeadComment), node: content}
			v.schema, _ = properties[name.Value].(object)
			if v.schema == nil {
				t.Errorf("values.schema.json does not know %s", v.path)
				continue
			}
			if _, has := v.schema["properties"]; has {
				walk(v.path+".", content, v.schema)
				continue
			}
			if all = append(all, v); v.comment == "" {
				t.Errorf("values.yaml has no comment on %s", v.path)
			}
		}
		for name := range properties {
			if !named[name] {
				t.Errorf("values.yaml has no %s, which values.schema.json knows", prefix+name)
			}
		}
	}
	walk("", document.Content[0], schema)
	return all, schema
}

// comment is the text of the last paragraph of a comment.
func comment(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	return strings.TrimSpace(strings.NewReplacer("\n# ", " ", "# ", "").Replace("\n" + paragraphs[len(paragraphs)-1]))
}

// README.md has each value with its default and what it means, and the schema has that as well, for
// editors.
func TestTheValuesAreDescribed(t *testing.T) {
	all, schema := values(t)
	var table strings.Builder
	table.WriteString("## Values\n\n| value | default | |\n|---|---|---|\n")
	for _, v := range all {
		v.schema["description"] = v.comment
		text, err := yaml.Marshal(decoded(t, v.node))
		if err == nil {
			text, err = yaml.YAMLToJSON(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.path, text, strings.NewReplacer("|", `\|`, "{{", "`{{", "}}", "}}`").Replace(v.comment))
	}
	file := filepath.Join(chart, "README.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(page), "## Values\n")
	if !found {
		t.Fatal("README.md has no section Values")
	}
	golden(t, file, before+table.String())
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join(chart, "values.schema.json"), string(text)+"\n")
}

func decoded(t *testing.T, node *yamlv3.Node) (v any) {
	t.Helper()
	if err := node.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheChartPassesHelmLint(t *testing.T) {
	for _, args := range [][]string{{}, {"--set", "repo=x,replicas=1,admission.create=true,networkPolicy.create=true,metrics.tlsSecret=x,monitoring.dashboards=true"}} {
		if out, err := helm(t, append([]string{"lint", "--strict", chart}, args...)...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// What is wrong with a value is told in words, and nothing is rendered.
func TestTheChartRefusesBadValues(t *testing.T) {
	for set, want := range map[string]string{
		"repo=":                                 "repo is empty, which names the Git repository to follow",
		"replicas=two":                          "at '/replicas': got string, want integer",
		"replicas=0":                            "at '/replicas': minimum: got 0, want 1",
		"shards=0":                              "at '/shards': minimum: got 0, want 1",
		"shards=129":                            "at '/shards': maximum: got 129, want 128",
		"repos=x":                               "additional properties 'repos' not allowed",
		"image.digest=sha256:12":                "at '/image/digest': 'sha256:12' does not match",
		"image.tag=latest":                      "image.tag is latest, which does not tell what runs",
		"interval=30":                           "at '/interval': got number, want string",
		"backupUrl=backups":                     "at '/backupUrl': 'backups' does not match",
		"extraArgs={status=branch}":             "at '/extraArgs/0': 'status=branch' does not match",
		"env[0].name=POD_NAME":                  "env has POD_NAME, which the chart sets",
		`podLabels.app\.kubernetes\.io/name=x`:  "the label app.kubernetes.io/name cannot be changed",
		"rbac.clusterWide=false":                "rbac.namespaces is empty, so that quorate could work nowhere",
		"rbac.namespaces={shop}":                "set rbac.clusterWide=false to confine quorate to them",
		"rbac.namespaces={Shop}":                "at '/rbac/namespaces/0': 'Shop' does not match",
		"serviceAccount.create=false":           "name the account that quorate runs as",
		"fullnameOverride=9x":                   "the objects would be called 9x",
		"monitoring.serviceMonitor=yes":         "at '/monitoring/serviceMonitor': got string, want boolean",
		"networkPolicy.clusterNamespaces={a,a}": "items at 0 and 1 are equal",
		"admission=true":                        "at '/admission': got boolean, want object",
	} {
		if out, err := helm(t, "template", "quorate", chart, "--set", "repo=x", "--set", set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%s", set, err, out)
		}
	}
}

// What values name is where it belongs.
func TestTheChartUsesItsValues(t *testing.T) {
	const values = `
image: {repository: registry.example.com/quorate, digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123", pullPolicy: Always, pullSecrets: [{name: registry}]}
repo: https://git.example.com/etcd.git
branch: stable
path: clusters
interval: 1m
instance: blue
git: {secret: git, signersSecret: signers}
extraArgs: [--status=branch]
env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
envFrom: [{secretRef: {name: store}}]
extraVolumes: [{name: policy, configMap: {name: policy}}]
extraVolumeMounts: [{name: policy, mountPath: /policy}]
replicas: 3
podDisruptionBudget: {create: false}
strategy: {type: Recreate}
resources: {limits: {memory: 2Gi}}
nodeSelector: {pool: system}
tolerations: [{key: dedicated, operator: Exists}]
affinity: {podAntiAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
priorityClassName: system-cluster-critical
podAnnotations: {note: x}
podLabels: {team: platform}
commonLabels: {cost: "7"}
serviceAccount: {name: keeper, annotations: {eks.amazonaws.com/role-arn: "arn:x"}}
rbac: {clusterWide: false, namespaces: [shop], clusterScoped: true}
networkPolicy: {create: true, extraEgress: [{ports: [{port: 9000}]}]}
metrics: {tlsSecret: tls}
monitoring: {serviceMonitor: true, interval: 10s, labels: {release: prometheus}}
`
	all := map[string]object{}
	for _, o := range template(t, "etcd", values) {
		all[key(o)] = o
		if at(o, "metadata", "labels", "cost") != "7" {
			t.Errorf("%s has the labels %v", key(o), at(o, "metadata", "labels"))
		}
	}
	d := all["Deployment etcd/quorate"]
	pod, container := at(d, "spec", "template", "spec"), at(d, "spec", "template", "spec", "containers", 0)
	args := fmt.Sprint(at(container, "args"))
	for _, arg := range []string{
		"--repo=https://git.example.com/etcd.git", "--branch=stable", "--path=clusters", "--interval=1m", "--instance=blue", "--git-secret=git",
		"--git-signers-secret=signers", "--namespaces=shop", "--metrics-auth=token", "--status=branch]",
	} {
		if !strings.Contains(args, arg) {
			t.Errorf("%s is not in %s", arg, args)
		}
	}
	for what, c := range map[string][2]any{
		"image":          {at(container, "image"), "registry.example.com/quorate@sha256:0123456789012345678901234567890123456789012345678901234567890123"},
		"policy of it":   {at(container, "imagePullPolicy"), "Always"},
		"pull secret":    {at(pod, "imagePullSecrets", 0, "name"), "registry"},
		"variable":       {at(container, "env", 3, "name"), "HTTPS_PROXY"},
		"memory":         {at(container, "env", 2, "value"), "1761MiB"},
		"variables":      {at(container, "envFrom", 0, "secretRef", "name"), "store"},
		"volume":         {at(pod, "volumes", 2, "configMap", "name"), "policy"},
		"mount":          {at(container, "volumeMounts", 2, "mountPath"), "/policy"},
		"replicas":       {at(d, "spec", "replicas"), float64(3)},
		"budget":         {all["PodDisruptionBudget etcd/quorate"] == nil, true},
		"strategy":       {at(d, "spec", "strategy", "type"), "Recreate"},
		"nodes":          {at(pod, "nodeSelector", "pool"), "system"},
		"toleration":     {at(pod, "tolerations", 0, "key"), "dedicated"},
		"affinity":       {at(pod, "affinity", "podAntiAffinity") != nil, true},
		"spread":         {at(pod, "topologySpreadConstraints", 0, "topologyKey"), "zone"},
		"priority":       {at(pod, "priorityClassName"), "system-cluster-critical"},
		"annotation":     {at(d, "spec", "template", "metadata", "annotations", "note"), "x"},
		"label":          {at(d, "spec", "template", "metadata", "labels", "team"), "platform"},
		"account":        {at(pod, "serviceAccountName"), "keeper"},
		"identity":       {at(all["ServiceAccount etcd/keeper"], "metadata", "annotations", "eks.amazonaws.com/role-arn"), "arn:x"},
		"rights":         {at(all["RoleBinding shop/quorate-clusters"], "subjects", 0, "name"), "keeper"},
		"cluster-scoped": {at(all["ClusterRoleBinding <nil>/quorate-cluster-scoped"], "subjects", 0, "namespace"), "etcd"},
		"cluster-wide":   {all["ClusterRoleBinding <nil>/quorate"] == nil, true},
		"lease":          {at(all["Role etcd/quorate"], "rules", 1, "resourceNames", 0), "quorate-blue"},
		"metrics":        {at(all["NetworkPolicy etcd/quorate"], "spec", "ingress", 0, "ports", 0, "port"), float64(8443)},
		"egress":         {at(all["NetworkPolicy etcd/quorate"], "spec", "egress", 3, "ports", 0, "port"), float64(9000)},
		"interval":       {at(all["ServiceMonitor etcd/quorate"], "spec", "endpoints", 0, "interval"), "10s"},
		"release":        {at(all["ServiceMonitor etcd/quorate"], "metadata", "labels", "release"), "prometheus"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %v, want %v", what, c[0], c[1])
		}
	}
}

// Two releases have no object in common but the admission policies, of which Helm refuses the second.
func TestTwoReleasesHaveTheirOwnObjects(t *testing.T) {
	out, err := helm(t, "template", "blue", chart, "--namespace=quorate-system", "--set", "repo=x")
	if err != nil {
		t.Fatal(err)
	}
	if other := regexp.MustCompile(`(?m)^  name: (quorate.*)$`).FindStringSubmatch(out); other != nil {
		t.Errorf("an object of the release blue is called %s", other[1])
	}
}

// A release may be called what no Service may be.
func TestAReleaseThatNoServiceCanBeCalledAfterIsRefused(t *testing.T) {
	for _, release := range []string{"team.etcd", "9-lives"} {
		out, err := helm(t, "template", release, chart, "--set", "repo=x")
		if err == nil || !strings.Contains(err.Error(), "give another one in fullnameOverride") {
			t.Errorf("%s: %v\n%s", release, err, out)
		}
		if _, err = helm(t, "template", release, chart, "--set", "repo=x,fullnameOverride=lives"); err != nil {
			t.Error(err)
		}
	}
}

// The notes tell what to do next.
func TestTheNotesTellTheNextStep(t *testing.T) {
	out, err := helm(t, "install", "quorate", chart, "--namespace=etcd", "--set", "repo=https://git.example.com/etcd.git", "--dry-run=client")
	if err != nil {
		t.Fatal(err)
	}
	_, notes, _ := strings.Cut(out, "NOTES:")
	for _, want := range []string{
		"kubectl -n etcd rollout status deployment/quorate", "commit the file of a cluster to https://git.example.com/etcd.git",
		"quorate status --daemon-namespace=etcd", "There is no backupUrl", "leaves its etcd clusters as they are",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in the notes: %s", want, notes)
		}
	}
}
