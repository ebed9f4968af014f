package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/sourcegraph/conc/pool"
	"gocloud.dev/blob"
)

// parallelReads is how many manifests a listing reads at a time.
const parallelReads = 8

// BrokenManifests says that a listing is complete but for these: each error names a
// manifest that cannot be read. Nothing may be concluded about their backups.
type BrokenManifests struct {
	// Errors has one sentence a manifest, in the order of their keys.
	Errors []error
}

func (e *BrokenManifests) Error() string {
	if len(e.Errors) == 1 {
		return e.Errors[0].Error()
	}
	return fmt.Sprintf("%v (and %d more)", e.Errors[0], len(e.Errors)-1)
}

func (e *BrokenManifests) Unwrap() []error { return e.Errors }

// List reads the manifests below the URL's directory, which ends with the last slash
// of its path: an object URL lists what lies beside and below that object, and
// "s3://bucket/" a whole bucket. Newest first, by time, then by revision, as
// numbers; an object without a manifest is no backup.
//
// With an error of type *BrokenManifests the list is good, and lacks those: they make no
// sense, are archived, or are not given out while others are. With any other error
// it is nil: a store that cannot be asked is not an empty one. A file store's
// directory that does not exist yet is empty, if its root exists.
func (st Store) List(ctx context.Context, prefixURL string) ([]Manifest, error) {
	s, ctx, err := st.openDir(ctx, "list backups", prefixURL)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer s.close()
	keys, err := s.manifestKeys(ctx)
	if err != nil {
		return nil, err
	}
	return s.readManifests(ctx, keys)
}

// openDir opens the directory of a URL: key is its prefix in the bucket.
func (st Store) openDir(ctx context.Context, op, prefixURL string) (*object, context.Context, error) {
	plain, query, _ := strings.Cut(prefixURL, "?")
	if strings.Count(plain, "/") < 3 {
		plain += "/"
	}
	if strings.HasSuffix(plain, "/") {
		plain += "any"
	}
	s, ctx, err := st.open(ctx, op, plain+"?"+query, asking)
	if err != nil {
		return nil, ctx, err
	}
	s.key = s.key[:strings.LastIndex(s.key, "/")+1]
	s.target.name = s.target.name[:strings.LastIndex(s.target.name, "/")+1]
	return s, ctx, nil
}

// manifestKeys lists the keys below the directory that are a manifest's.
func (s *object) manifestKeys(ctx context.Context) ([]string, error) {
	var keys []string
	objects := s.bucket.List(&blob.ListOptions{Prefix: s.key})
	for {
		o, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, s.failed(err)
		}
		if key, ok := strings.CutSuffix(o.Key, ManifestSuffix); ok && key != "" && !strings.HasSuffix(key, "/") {
			keys = append(keys, key)
		}
	}
}

// readManifests reads the manifests of the objects with these keys.
func (s *object) readManifests(ctx context.Context, keys []string) ([]Manifest, error) {
	manifests, errs := make([]Manifest, len(keys)), make([]error, len(keys))
	group := pool.New().WithMaxGoroutines(parallelReads)
	for i, key := range keys {
		group.Go(func() { manifests[i], errs[i] = s.at(key).readManifest(ctx) })
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, s.failed(err)
	}
	return sift(manifests, errs)
}

// sift sorts the manifests that were read, and tells what is wrong with one of the
// others from what is wrong with the store. That the store gives nothing out is
// concluded where it has given out none, and some were refused.
func sift(manifests []Manifest, errs []error) ([]Manifest, error) {
	given := slices.ContainsFunc(errs, func(err error) bool { return err == nil || errors.Is(err, errBadManifest) })
	broken := &BrokenManifests{}
	good := manifests[:0]
	for i, m := range manifests {
		switch err := errs[i]; {
		case err == nil:
			good = append(good, m)
		case errors.Is(err, ErrNotFound):
			// Removed since it was listed.
		case errors.Is(err, errBadManifest), archived(recordedAnswer(err)), given && aboutObject(err):
			broken.Errors = append(broken.Errors, err)
		default:
			return nil, err
		}
	}
	slices.SortStableFunc(good, newestFirst)
	if len(broken.Errors) > 0 {
		return good, broken
	}
	return good, nil
}

// newestFirst orders backups. Revisions decide between two of the same second of
// clocks that differ; they are numbers: 10 is newer than 9.
func newestFirst(a, b Manifest) int {
	return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Revision, a.Revision), cmp.Compare(b.Object, a.Object))
}

// at is another object of the same bucket. It must not be closed.
func (s *object) at(key string) *object {
	other := *s
	rest := &url.URL{Path: strings.TrimPrefix(key, s.key)}
	other.target.name += rest.EscapedPath()
	other.key, other.target.key = key, key
	return &other
}

// Remove deletes the backup at objectURL: its manifest, so that nobody takes it for
// a backup any more, then the object. What has no manifest of quorate's, or one
// that was written for another place, is not touched. Errors: ErrNotFound when no
// manifest is there; one that names the object when the manifest is gone and the
// object is not.
func (st Store) Remove(ctx context.Context, objectURL string) error {
	s, ctx, err := st.open(ctx, "remove backup", objectURL, asking)
	if err != nil {
		return err
	}
	defer s.close()
	m, err := s.readManifest(ctx)
	if err != nil {
		return err
	}
	if m.Origin != "" {
		return s.problem("it is a copy of "+m.Origin+", and quorate removes only what it wrote", "delete the copy by hand if nobody needs it", nil)
	}
	if err := s.bucket.Delete(ctx, s.key+ManifestSuffix); err != nil && !s.notFound(err) {
		return s.failed(err)
	}
	if err := s.bucket.Delete(ctx, s.key); err != nil && !s.notFound(err) {
		return &leftoverError{s.problem("the manifest is deleted, and the object is not", "delete the object by hand", err), s.cause(err)}
	}
	return nil
}
