package stores

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Ended is the manifest of a backup that was begun at a place. It is written last: where there
// is none, what the backup left is removed, and the error is backup.ErrNotFound. A store that
// does not let it does not keep the next backup back: what is left costs room, and a person
// is told where it is. What is not at the place is left alone, with ErrForeign.
func (s Stores) Ended(ctx context.Context, p Place, secret, key, objectURL string) (m backup.Manifest, err error) {
	if err := p.Gives(objectURL); err != nil {
		return m, err
	}
	store, err := s.OpenWith(ctx, p.namespace, secret, objectURL)
	if err != nil {
		return m, err
	}
	m, err = store.ReadManifest(ctx, objectURL)
	if errors.Is(err, backup.ErrNotFound) {
		s.mayRemain(ctx, key, objectURL, store.Discard(ctx, objectURL))
	}
	return m, err
}

// SignWritten signs a manifest that a Job has written, if it is still that one.
func (s Stores) SignWritten(ctx context.Context, namespace, secret, objectURL, digest string) error {
	store, err := s.OpenWith(ctx, namespace, secret, objectURL)
	if err != nil {
		return err
	}
	return store.SignManifest(ctx, objectURL, digest)
}

// Discard removes what a backup left that never became one, as Ended does. One that came to
// its end and was not recorded stays, and keeps no other back.
func (s Stores) Discard(ctx context.Context, p Place, secret, key, objectURL string) {
	m, err := s.Ended(ctx, p, secret, key, objectURL)
	switch {
	case err == nil:
		s.Log.Info("backup came to its end and was not recorded: it is kept", "request", key, "url", m.Object, "revision", m.Revision, "sha256", m.SHA256)
	case !errors.Is(err, backup.ErrNotFound):
		s.mayRemain(ctx, key, objectURL, err)
	}
}

// mayRemain tells of what could not be removed, if anything.
func (s Stores) mayRemain(ctx context.Context, key, objectURL string, err error) {
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("incomplete backup may have left an object", "request", key, "url", desired.WithoutQuery(objectURL), "error", err.Error())
	}
}

// NewURL is the place of one more backup. The name is new every time: nothing
// is ever overwritten, not even a failed try.
func NewURL(template string, d schema.ObjectURLData, now time.Time) (string, error) {
	if template == "" {
		return "", errors.New("nothing says where to put it: set destination.objectURLTemplate, spec.backup.destination of the cluster, or the daemon's --backup-url")
	}
	unique, err := naming.Random(3)
	if err != nil {
		return "", err
	}
	d.UID = now.UTC().Format("20060102T150405Z") + "-" + unique
	return schema.ExpandObjectURL(template, d)
}
