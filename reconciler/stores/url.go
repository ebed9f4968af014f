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

// Discard removes what a backup left that never became one. A store that does not
// let it does not keep the next backup back: what is left costs room, and a person
// is told where it is. So it is with one that came to its end and was not recorded, and
// with one that is not at the place: a record that names it is not believed.
func (s Stores) Discard(ctx context.Context, p Place, secret, key, objectURL string) {
	store, m, err := backup.Store{}, backup.Manifest{}, p.Gives(objectURL)
	if err == nil {
		store, err = s.OpenWith(ctx, p.namespace, secret, objectURL)
	}
	if err == nil {
		m, err = store.ReadManifest(ctx, objectURL)
	}
	switch {
	case err == nil:
		s.Log.Info("backup came to its end and was not recorded: it is kept", "request", key, "url", m.Object, "revision", m.Revision, "sha256", m.SHA256)
	case errors.Is(err, backup.ErrNotFound):
		err = store.Discard(ctx, objectURL)
	}
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
