package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/test/bench/fleet"
	"github.com/quorate/quorate/test/lab"
)

// What the bench makes in the cluster.
const (
	namespace   = "quorate-bench"
	clusterName = "orders"
	clusterKey  = namespace + "/" + clusterName
	clusterFile = "clusters/orders.yaml"
	// plainName is the StatefulSet without quorate.
	plainName = "plain"
	// The versions that take turns.
	firstVersion, otherVersion = "3.5.21", "3.5.35"
	// interval between two polls of Git; half of it is in every first action.
	interval  = time.Second
	rollLimit = 3 * time.Minute
)

// etcdImage is the image of a version.
func etcdImage(version string) string { return manifests.DefaultRepository + ":v" + version }

// manifest is the cluster at a version. Two patches of one minor take turns, so
// that every roll is a real upgrade with a backup.
func manifest(version string) string { return manifestOf(clusterName, version, "512Mi") }

// manifestOf is a cluster of three members that soaks for no time.
func manifestOf(name, version, size string) string {
	return fmt.Sprintf(`apiVersion: quorate.dev/v1alpha1
kind: EtcdCluster
metadata:
  name: %s
  namespace: %s
spec:
  version: %q
  replicas: 3
  storage:
    size: %s
  upgrade:
    soak: 0s
`, name, namespace, version, size)
}

// bench is one run.
type bench struct {
	*lab.Progress
	rolls int
	// only is the name of the one part to measure, and empty for all.
	only string
	// sizes of the members that are backed up, in bytes.
	sizes []int64

	cluster *lab.Cluster
	git     *lab.GitServer
	store   *lab.S3Server
	daemon  *lab.Daemon
	version string

	noop                    noop
	polls, fetches, commits []reading
	page, metrics           []reading
	files                   files
	start                   []start
	// fleets are how many clusters they have, members those of each cluster.
	fleets   []int
	members  int
	measured []fleet.Figures
	year     []year
	backups  backups
	// small and large are the rolls of a cluster with few keys, and of one with so many as
	// keys says; 0 for none.
	small, large contest
	keys         int
	// plain is a StatefulSet without quorate.
	plain *lab.Plain
}

// roll is one measured rollout.
type roll struct {
	wall time.Duration
	// react is from the commit to the first action; zero for the floor.
	react     time.Duration
	seen      lab.Report
	stretches []stretch
}

// run measures, and removes what it made however it ends.
func (b *bench) run(ctx context.Context) (err error) {
	if err := b.checkOnly(); err != nil {
		return err
	}
	if b.only != "" && b.only != onlyRolls {
		b.rolls = 0
	}
	if b.only != onlyLarge && b.rolls == 0 || b.only == onlyRolls {
		b.keys = 0
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit(), fmt.Errorf("the bench took longer than %s", b.limit()))
	defer cancel()
	defer func() { err = errors.Join(err, b.cleanUp()) }()
	for _, p := range b.chosen() {
		if err := b.Do(p.what, func() error { return p.measure(ctx) }); err != nil {
			return err
		}
	}
	if b.rolls == 0 && b.keys == 0 {
		b.printOffline(os.Stdout)
		return b.withinBound()
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	b.small = contest{cluster: clusterName, limit: rollLimit, rolls: b.rolls}
	for range b.small.rolls {
		if err := b.turn(ctx, &b.small, b.byQuorate); err != nil {
			return err
		}
	}
	if b.keys > 0 {
		if err := b.rollLarge(ctx); err != nil {
			return err
		}
	}
	b.print(os.Stdout)
	return b.withinBound()
}

// prepare makes the cluster that is rolled.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.cluster, err = lab.Connect(ctx); err != nil {
		return err
	}
	if b.cluster.Sandbox != nil {
		// It may have been brought up for the demo, which needs less of it.
		if err := b.cluster.Sandbox.Up(ctx, os.Stderr, "--all"); err != nil {
			return err
		}
	}
	image, err := b.cluster.ProvideImage(ctx)
	if err != nil {
		return err
	}
	if err := b.cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	if b.git, err = lab.StartGitServer(ctx, b.cluster.Host); err != nil {
		return err
	}
	if b.store, err = b.cluster.StartS3(ctx); err != nil {
		return err
	}
	if _, err := b.commit(ctx, firstVersion); err != nil {
		return err
	}
	b.daemon, err = lab.StartDaemon(ctx, lab.DaemonOptions{
		Repo: b.git.URL(), Kubeconfig: b.cluster.Kubeconfig, Interval: interval,
		BackupURL: b.store.URLTemplate(), GuardImage: image, Env: b.store.Credentials(),
	})
	if err != nil {
		return err
	}
	if _, _, err = b.daemon.WaitFor(ctx, 0, rollLimit, lab.Idle(clusterKey, b.version)); err != nil {
		return err
	}
	b.plain, err = b.cluster.StartPlain(ctx, namespace, plainName, etcdImage(otherVersion))
	return err
}

// commit asks for a version.
func (b *bench) commit(ctx context.Context, version string) (time.Time, error) {
	b.version = version
	_, err := b.git.Commit(ctx, "etcd "+version, map[string]string{clusterFile: manifest(version)})
	return time.Now(), err
}

// contest is the rolls of one cluster, by quorate and by a script, and of a plain StatefulSet
// beside it.
type contest struct {
	cluster string
	// limit of one roll, and how many there are of each kind.
	limit                 time.Duration
	rolls                 int
	quorate, floor, plain []roll
}

// turn makes one roll of each kind. Which one comes first takes turns. The script deletes
// the pods one at a time; the plain StatefulSet is rolled beside the small cluster alone.
func (b *bench) turn(ctx context.Context, c *contest, byQuorate func(ctx context.Context, r *roll) error) error {
	n := len(c.floor) + 1
	kinds := []func() error{
		func() error { return b.roll(ctx, c, c.cluster, "quorate", &c.quorate, byQuorate) },
		func() error {
			return b.roll(ctx, c, c.cluster, "script", &c.floor, func(ctx context.Context, r *roll) (err error) {
				r.wall, err = b.cluster.FloorRoll(ctx, namespace, c.cluster)
				return err
			})
		},
	}
	if c == &b.small {
		kinds = append(kinds, func() error {
			return b.roll(ctx, c, plainName, "plain", &c.plain, func(ctx context.Context, r *roll) (err error) {
				r.wall, err = b.plain.Roll(ctx, etcdImage([]string{firstVersion, otherVersion}[(n+1)%2]))
				return err
			})
		})
	}
	for i := range kinds {
		if err := kinds[(i+n)%len(kinds)](); err != nil {
			return fmt.Errorf("turn %d of cluster %s: %w", n, c.cluster, err)
		}
	}
	q, f := c.quorate[n-1], c.floor[n-1]
	text := fmt.Sprintf("%2d/%d  quorate %s (%s)   script %s (%s)", n, c.rolls, lab.Round(q.wall), clientSaw(q), lab.Round(f.wall), clientSaw(f))
	if len(c.plain) == n {
		text += fmt.Sprintf("   plain %s (%s)", lab.Round(c.plain[n-1].wall), clientSaw(c.plain[n-1]))
	}
	b.Say("%s", text)
	return nil
}

// roll makes one roll under load, and keeps what was seen of it.
func (b *bench) roll(ctx context.Context, c *contest, cluster, kind string, to *[]roll, do func(ctx context.Context, r *roll) error) error {
	var r roll
	restarts, err := b.cluster.WatchRestarts(ctx, namespace, cluster)
	if err != nil {
		return err
	}
	var begin, end time.Time
	r.seen, err = b.underLoad(ctx, cluster, fmt.Sprintf("%s-%d", kind, len(*to)), c.limit, func() error {
		begin = time.Now()
		err := do(ctx, &r)
		end = time.Now()
		return err
	})
	r.stretches = stretchesOf(restarts.Stop(), begin, end)
	*to = append(*to, r)
	return err
}

func clientSaw(r roll) string {
	w := r.seen.Writes
	text := fmt.Sprintf("gap %s, %d of %d writes failed", lab.Round(w.LongestGap), w.Failed, w.OK+w.Failed)
	for _, f := range w.Failures {
		text += fmt.Sprintf("; %v", f)
	}
	return text
}

// underLoad rolls while its own client writes and reads, and wants every
// acknowledged write to be there afterwards.
func (b *bench) underLoad(ctx context.Context, cluster, name string, limit time.Duration, do func() error) (lab.Report, error) {
	writer, err := b.cluster.Write(ctx, namespace, cluster, lab.WriterOptions{Prefix: name + "/", Limit: limit})
	if err != nil {
		return lab.Report{}, err
	}
	defer writer.Close()
	err = b.Wait(ctx, "writes before the roll", time.Minute, func(context.Context) (bool, string, error) {
		ok := writer.Report().Writes.OK
		return ok >= 200, fmt.Sprintf("%d writes", ok), nil
	})
	if err != nil {
		return lab.Report{}, err
	}
	writer.Lap()
	if err := do(); err != nil {
		return lab.Report{}, err
	}
	seen := writer.Lap()
	writer.Stop()
	_, err = writer.Verify(ctx)
	return seen, err
}

// byQuorate commits the other version and waits until quorate calls it done.
func (b *bench) byQuorate(ctx context.Context, r *roll) error {
	next := otherVersion
	if b.version == next {
		next = firstVersion
	}
	from := b.daemon.Log.Mark()
	begin, err := b.commit(ctx, next)
	if err != nil {
		return err
	}
	if _, _, err := b.daemon.WaitFor(ctx, from, rollLimit, lab.Step()); err != nil {
		return err
	}
	r.react = time.Since(begin)
	_, _, err = b.daemon.WaitFor(ctx, from, rollLimit, lab.Idle(clusterKey, next))
	r.wall = time.Since(begin)
	return err
}

// cleanUp ends what the bench started and removes what it made.
func (b *bench) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var errs []error
	if b.daemon != nil {
		errs = append(errs, b.daemon.Stop())
	}
	if b.cluster != nil {
		errs = append(errs, b.cluster.DeleteNamespace(ctx, namespace))
	}
	if b.store != nil {
		b.store.Close()
	}
	if b.git != nil {
		b.git.Close()
	}
	return errors.Join(errs...)
}
