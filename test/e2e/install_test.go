package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/checkout"
	"github.com/quorate/quorate/test/lab"
)

// newInstallation is a repository with a first commit, for a quorate in the namespace system, and a
// machine with kubectl, helm, quorate and what people copy from. Neither namespace exists.
func newInstallation(t *testing.T, namespace, system string) (w *world, run func(command string) string) {
	t.Helper()
	if shared.cluster.Sandbox == nil && shared.image != lab.Image {
		t.Skipf("the nodes of this cluster must have %s, which the base and the chart run: load it, and set QUORATE_IMAGE to that", lab.Image)
	}
	w = &world{T: t, cluster: shared.cluster, namespace: namespace}
	for _, each := range []string{namespace, system} {
		w.must(w.cluster.ClaimNamespace(t.Context(), each))
		t.Cleanup(func() {
			if err := w.cluster.DeleteNamespace(context.Background(), each); err != nil {
				t.Error(err)
			}
		})
	}
	var err error
	w.git, err = lab.StartGitServer(t.Context(), w.cluster.Host)
	w.must(err)
	t.Cleanup(w.git.Close)
	w.commitFiles("Begin", map[string]string{"README.md": "The etcd clusters of this platform.\n"})
	if shared.cluster.Sandbox != nil {
		w.must(shared.cluster.Sandbox.LoadImage(t.Context(), lab.Image, "65532:65532", shared.binary, filepath.Join(shared.dir, "quorate-guard")))
	}
	p := &page{dir: t.TempDir(), env: w.operator()}
	root, err := checkout.Root()
	w.must(err)
	helm, err := lab.HelmPath(t.Context())
	w.must(err)
	tools := t.TempDir()
	w.must(os.Symlink(helm, filepath.Join(tools, "helm")))
	for _, dir := range []string{"deploy", "examples"} {
		w.must(os.Symlink(filepath.Join(root, dir), filepath.Join(p.dir, dir)))
	}
	path, _ := strings.CutPrefix(p.env[len(p.env)-1], "PATH=")
	p.env = append(p.env, "PATH="+tools+":"+path, "HELM_CACHE_HOME="+tools, "HELM_CONFIG_HOME="+tools, "HELM_DATA_HOME="+tools)
	return w, func(command string) string {
		t.Helper()
		// Not the context of the test: some run at its end.
		cmd := exec.Command("timeout", fmt.Sprint(createLimit.Seconds()), "bash", "-c", command)
		cmd.Dir, cmd.Env = p.dir, p.env
		text, err := cmd.CombinedOutput()
		if t.Logf("$ %s\n%s", command, text); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return string(text)
	}
}

// ours labels namespaces that commands have made as those of a test.
func (w *world) ours(namespaces ...string) {
	w.Helper()
	for _, namespace := range namespaces {
		_, err := w.cluster.Client.CoreV1().Namespaces().Patch(w.Context(), namespace, "application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+lab.OwnLabel+`":"true"}}}`), metav1.PatchOptions{})
		w.must(err)
	}
}

// awaitReady waits until quorate says of the cluster that it is ready.
func (w *world) awaitReady(system string) {
	w.Helper()
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("quorate said last:\n%s", w.deployedLog(system))
		}
	})
	w.eventually("the cluster to be ready", createLimit, func(ctx context.Context) (bool, error) {
		set, err := w.cluster.Client.AppsV1().StatefulSets(w.namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && set.Labels[naming.LabelPhase] == string(schema.PhaseReady), nil // it is made in a moment
	})
}

// expectToGoOn wants the members to be those that they were, and to answer, without a quorate.
func (w *world) expectToGoOn(system string, before map[string]string, version string) {
	w.Helper()
	w.eventually("quorate to be gone", changeLimit, func(ctx context.Context) (bool, error) {
		pods, err := w.cluster.Client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=daemon"})
		return err == nil && len(pods.Items) == 0, err
	})
	roles, err := w.cluster.Client.RbacV1().ClusterRoles().List(w.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=quorate"})
	w.must(err)
	if len(roles.Items) > 0 {
		w.Errorf("the ClusterRole %s is left", roles.Items[0].Name)
	}
	w.expectVersion(len(before), version)
	if after := w.uids(); !maps.Equal(before, after) || len(before) == 0 {
		w.Errorf("the pods were %v and are %v", before, after)
	}
}

// The commands of the README install quorate, which then makes the cluster of the commit. What is
// installed is removed by one command, and the cluster goes on.
func TestTheREADMEInstallsQuorate(t *testing.T) {
	const system = "quorate-system"
	w, run := newInstallation(t, "demo", system)
	readme := w.guide("README.md")
	w.removeAtEnd(system, run)
	install := readme.commands("Install", 0)
	if len(install) != 3 {
		t.Errorf("the README has %d commands", len(install))
	}
	for _, command := range install {
		run(command)
	}
	w.ours(w.namespace, system)
	w.awaitReady(system)
	w.expectVersion(3, "3.5.35")
	if said := run("quorate status demo/orders"); !strings.Contains(said, "Ready") {
		t.Errorf("quorate status says: %s", said)
	}
	before := w.uids()
	for _, command := range readme.commands("Install", 1) {
		run(command)
	}
	w.expectToGoOn(system, before, "3.5.35")
}

// Each other way to install quorate, beside one another, on an API server with admission: by values
// of the chart and by the overlays of deploy/, as copies with another namespace. It makes a
// cluster and upgrades it, and once it is removed the cluster goes on.
func TestEveryWayToInstallQuorate(t *testing.T) {
	takesLong(t)
	const elsewhere = "etcd-operations"
	for what, c := range map[string]struct {
		// system is the namespace of quorate. way writes what it needs, and returns the commands that
		// install and remove it. evict takes the one that acts away.
		system string
		way    func(w *world, run func(string) string) (install, remove string)
		evict  bool
	}{
		"the base":                     {"quorate-system", copied("base", ""), false},
		"production elsewhere":         {elsewhere, copied("overlays/production", elsewhere), true},
		"some namespaces elsewhere":    {elsewhere, copied("overlays/namespaces", elsewhere), false},
		"the chart with all":           {elsewhere, chartWithAll, true},
		"the chart in some namespaces": {elsewhere, chartConfined, false},
	} {
		t.Run(what, func(t *testing.T) {
			w, run := newInstallation(t, "e2e-install", c.system)
			w.must(w.cluster.CreateNamespace(t.Context(), w.namespace))
			install, remove := c.way(w, run)
			t.Cleanup(func() { run(remove) })
			said := run(install)
			if next := "quorate status --daemon-namespace=" + c.system; strings.HasPrefix(install, "helm ") && !strings.Contains(said, next) {
				t.Errorf("the notes do not say %q", next)
			}
			w.ours(c.system)
			run("kubectl --namespace " + c.system + " rollout status deployment/quorate --timeout=3m")
			want := spec{version: "3.6.12", replicas: 1}
			w.commit("Add "+name, want)
			w.awaitReady(c.system)
			if c.evict {
				w.takesOver(c.system)
			}
			want.version = "3.6.16"
			w.commit("Upgrade", want)
			w.eventually("the upgrade", rollLimit, func(context.Context) (bool, error) {
				ok, _ := lab.AtVersion(w.members(), 1, want.version)
				return ok, nil
			})
			w.awaitReady(c.system)
			before := w.uids()
			run(remove)
			w.expectToGoOn(c.system, before, want.version)
		})
	}
}

// takesOver evicts the quorate that acts, which the budget grants because the one that waits is ready.
// Another one has the lease then: that, or the one in its place if it happens to ask first.
func (w *world) takesOver(system string) {
	w.Helper()
	first, err := w.leaseHolder(w.Context(), system)
	w.must(err)
	pods, err := w.cluster.Client.CoreV1().Pods(system).List(w.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=daemon"})
	w.must(err)
	names := map[string]bool{}
	for i := range pods.Items {
		names[pods.Items[i].Name] = lab.Ready(&pods.Items[i])
	}
	if !names[first] || len(names) != 2 || slices.Contains(slices.Collect(maps.Values(names)), false) {
		w.Fatalf("%s acts, and these are ready: %v", first, names)
	}
	w.eventually("the quorate that acts to be evicted", holdLimit, func(ctx context.Context) (bool, error) {
		err := w.cluster.Client.PolicyV1().Evictions(system).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: first, Namespace: system}})
		if apierrors.IsTooManyRequests(err) {
			return false, nil // the budget is not counted yet
		}
		return err == nil, err
	})
	second := ""
	w.eventually("the other one to take over", holdLimit, func(ctx context.Context) (_ bool, err error) {
		second, err = w.leaseHolder(ctx, system)
		return second != first && second != "", err
	})
	w.Logf("%s gives the lease to %s; these were there: %v", first, second, names)
}

// copied is the way of a person who copies an overlay, and writes the values of the platform into it.
func copied(dir, namespace string) func(*world, func(string) string) (install, remove string) {
	return func(w *world, run func(string) string) (install, remove string) {
		w.Helper()
		root, err := checkout.Root()
		w.must(err)
		at, err := filepath.EvalSymlinks(w.TempDir())
		w.must(err)
		to := filepath.Join(at, "deploy")
		w.must(os.CopyFS(to, os.DirFS(filepath.Join(root, "deploy"))))
		w.must(os.RemoveAll(filepath.Join(to, "image")))
		if dir == "overlays/production" {
			w.monitors(run)
		}
		replacer := strings.NewReplacer(
			"REPO=https://git.example.com/platform/etcd.git", "REPO="+w.git.URL(),
			"--namespaces=team-a,team-b", "--namespaces="+w.namespace+",e2e-install-b", "namespace: team-a", "namespace: "+w.namespace, "namespace: team-b", "namespace: e2e-install-b",
		)
		for _, file := range []string{"overlays/production/kustomization.yaml", "overlays/namespaces/kustomization.yaml", "overlays/namespaces/rolebindings.yaml"} {
			w.rewrite(filepath.Join(to, file), replacer)
		}
		if namespace != "" {
			there := strings.NewReplacer("\nnamespace: quorate-system", "\nnamespace: "+namespace)
			w.rewrite(filepath.Join(to, "overlays/production/kustomization.yaml"), there)
			w.rewrite(filepath.Join(to, "overlays/namespaces/quorate/kustomization.yaml"), there)
		}
		if dir == "overlays/namespaces" {
			w.must(w.cluster.CreateNamespace(w.Context(), "e2e-install-b"))
			w.Cleanup(func() { w.must(w.cluster.DeleteNamespace(context.Background(), "e2e-install-b")) })
		}
		// The repository of a test is reached by http.
		top := filepath.Join(at, "sandbox")
		w.must(os.Mkdir(top, 0o700))
		text := "resources: [../deploy/" + dir + "]\n" +
			"configMapGenerator: [{name: quorate-settings, namespace: " + orDefault(namespace) + ", behavior: merge, literals: [REPO=" + w.git.URL() + "]}]\n" +
			"patches:\n- target: {kind: Deployment}\n  patch: |-\n" +
			"    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --insecure-git}\n" +
			"    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --interval=1s}\n"
		w.must(os.WriteFile(filepath.Join(top, "kustomization.yaml"), []byte(text), 0o600))
		return "kubectl apply --server-side -k " + top, "kubectl delete --ignore-not-found -k " + top
	}
}

func orDefault(namespace string) string {
	if namespace == "" {
		return lab.System
	}
	return namespace
}

func (w *world) rewrite(file string, replacer *strings.Replacer) {
	w.Helper()
	text, err := os.ReadFile(file)
	w.must(err)
	w.must(os.WriteFile(file, []byte(replacer.Replace(string(text))), 0o600))
}

// chartWithAll has everything that values add.
func chartWithAll(w *world, run func(string) string) (install, remove string) {
	w.monitors(run)
	return w.chart(`
monitoring: {serviceMonitor: true, podMonitor: true, prometheusRule: true, dashboards: true}
networkPolicy: {create: true, clusterNamespaces: [` + w.namespace + `]}
admission: {create: true}
`)
}

// chartConfined has rights in the namespace of the cluster alone.
func chartConfined(w *world, _ func(string) string) (install, remove string) {
	return w.chart("rbac: {clusterWide: false, namespaces: [" + w.namespace + "]}\n")
}

// chart installs the chart with values.
func (w *world) chart(values string) (install, remove string) {
	w.Helper()
	file := filepath.Join(w.TempDir(), "values.yaml")
	// The repository of a test is reached by http.
	text := values + "repo: " + w.git.URL() + "\nextraArgs: [--insecure-git, --interval=1s]\n"
	w.must(os.WriteFile(file, []byte(text), 0o600))
	return "helm install quorate deploy/helm/quorate --namespace etcd-operations --create-namespace --wait --timeout=4m --values=" + file,
		"helm uninstall quorate --namespace etcd-operations --ignore-not-found --wait"
}

// prometheusOperator is the release whose CustomResourceDefinitions the monitors are made by.
const prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

// monitors makes the kinds of deploy/monitoring known, as the Prometheus operator has them.
func (w *world) monitors(run func(string) string) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "go", "mod", "download", "-json", prometheusOperator)
	cmd.Dir = w.TempDir()
	out, err := cmd.Output()
	w.must(err)
	var module struct{ Dir string }
	w.must(json.Unmarshal(out, &module))
	var files []string
	for _, kind := range []string{"podmonitors", "prometheusrules", "servicemonitors"} {
		files = append(files, "-f "+filepath.Join(module.Dir, "example", "prometheus-operator-crd", fmt.Sprintf("monitoring.coreos.com_%s.yaml", kind)))
	}
	run("kubectl apply --server-side " + strings.Join(files, " "))
	run("kubectl wait --for=condition=Established --timeout=1m " + strings.Join(files, " "))
	w.Cleanup(func() { run("kubectl delete " + strings.Join(files, " ")) })
}
