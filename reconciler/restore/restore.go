// Package restore makes the volume of a cluster's first member out of a
// database: that of a surviving member, or that of a backup. It runs in a pod of
// its own, on a volume that no member uses, and it alone knows etcd's code for
// restoring.
package restore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/state"
)

// ErrUnfit says that it is the backup itself that cannot be restored, and no store,
// key or disk that is in the way.
var ErrUnfit = errors.New("the backup is unfit")

// ErrHashMismatch says that it is unfit because etcd said something else of its keys,
// which a person may accept.
var ErrHashMismatch = errors.New("what is in it is not what the cluster had, so take another backup")

// unfit marks an error as one of the backup, unless the disk or the kernel is to blame.
func unfit(err error) error {
	disk, kernel := (*fs.PathError)(nil), syscall.Errno(0)
	if errors.As(err, &disk) || errors.As(err, &kernel) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnfit, err)
}

// Request says which volume becomes what.
type Request struct {
	// Volume is the directory of the volume.
	Volume string
	// Member is the name of the member, PeerURL where its peers will find it.
	Member, PeerURL string
	// Former is the token of the lost incarnation, or empty for a volume that must
	// be; Token is that of the new one.
	Former, Token string
	// AtLeast is the revision that the source must have reached.
	AtLeast int64
	// Above is the highest revision that is known of the clusters that had this name
	// before: the new one begins state.RevisionBump above it. 0: the source says enough.
	Above int64
	// Size of the backup that Fetch writes, in bytes; 0: unknown.
	Size int64
	// Keys is what etcd said of the keys when the backup was taken.
	Keys KeyHash
	// AcceptHashMismatch says that the keys need not have that hash: a person has
	// accepted it for this very backup.
	AcceptHashMismatch bool
	// Trial says that nobody will ever use what becomes of the backup but who looks
	// whether it is good: revisions stay what they were, so that they can be
	// compared, and authentication is switched off.
	Trial bool
	// Fetch writes a backup, as etcd sent it, checksum included, into a new file.
	// Nil for the database that is on the volume.
	Fetch func(path string) error
}

// handover is what becomes of the volume.
func (r Request) handover() guard.Handover {
	return guard.Handover{Volume: r.Volume, Member: r.Member, Former: cmp.Or(r.Former, r.Token+"-empty"), Token: r.Token, Prepared: true}
}

// Run makes the volume one of a new cluster with one member. What was on it is
// kept beside the new data. Running it again after a crash continues where it was;
// running it again after its end changes nothing. Nothing is moved before the
// new data is whole.
func Run(r Request, log *zap.Logger) error {
	h := r.handover()
	done, err := h.Begin()
	if done || err != nil {
		return err
	}
	switch _, err := os.Lstat(h.PreparedDir()); {
	case errors.Is(err, fs.ErrNotExist):
		if err := r.prepare(h, log); err != nil {
			return fmt.Errorf("prepare the data of %s: %w", r.Member, noRoom(err))
		}
	case err != nil:
		return fmt.Errorf("prepare the data of %s: %w", r.Member, err)
	}
	if err := h.Finish(); err != nil || r.Former != "" {
		return err
	}
	// Nothing was there, so nothing is kept: the directory that says so goes, too.
	if err := os.Remove(h.KeptDir()); err != nil {
		return fmt.Errorf("tidy up the volume of %s: %w", r.Member, err)
	}
	return nil
}

// prepare makes the new data in a directory that has its name only when it is
// whole. What an earlier try left behind is made anew: it is nobody's data yet.
func (r Request) prepare(h guard.Handover, log *zap.Logger) error {
	if installed, err := isDir(h.KeptDir()); err != nil || installed {
		return err // the earlier data is set aside, so the new data was whole: see guard.Handover
	}
	if r.Former == "" && r.Fetch == nil {
		return errors.New("it is to begin with a backup, and none is named")
	}
	draft, source := h.PreparedDir()+".draft", h.PreparedDir()+".download"
	defer func() { _ = os.Remove(source) }()
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	if err := makeWay(source); err != nil {
		return err
	}
	if err := r.fill(source, filepath.Join(h.DataPath(), "member", "snap", "db")); err != nil {
		return err
	}
	config, err := r.config(source)
	if err != nil {
		return err
	}
	if err := r.Keys.check(source); err != nil && (!r.AcceptHashMismatch || !errors.Is(err, ErrHashMismatch)) {
		return unfit(err)
	}
	if err := restoreInPlace(source, draft, config, log); err != nil {
		return err
	}
	if r.Trial {
		if err := openToAll(filepath.Join(draft, "member", "snap", "db")); err != nil {
			return err
		}
	}
	if err := syncTree(draft); err != nil {
		return err
	}
	return os.Rename(draft, h.PreparedDir())
}

// fill writes the database that is to be restored, that of the backup or a copy of the
// former one, when the volume has room for it.
func (r Request) fill(path, former string) error {
	if r.Fetch != nil {
		if err := checkRoom(r.Volume, r.Size); err != nil {
			return err
		}
		if err := r.Fetch(path); err != nil {
			return err
		}
		return takeChecksumOff(path)
	}
	info, err := os.Stat(former)
	if err != nil {
		return err
	}
	if err := checkRoom(r.Volume, info.Size()); err != nil {
		return err
	}
	return copyDatabase(former, path)
}

// config is what etcd's code makes of a database.
func (r Request) config(source string) (snapshot.RestoreConfig, error) {
	config := snapshot.RestoreConfig{
		Name: r.Member, PeerURLs: []string{r.PeerURL}, InitialCluster: r.Member + "=" + r.PeerURL, InitialClusterToken: r.Token,
	}
	bump, err := r.bump(source)
	if !r.Trial {
		config.RevisionBump, config.MarkCompacted = bump, true
	}
	return config, err
}

// bump is by how much the revision rises, so that the new cluster begins above what the
// source has reached and above what clients may have seen of those before it. A
// revision with which etcd's numbers would overflow is refused.
func (r Request) bump(source string) (uint64, error) {
	last, reached, err := revisions(source)
	switch {
	case err != nil:
		return 0, unfit(err)
	case reached < r.AtLeast:
		return 0, unfit(fmt.Errorf("its database is at revision %d and was to be at %d or later; nothing is touched", reached, r.AtLeast))
	case reached > state.MaxRevision:
		return 0, unfit(fmt.Errorf("its database is at revision %d, which cannot be true; nothing is touched", reached))
	case r.Above > state.MaxRevision:
		return 0, fmt.Errorf("the new cluster is to begin above revision %d, which cannot be true; nothing is touched", r.Above)
	}
	return uint64(state.RevisionBump + max(reached, r.Above) - last), nil
}

// makeWay removes what an earlier try has left of a file.
func makeWay(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// isDir reports whether there is a directory.
func isDir(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}

// revisions reads the last revision that the database has a key for, and the one
// that it has reached: a compaction may have removed the last keys. Revision 1 is where
// every etcd begins, before there is a key.
func revisions(path string) (last, reached int64, err error) {
	err = view(path, func(keys, meta *bolt.Bucket) error {
		newest, _ := keys.Cursor().Last()
		last = mainRevision(newest)
		reached = max(1, last, mainRevision(meta.Get([]byte(finishedCompaction))), mainRevision(meta.Get([]byte(scheduledCompaction))))
		return nil
	})
	return last, reached, err
}

// Where etcd keeps the revisions of compactions in its bucket meta.
const (
	finishedCompaction  = "finishedCompactRev"
	scheduledCompaction = "scheduledCompactRev"
)

// view reads a database of etcd that nobody else has open.
func view(path string, look func(keys, meta *bolt.Bucket) error) error {
	// bolt makes a file that is not there, even to read it.
	if _, err := os.Stat(path); err != nil {
		return err
	}
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: boltTimeout})
	if err != nil {
		return fmt.Errorf("open the database %s: %w", path, err)
	}
	defer func() { _ = db.Close() }()
	return db.View(func(tx *bolt.Tx) error {
		keys, meta := tx.Bucket([]byte("key")), tx.Bucket([]byte("meta"))
		if keys == nil || meta == nil {
			return errors.New("it is no database of etcd")
		}
		return look(keys, meta)
	})
}

// openToAll switches authentication off: who looks at the trial of a restore has no
// password, and needs none for a copy that is thrown away.
func openToAll(path string) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: boltTimeout})
	if err != nil {
		return fmt.Errorf("open the database %s: %w", path, err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		auth := tx.Bucket([]byte("auth"))
		if auth == nil {
			return nil
		}
		return auth.Put([]byte("authEnabled"), []byte{0})
	})
	return errors.Join(err, db.Close())
}

// mainRevision reads etcd's binary form of a revision, 0 for none.
func mainRevision(key []byte) int64 {
	if len(key) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(key))
}

// syncTree makes files and directories survive a power cut.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
