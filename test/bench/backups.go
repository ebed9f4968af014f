package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/reconciler/backup"
)

// comparison is what one thing takes, done in several ways by turns. The first way is
// quorate's.
type comparison struct {
	title string
	ways  []*way
}

// way is one of them.
type way struct {
	name string
	// do does it once, and tidy removes what it made.
	do   func(context.Context) (usage, error)
	tidy func() error
	runs []usage
}

// backups is what backups and restores take.
type backups struct {
	list    []comparison
	writers []writers
}

// smallSize is below what is measured less often, since it takes long.
const smallSize = 512 << 20

// roundsOf is how often a size is measured.
func roundsOf(size int64) int {
	if size < smallSize {
		return 5
	}
	return 3
}

// measureBackups measures a member of each size.
func (b *bench) measureBackups(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "quorate-bench-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	t, err := buildTools(ctx, dir)
	if err != nil {
		return err
	}
	for i, size := range b.sizes {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			return err
		}
		if err := b.measureSize(ctx, t, sub, size); err != nil {
			return fmt.Errorf("backups of %s: %w", sizeText(size), err)
		}
		if err := os.RemoveAll(sub); err != nil {
			return err
		}
	}
	return nil
}

// measureSize measures one.
func (b *bench) measureSize(ctx context.Context, t tools, dir string, size int64) error {
	b.Say("filling etcd with %s", sizeText(size))
	m, err := startMember(ctx, t, dir, size)
	defer m.close()
	if err != nil {
		return err
	}
	restore, err := m.restores(ctx)
	if err != nil {
		return err
	}
	of := " of " + sizeText(size) + ", "
	for _, c := range []comparison{
		{"backup" + of + "to a directory", m.toDirectory()},
		{"backup" + of + "to S3", m.toS3()},
		{"restore" + of + "from S3", restore},
	} {
		if err := b.compare(ctx, c, roundsOf(size)); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
	}
	w, err := b.measureWriters(ctx, m, size)
	b.backups.writers = append(b.backups.writers, w)
	return err
}

// compare measures all ways in each round; which one comes first takes turns.
func (b *bench) compare(ctx context.Context, c comparison, rounds int) error {
	for round := range rounds {
		b.Say("%s, round %d of %d", c.title, round+1, rounds)
		for i := range c.ways {
			w := c.ways[(i+round)%len(c.ways)]
			u, err := w.do(ctx)
			if err := errors.Join(err, w.tidy()); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			w.runs = append(w.runs, u)
		}
	}
	b.backups.list = append(b.backups.list, c)
	return nil
}

// toDirectory is a backup to a directory, and what a person does.
func (m *member) toDirectory() []*way {
	saved, copied := m.path("snapshot.db"), m.path("kept", "copy.db")
	save := func(ctx context.Context) *exec.Cmd { return m.save(ctx, saved) }
	copying := func(ctx context.Context) *exec.Cmd { return m.command(ctx, "cp", saved, copied) }
	tidy := removing(saved, copied)
	return []*way{
		m.ownWay(m.directoryURL),
		{name: "etcdctl snapshot save, cp", tidy: tidy, do: commands(save, copying)},
		{name: "etcdctl snapshot save, cp, sync, sha256sum of both", tidy: tidy, do: commands(
			save, copying,
			func(ctx context.Context) *exec.Cmd { return m.command(ctx, "sync", copied) },
			func(ctx context.Context) *exec.Cmd { return m.command(ctx, "sha256sum", saved, copied) },
		)},
	}
}

// toS3 is a backup to S3, and what a person does.
func (m *member) toS3() []*way {
	saved, back, key := m.path("snapshot.db"), m.path("back.db"), "person.db"
	save := func(ctx context.Context) *exec.Cmd { return m.save(ctx, saved) }
	put := func(ctx context.Context) *exec.Cmd {
		return m.command(ctx, m.s3copy, "put", saved, m.store.ObjectURL(key))
	}
	tidy := removing(saved, back, m.store.ObjectPath(key))
	return []*way{
		m.ownWay(m.store.ObjectURL),
		{name: "etcdctl snapshot save, upload", tidy: tidy, do: commands(save, put)},
		{name: "etcdctl snapshot save, upload, download, sha256sum of both", tidy: tidy, do: commands(
			save, put,
			func(ctx context.Context) *exec.Cmd {
				return m.command(ctx, m.s3copy, "get", back, m.store.ObjectURL(key))
			},
			func(ctx context.Context) *exec.Cmd { return m.command(ctx, "sha256sum", saved, back) },
		)},
	}
}

// ownWay is quorate's backup.
func (m *member) ownWay(url func(key string) string) *way {
	var key string
	return &way{
		name: "quorate: streamed, stored, read back, sha256 and etcd's checksum compared, manifest",
		do: func(ctx context.Context) (usage, error) {
			key = m.key()
			cmd, err := m.takeBackup(ctx, url(key))
			if err != nil {
				return usage{}, err
			}
			return measure(ctx, cmd)
		},
		tidy: func() error { return m.removeBackup(key) },
	}
}

// takeBackup is what the Job of a backup runs, the same code as in the daemon.
func (m *member) takeBackup(ctx context.Context, url string) (*exec.Cmd, error) {
	about, err := json.Marshal(m.about)
	if err != nil {
		return nil, err
	}
	return m.command(ctx, m.quorate, "take-backup", "--address="+m.address(), "--host=localhost", "--member-id="+m.id,
		"--url="+url, "--manifest="+string(about)), nil
}

func (m *member) directoryURL(key string) string { return "file://" + m.path("kept", key) }

// removeBackup removes it wherever it is.
func (m *member) removeBackup(key string) error {
	kept, object := m.path("kept", key), m.store.ObjectPath(key)
	return removing(kept, kept+backup.ManifestSuffix, object, object+backup.ManifestSuffix)()
}

// save is etcdctl's snapshot of the member.
func (m *member) save(ctx context.Context, path string) *exec.Cmd {
	return m.command(ctx, m.etcdctl, "--endpoints="+m.etcd.URL, "snapshot", "save", path)
}

// commands run one after the other.
func commands(list ...func(context.Context) *exec.Cmd) func(context.Context) (usage, error) {
	return func(ctx context.Context) (usage, error) {
		all := make([]*exec.Cmd, len(list))
		for i, one := range list {
			all[i] = one(ctx)
		}
		return measure(ctx, all...)
	}
}

// removing removes files and directories, where they are.
func removing(paths ...string) func() error {
	return func() error {
		var errs []error
		for _, path := range paths {
			errs = append(errs, os.RemoveAll(path))
		}
		return errors.Join(errs...)
	}
}

// sizeText is a size for people.
func sizeText(size int64) string {
	return resource.NewQuantity(size, resource.BinarySI).String() + "B"
}
