package backup

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
)

// ReasonAdopted is the Reason of a backup that another tool has taken.
const ReasonAdopted = "adopted"

// Adopt makes a backup of the snapshot that another tool has stored at objectURL, by
// writing a manifest beside it. The object itself is never changed.
//
// The snapshot is checked as one of Save is, and copied into to on the way. Then
// describe adds what is in it and whose it is; Object, Size, SHA256, Reason and, as
// the time at which the object was written, Time are filled in before. With any
// error nothing is written, and a manifest that is there is never overwritten.
//
// No hash of etcd's is known of such a snapshot, so that a restore compares none.
func (st Store) Adopt(ctx context.Context, objectURL string, to io.Writer, describe func(*Manifest) error) (Manifest, error) {
	s, ctx, err := st.open(ctx, "adopt snapshot", objectURL, reading)
	if err != nil {
		return Manifest{}, err
	}
	defer s.close()
	if err := s.refuseForeign(ctx); err != nil {
		return Manifest{}, err
	}
	measured, err := s.copySnapshot(ctx, to)
	if err != nil {
		return Manifest{}, err
	}
	m := measured
	if err := describe(&m); err != nil {
		return Manifest{}, s.problem("it cannot be adopted", "nothing was written", err)
	}
	m.FormatVersion, m.Object, m.Size, m.SHA256 = FormatVersion, s.target.name, measured.Size, measured.SHA256
	m.Time = m.Time.Round(0).UTC()
	if err := s.writeManifest(ctx, &m); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// refuseForeign refuses what is a backup already, and what its name says is no
// snapshot.
func (s *object) refuseForeign(ctx context.Context) error {
	if name := path.Base(s.key); strings.HasPrefix(name, "Incr-") || strings.HasPrefix(name, "Delta-") {
		return s.problem("by its name it is a delta snapshot of etcd-druid: the changes since a full one, and no database",
			"adopt the full snapshot, whose name begins with Full-; what only deltas have cannot be restored by quorate", nil)
	}
	switch _, err := s.manifestText(ctx); {
	case errors.Is(err, ErrNotFound):
		return nil
	case err == nil || errors.Is(err, errBadManifest):
		return s.problem("it has a manifest already, and none is overwritten", "an EtcdRestore can name it as it is; see what the manifest says with quorate snapshot verify", nil)
	default:
		return err
	}
}

// copySnapshot reads the whole object, checks that it is what etcd sent, and copies
// it.
func (s *object) copySnapshot(ctx context.Context, to io.Writer) (Manifest, error) {
	raw, err := s.bucket.NewReader(ctx, s.key, nil)
	if s.notFound(err) {
		return Manifest{}, s.problem("no object is stored there", "correct the object URL", nil)
	}
	if err != nil {
		return Manifest{}, s.failed(err)
	}
	defer func() { _ = raw.Close() }()
	stored := &source{r: s.watch.reader(ctx, raw)}
	body := bufio.NewReader(stored)
	head, _ := body.Peek(longestMark) // an error comes again, with the first read
	if err := s.refuseWrapped(head); err != nil {
		return Manifest{}, err
	}
	r := newSnapshotReader(body)
	_, err = io.Copy(to, r)
	switch {
	case stored.err != nil:
		return Manifest{}, s.failed(stored.err)
	case r.err != nil:
		return Manifest{}, s.notWhole(r)
	case err != nil:
		return Manifest{}, s.problem("its copy for measuring cannot be written", "make room in the directory for temporary files, or name another one with TMPDIR", err)
	}
	return Manifest{FormatVersion: FormatVersion, Object: s.target.name, Size: r.sum.size, SHA256: r.sum.sha256, Reason: ReasonAdopted, Time: raw.ModTime()}, nil
}

// longestMark is how many bytes of an object tell what it is wrapped in.
const longestMark = 32

// refuseWrapped refuses a snapshot that is compressed or encrypted: restores read
// what etcd sent. lzw has no mark of its own: etcd-druid's suffix for it tells.
func (s *object) refuseWrapped(head []byte) error {
	unwrap := func(how, tool string) error {
		return s.problem("it is "+how, tool+" a copy, store that under another name, and adopt it", nil)
	}
	switch {
	case bytes.HasPrefix(head, []byte("age-encryption.org/")):
		return unwrap("encrypted with age", "decrypt")
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return unwrap("compressed with gzip", "gunzip")
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return unwrap("compressed with zstd", "decompress")
	case len(head) > 1 && head[0] == 0x78 && (int(head[0])<<8|int(head[1]))%31 == 0:
		return unwrap("compressed with zlib", "decompress")
	case strings.HasSuffix(s.key, ".Z"):
		return unwrap("compressed with lzw, by its name", "decompress")
	}
	return nil
}

// notWhole says why the object is no snapshot as etcd sends it. A copy of a member's
// own file looks like one but has no checksum: whether it is whole, and was not
// written to while it was copied, nobody can know.
func (s *object) notWhole(r *snapshotReader) error {
	if r.check.size > 0 && r.check.size%snapshotUnit == 0 && r.check.isBolt() {
		return s.problem("it is a database without the checksum that etcd appends to a snapshot, such as a copy of member/snap/db, so that nobody can know whether it is whole",
			"start an etcd on the data directory that it is from, and take a snapshot with etcdctl snapshot save", nil)
	}
	return s.problem(strings.ReplaceAll(r.err.text, "the snapshot stream", "the object"), "it cannot be restored: adopt another one", r.err.err)
}
