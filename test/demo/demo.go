package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quorate/quorate/test/checkout"
	"github.com/quorate/quorate/test/lab"
	"github.com/quorate/quorate/test/picture"
)

// What the demo makes in the cluster.
const (
	namespace   = "demo"
	clusterName = "orders"
	clusterFile = "clusters/orders.yaml"
	members     = 3
)

// versions are those that the cluster goes through; the first is that of examples/quickstart.
func versions() []string { return []string{"3.5.35", "3.6.16"} }

// needed are the programs of the sandbox that the demo needs.
func needed() []string {
	programs := []string{"versitygw", "kustomize"}
	for _, version := range versions() {
		programs = append(programs, "etcd-v"+version)
	}
	return programs
}

// How long each part may take. All of them are several times what they take on
// two busy cores; none is longer than limit.
const (
	limit        = 10 * time.Minute
	deployLimit  = 2 * time.Minute
	createLimit  = 3 * time.Minute
	upgradeLimit = 3 * time.Minute
	cleanUpLimit = 4 * time.Minute
)

// demo is one run.
type demo struct {
	*lab.Progress
	keep bool

	root    string // of the checkout
	dir     string // logs and generated files of this run
	cluster *lab.Cluster
	git     *lab.GitServer
	store   *lab.S3Server
	image   string
	log     *lab.Log
	writer  *lab.Writer
	// cleanUps undo what was done, the last one first.
	cleanUps []cleanUp
	laps     []lap
	// pictureFile is where a picture of the last upgrade is to be, "" for none, and drawn what it shows.
	pictureFile string
	drawn       picture.Upgrade
}

// lap is one upgrade, as its clients saw it.
type lap struct {
	from, to string
	took     time.Duration
	seen     lab.Report
}

type cleanUp struct {
	what string
	do   func(context.Context) error
	// kept says that --keep leaves it out.
	kept bool
}

func newDemo(progress *lab.Progress, keep bool, pictureFile string) *demo {
	return &demo{Progress: progress, keep: keep, pictureFile: pictureFile}
}

// run is the demo. What it made is removed however it ends.
func (d *demo) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.cleanUp(err != nil)) }()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	// The sandbox may have been built in prepare, which takes longer than the
	// demo itself.
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the demo took longer than %s", limit))
	defer cancel()
	for _, step := range []func(context.Context) error{
		d.startServers, d.deploy, d.create, d.startLoad, d.upgradeAll, d.showStatus, d.judge, d.draw,
	} {
		if err := step(ctx); err != nil {
			return d.explain(err)
		}
	}
	d.Head("%s in %s", d.Good("All well"), d.Elapsed().Round(time.Second))
	return nil
}

// explain adds where to find more.
func (d *demo) explain(err error) error {
	if d.log == nil {
		return err
	}
	return fmt.Errorf("%w\n  see %s: quorate.log is what quorate logged, cluster.txt what Kubernetes shows", err, d.dir)
}

// prepare finds the checkout and the cluster, and gives the nodes quorate's
// image.
func (d *demo) prepare(ctx context.Context) (err error) {
	if d.root, err = checkout.Root(); err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "quorate-demo-"); err != nil {
		return fmt.Errorf("directory for logs: %w", err)
	}
	if err := d.connect(ctx); err != nil {
		return err
	}
	return d.Do("building quorate and giving its image to the nodes", func() error {
		d.image, err = d.cluster.ProvideImage(ctx)
		return err
	})
}

// connect brings the sandbox up, unless KUBECONFIG names another cluster.
func (d *demo) connect(ctx context.Context) (err error) {
	if sandbox := lab.FindSandbox(); sandbox != nil && sandbox.Wanted(ctx) {
		if err := sandbox.Up(ctx, os.Stdout, needed()...); err != nil {
			return err
		}
	}
	if d.cluster, err = lab.Connect(ctx); err != nil {
		return err
	}
	where := "the sandbox"
	if d.cluster.Sandbox == nil {
		where = "the cluster of KUBECONFIG=" + d.cluster.Kubeconfig + ", not the sandbox"
	}
	d.Say("Kubernetes %s: %s; this machine is %s there", d.cluster.Version, where, d.cluster.Host)
	return nil
}

// startServers starts a Git server with the example in it, and an S3 server.
func (d *demo) startServers(ctx context.Context) (err error) {
	d.Head("Git, an object store, and quorate")
	if d.git, err = lab.StartGitServer(ctx, d.cluster.Host); err != nil {
		return err
	}
	d.atEnd("Git server", false, func(context.Context) error { d.git.Close(); return nil })
	files, err := lab.ReadTree(filepath.Join(d.root, "examples", "quickstart"))
	if err != nil {
		return err
	}
	if _, err := d.commit(ctx, "Add the cluster orders", files); err != nil {
		return err
	}
	if d.store, err = d.cluster.StartS3(ctx); err != nil {
		return err
	}
	d.atEnd("S3 server", false, func(context.Context) error { d.store.Close(); return nil })
	d.Say("S3 server at %s, bucket %s", d.store.Endpoint(), lab.Bucket)
	return d.store.UseCredentials()
}

// commit commits and says so.
func (d *demo) commit(ctx context.Context, message string, files map[string]string) (string, error) {
	hash, err := d.git.Commit(ctx, message, files)
	if err != nil {
		return "", err
	}
	d.Say("%s %s %s", d.Bold("git commit"), hash[:7], message)
	return hash, nil
}

// create waits until the cluster that the repository describes is there.
func (d *demo) create(ctx context.Context) error {
	d.Head("A cluster appears, because its file is in Git")
	if err := d.awaitVersion(ctx, versions()[0], 0, createLimit); err != nil {
		return err
	}
	return d.Wait(ctx, "quorate to be ready", deployLimit, d.deployed)
}

// startLoad starts a client that writes and reads until the end.
func (d *demo) startLoad(ctx context.Context) (err error) {
	d.Head("A client starts to write and read through the Service %s-client", clusterName)
	if d.writer, err = d.cluster.Write(ctx, namespace, clusterName, lab.WriterOptions{Prefix: "demo/", Limit: limit}); err != nil {
		return err
	}
	d.atEnd("client", false, func(context.Context) error { d.writer.Close(); return nil })
	return d.Wait(ctx, "the first 300 writes", time.Minute, func(context.Context) (bool, string, error) {
		r := d.writer.Report()
		return r.Writes.OK >= 300, fmt.Sprintf("%d writes", r.Writes.OK), nil
	})
}

// upgradeAll commits one version after the other.
func (d *demo) upgradeAll(ctx context.Context) error {
	for i, to := range versions()[1:] {
		if err := d.upgrade(ctx, versions()[i], to); err != nil {
			return fmt.Errorf("upgrade %s → %s: %w", versions()[i], to, err)
		}
	}
	return nil
}

func (d *demo) upgrade(ctx context.Context, from, to string) error {
	d.Head("A commit changes the version: %s → %s", from, to)
	d.writer.Lap()
	outings, stop := d.watchMembers(ctx)
	defer stop()
	mark, begin := d.log.Mark(), time.Now()
	hash, err := d.git.Replace(ctx, "Upgrade orders to "+to, clusterFile, from, to)
	if err != nil {
		return err
	}
	d.Say("%s %s Upgrade orders to %s", d.Bold("git commit"), hash[:7], to)
	if err := d.awaitVersion(ctx, to, mark, upgradeLimit); err != nil {
		return err
	}
	l := lap{from: from, to: to, took: time.Since(begin), seen: d.writer.Lap()}
	d.laps = append(d.laps, l)
	d.drawn = picture.Upgrade{
		Cluster: namespace + "/" + clusterName, From: from, To: to, Commit: hash[:7], Subject: "Upgrade orders to " + to, Took: l.took,
		Steps: d.steps(mark, begin), Members: outings.members(begin),
		Writes: l.seen.Writes.OK + l.seen.Writes.Failed, Failed: l.seen.Writes.Failed, Pause: l.seen.Writes.LongestGap,
	}
	d.Say("meanwhile, writes: %s", l.seen.Writes)
	d.Say("meanwhile, reads:  %s", l.seen.Reads)
	return nil
}

// showStatus shows what a person asks next, by the daemon's own answer: what the page
// serves to the loopback of its pod is reached through the API server.
func (d *demo) showStatus(ctx context.Context) error {
	d.Head("What quorate status says")
	binary, err := lab.Binary(ctx)
	if err != nil {
		return err
	}
	var out, errs bytes.Buffer
	err = d.Wait(ctx, "it to say so", time.Minute, func(ctx context.Context) (bool, string, error) {
		out.Reset()
		errs.Reset()
		status := exec.CommandContext(ctx, binary, "status", "--kubeconfig="+d.cluster.Kubeconfig, namespace+"/"+clusterName)
		status.Stdout, status.Stderr = &out, &errs
		ready := status.Run() == nil && errs.Len() == 0 && strings.Contains(out.String(), "EtcdCluster "+namespace+"/"+clusterName+": Ready")
		return ready, out.String() + errs.String(), nil
	})
	if err != nil {
		return err
	}
	d.drawn.Status, _, _ = strings.Cut(out.String(), "\n")
	for line := range strings.Lines(out.String()) {
		d.Say("%s", strings.TrimSuffix(line, "\n"))
	}
	return nil
}

// awaitVersion waits until quorate says that the cluster is what Git says, and
// then asks the members themselves.
func (d *demo) awaitVersion(ctx context.Context, version string, mark int, limit time.Duration) error {
	if err := d.awaitIdle(ctx, version, mark, limit); err != nil {
		return err
	}
	seen, err := d.cluster.Members(ctx, namespace, clusterName)
	if err != nil {
		return err
	}
	ok, words := lab.AtVersion(seen, members, version)
	if !ok {
		return fmt.Errorf("quorate says that %s is at %s, but its members say: %s", clusterName, version, words)
	}
	d.Say("%s the members say: %s", d.Good("✓"), words)
	return nil
}

// awaitIdle waits until quorate says that the cluster is at the version and
// there is nothing left to do. A hold that only a person can resolve ends the demo.
func (d *demo) awaitIdle(ctx context.Context, version string, mark int, limit time.Duration) error {
	idle := lab.Idle(namespace+"/"+clusterName, version)
	over := func(l lab.LogLine) bool {
		return idle(l) || l.Msg == "on hold" && (l.Kind == "Stopped" || l.Kind == "Refused")
	}
	return d.While("waiting for "+version, d.log.LastHold, func() error {
		line, _, err := d.log.WaitFor(ctx, mark, limit, over)
		switch {
		case err != nil:
			return fmt.Errorf("quorate did not say that %s is at %s: %w", clusterName, version, err)
		case line.Msg == "on hold":
			return fmt.Errorf("quorate does not bring %s to %s: %s", clusterName, version, line.Hold())
		}
		return nil
	})
}

// atEnd has something undone at the end.
func (d *demo) atEnd(what string, kept bool, do func(context.Context) error) {
	d.cleanUps = append(d.cleanUps, cleanUp{what, do, kept})
}

// cleanUp undoes what was done, also after an interrupt. The logs stay when the
// demo failed.
func (d *demo) cleanUp(failed bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpLimit)
	defer cancel()
	if failed {
		d.saveState(ctx)
	}
	var problems []error
	for len(d.cleanUps) > 0 {
		last := d.cleanUps[len(d.cleanUps)-1]
		d.cleanUps = d.cleanUps[:len(d.cleanUps)-1]
		if last.kept && d.keep {
			d.Say("kept: %s; its Git server and object store end with the demo (export KUBECONFIG=%s)", last.what, d.cluster.Kubeconfig)
			continue
		}
		if err := last.do(ctx); err != nil {
			problems = append(problems, fmt.Errorf("clean up %s: %w", last.what, err))
		}
	}
	if d.dir != "" && (d.log == nil || !failed && !d.keep) {
		problems = append(problems, os.RemoveAll(d.dir))
	}
	return errors.Join(problems...)
}

// saveState keeps the state of the cluster, to find out why
// the demo failed.
func (d *demo) saveState(ctx context.Context) {
	if d.cluster == nil {
		return
	}
	var text strings.Builder
	for _, args := range [][]string{
		{"get", "pods,pvc", "--output=wide"},
		{"describe", "statefulset,pods"},
		{"get", "events", "--sort-by=.lastTimestamp"},
	} {
		cmd, err := d.cluster.Kubectl(ctx, append(args, "--namespace="+namespace)...)
		if err != nil {
			return
		}
		out, _ := cmd.CombinedOutput()
		fmt.Fprintf(&text, "$ kubectl %s\n%s\n", strings.Join(args, " "), out)
	}
	_ = os.WriteFile(filepath.Join(d.dir, "cluster.txt"), []byte(text.String()), 0o644)
}
