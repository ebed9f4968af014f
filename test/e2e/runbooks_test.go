package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/test/checkout"
	"github.com/quorate/quorate/test/lab"
)

// TestRunbooks runs every command of every page of docs/alerts.md as it stands, but for the
// namespace of quorate, against a quorate that is deployed as people deploy it, and three
// members; and wants each to print something. No command changes anything, which a
// test of the daemon's package holds, but for one that restarts quorate: here it may.
//
// TestAlerts runs some of them while what they are for is happening.
func TestRunbooks(t *testing.T) {
	takesLong(t)
	t.Parallel()
	w := newWorld(t, "runbooks")
	want := spec{version: "3.6.16", replicas: 3}
	files := map[string]string{file: w.text(want), "clusters/backups.yaml": fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdBackupSchedule
metadata: {name: minutely, namespace: %s}
spec:
  schedule: "* * * * *"
  verify: {restore: Always}
  retention: {keepLast: 3}
  backupTemplate: {source: {clusterName: orders}}
`, w.namespace)}
	w.commitFiles("Add orders and its backups", files)
	system := w.deploy("--status=branch")
	w.awaitMetrics(system, "a backup that was restored on trial", `quorate_backup_drill_last_success_timestamp_seconds\{.*\} [1-9]`)
	// What the pages of FileInvalid and Drift look for.
	files["clusters/broken.yaml"] = "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: broken}\nspec: {replica: 3}\n"
	w.commitFiles("Break a file", files)
	w.kubectl("scale", "statefulset/orders", "--replicas=5")
	w.awaitMetrics(system, "drift that was put back", `quorate_drift_last_timestamp_seconds\{.*kind="StatefulSet".*\} [1-9]`)
	w.awaitMetrics(system, "an invalid file", `quorate_git_file_errors [1-9]`)

	ran, operate := 0, w.operate(system)
	for _, section := range w.runbooks() {
		for _, command := range section.commands {
			var out string
			var err error
			// What it is about may have to come first: an Event, a new pod's log.
			if late := lab.Poll(t.Context(), holdLimit, func(context.Context) (bool, error) {
				out, err = operate(command)
				return err == nil && (out != "" || silentAtRest(command)), nil
			}); late != nil {
				t.Errorf("%s: %s: %v; it prints %q, %v", section.alert, command, late, out, err)
			}
			ran++
		}
	}
	t.Logf("%d commands", ran)
}

// silentAtRest reports whether a command is about what does not happen here: a commit
// that is held, an orphan, a branch that cannot be written, an error, an action or a
// drill just now, or a certificate, of which this quorate has none. That it looks for the right words is tested without a cluster.
func silentAtRest(command string) bool {
	return regexp.MustCompile(`commit held|not in Git any more|publishing failed|grep -i error|action_started|drill-of|serving_certificate|TLS certificate`).MatchString(command)
}

// runbook is the commands of one alert, a line each.
type runbook struct {
	alert    string
	commands []string
}

// runbooks reads docs/alerts.md.
func (w *world) runbooks() (all []runbook) {
	w.Helper()
	root, err := checkout.Root()
	w.must(err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "alerts.md"))
	w.must(err)
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		alert, body, _ := strings.Cut(section, "\n")
		r := runbook{alert: alert}
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(body, -1) {
			r.commands = append(r.commands, strings.Split(strings.TrimSpace(block[1]), "\n")...)
		}
		if len(r.commands) == 0 {
			w.Errorf("docs/alerts.md has no commands for %s", alert)
		}
		all = append(all, r)
	}
	return all
}

// runbook runs the commands of one alert, but for those about a daemon that runs in the
// cluster: the daemon of most tests does not, and TestRunbooks has them all.
func (w *world) runbook(alert string) {
	w.Helper()
	operate := w.operate(w.namespace)
	for _, r := range w.runbooks() {
		for _, command := range r.commands {
			if r.alert != alert || strings.Contains(command, lab.System) {
				continue
			}
			if out, err := operate(command); err != nil {
				w.Errorf("%s: %s: %v\n%s", alert, command, err, out)
			}
		}
	}
}

// runPage runs the commands of a page of docs as a person does, with quorate in the namespace
// system and the repository of this test; each must print something.
func (w *world) runPage(page, system string) {
	w.Helper()
	root, err := checkout.Root()
	w.must(err)
	p := w.readPage(filepath.Join(root, "docs", page), strings.NewReplacer("https://git.example.com/platform/etcd.git", w.git.URL()))
	operate, ran := w.operate(system), 0
	for _, blocks := range p.parts {
		for _, b := range blocks {
			for _, command := range b.commands {
				out, err := operate(command)
				if err != nil || strings.TrimSpace(out) == "" {
					w.Errorf("docs/%s: %s: %v; it prints %q", page, command, err, out)
				}
				ran++
			}
		}
	}
	if ran == 0 {
		w.Errorf("docs/%s shows no command", page)
	}
}

// operate returns what runs a command of a runbook as the person does who has got the
// alert, with quorate in the namespace system. Every part of a pipe must succeed; what
// grep does not find is an error unless it is silent at rest. quorate status may say
// with 2 that something is not Ready, for which it is asked.
func (w *world) operate(system string) func(command string) (printed string, err error) {
	w.Helper()
	names := strings.NewReplacer(lab.System, system, "quorate status ", "quorate status --daemon-namespace="+system+" ")
	env := append(w.operator(), "NAMESPACE="+w.namespace, "CLUSTER="+name, "POD="+name+"-0")
	return func(command string) (string, error) {
		line := names.Replace(command)
		if silentAtRest(command) {
			line = `grep() { command grep "$@" || test $? = 1; }; ` + line
		}
		cmd := exec.CommandContext(w.Context(), "bash", "-eu", "-o", "pipefail", "-c", line)
		var stdout, stderr bytes.Buffer
		cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
		if err := cmd.Run(); err != nil && (cmd.ProcessState.ExitCode() != 2 || !strings.HasPrefix(command, "quorate status ")) {
			return stdout.String(), fmt.Errorf("%w: %s", err, stderr.String())
		}
		return stdout.String(), nil
	}
}

// deploy runs quorate in the cluster, from deploy/, beside others that may run there, until
// the test ends. It returns its namespace.
func (w *world) deploy(args ...string) (system string) {
	w.Helper()
	return w.deployImage(shared.image, args...)
}

// deployImage is deploy with another image than that of this checkout.
func (w *world) deployImage(image string, args ...string) (system string) {
	w.Helper()
	system = w.namespace + "-system"
	w.must(w.cluster.ClaimNamespace(w.Context(), system))
	dir := w.TempDir()
	w.must(lab.Overlay{
		Namespace: system, Image: image, Repo: w.git.URL(), BackupURL: w.options.BackupURL, Credentials: w.options.Env, Args: args,
		Namespaces: w.namespaces(),
	}.Write(dir))
	if *namespaced {
		w.must(w.cluster.BindDeployed(w.Context(), w.namespace, system))
	}
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("quorate said last:\n%s", w.deployedLog(system))
		}
		if err := w.cluster.Delete(context.Background(), dir); err != nil {
			w.Error(err)
		}
	})
	w.must(w.cluster.Apply(w.Context(), dir))
	w.awaitDeployed(system)
	return system
}

// leaseHolder is which pod of a quorate in the cluster acts, "" for none.
func (w *world) leaseHolder(ctx context.Context, system string) (string, error) {
	lease, err := w.cluster.Client.CoordinationV1().Leases(system).Get(ctx, "quorate", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// awaitDeployed waits until all replicas of a quorate in the cluster are ready, and those of
// before are gone.
func (w *world) awaitDeployed(system string) {
	w.Helper()
	w.eventually("quorate to be ready", holdLimit, func(ctx context.Context) (bool, error) {
		d, err := w.cluster.Client.AppsV1().Deployments(system).Get(ctx, "quorate", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		s := d.Status
		return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == *d.Spec.Replicas && s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.Replicas, nil
	})
}

// deployedLog is the end of the log of a quorate in the cluster.
func (w *world) deployedLog(system string) string {
	pods, err := w.cluster.Client.CoreV1().Pods(system).List(context.Background(), metav1.ListOptions{LabelSelector: naming.LabelActing})
	if err != nil || len(pods.Items) == 0 {
		return fmt.Sprintf("%d pods, %v", len(pods.Items), err)
	}
	text, err := w.cluster.Client.CoreV1().Pods(system).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{TailLines: new(int64(40))}).DoRaw(context.Background())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// awaitMetrics waits until a line of the metrics of a quorate in the cluster matches.
func (w *world) awaitMetrics(system, what, pattern string) {
	w.Helper()
	line := regexp.MustCompile("(?m)^" + pattern)
	w.eventually(what, changeLimit, func(ctx context.Context) (bool, error) {
		text, err := w.cluster.Client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/" + system + "/services/quorate:http/proxy/metrics").DoRaw(ctx)
		return err == nil && line.Match(text), nil // no pod may be ready at the moment
	})
}
