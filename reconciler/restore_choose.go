package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/schema"
)

// RestoreFrom says where the backups of a schedule or a cluster are.
type RestoreFrom struct {
	// Cluster is the name by which they were stored, Schedule the namespace/name of
	// the schedule that made them, empty for any.
	Cluster, Schedule string
	// Destination is their place. Without a template they are in the daemon's.
	Destination schema.Destination
}

// backupFor finds the backup that Git names, and verifies it: every byte is read.
func (r *Reconciler) backupFor(ctx context.Context, v *view) (m backup.Manifest, url string, err error) {
	w, ns := v.cluster.Restore, v.cluster.Metadata.Namespace
	store, err := r.storeWith(ctx, ns, w.credentials())
	if err != nil {
		return m, "", err
	}
	if url = w.Source.ObjectURL; url == "" {
		if url, err = r.findBackup(ctx, store, ns, *w); err != nil {
			return m, "", err
		}
	}
	if m, err = store.Verify(ctx, url); err != nil {
		return m, "", err
	}
	// Not to find out later that the restore cannot read it.
	_, err = r.sign(ctx, store, url, offerTime)
	return m, url, err
}

// credentials is the Secret that opens the store, "" for the daemon's own way.
func (w *RestoreWish) credentials() string {
	if w.Source.ObjectURL == "" && w.From != nil {
		return w.From.Destination.Credentials.SecretName
	}
	return w.Source.Credentials.SecretName
}

// findBackup is the URL of the newest backup that Git means. A manifest that cannot
// be read might be that of a newer one, so that nobody can say which is.
func (r *Reconciler) findBackup(ctx context.Context, store backup.Store, namespace string, w RestoreWish) (string, error) {
	if w.From == nil {
		return "", errors.New("nobody knows where its backups are: name one with spec.source.objectURL")
	}
	place, err := backupsPlace(cmp.Or(w.From.Destination.ObjectURLTemplate, r.options.BackupURL), namespace, w.From.Cluster)
	if err != nil {
		return "", err
	}
	all, err := store.List(ctx, place)
	if err != nil {
		return "", fmt.Errorf("%w; name the backup that you want with spec.source.objectURL", err)
	}
	var before time.Time
	if w.Source.Before != nil {
		before = w.Source.Before.Time
	}
	chosen := newestBackup(all, namespace, *w.From, before)
	if chosen == nil {
		return "", fmt.Errorf("there is no %s among the %d backups at %s; look into the store, or name one with spec.source.objectURL",
			strings.TrimPrefix(sourceText(w.Source), "the newest "), len(all), withoutQuery(place))
	}
	return chosen.URL(place), nil
}

// backupsPlace is the directory that all backups of a cluster are in, as a URL.
func backupsPlace(template, namespace, cluster string) (string, error) {
	if template == "" {
		return "", errors.New("neither the file nor the daemon's --backup-url says where its backups are: name one with spec.source.objectURL")
	}
	place, err := schema.ObjectURLDirectory(template, schema.ObjectURLData{Namespace: namespace, Name: cluster, Version: "any"})
	if err != nil {
		return "", fmt.Errorf("where its backups are: %w", err)
	}
	return place, nil
}

// newestBackup is the newest of a cluster's backups, by its time and its revision as
// numbers, that was begun before a time, if one is given. One that a trial restore
// has found bad is no backup.
func newestBackup(all []backup.Manifest, namespace string, from RestoreFrom, before time.Time) *backup.Manifest {
	var newest *backup.Manifest
	for i := range all {
		m := &all[i]
		switch {
		case m.Namespace != namespace || m.Name != from.Cluster:
		case from.Schedule != "" && m.Schedule != from.Schedule:
		case !before.IsZero() && !m.Time.Before(before):
		case !slices.Contains([]string{"", backup.DrillPassed}, m.Drill.Result):
		case newest == nil || cmp.Or(m.Time.Compare(newest.Time), cmp.Compare(m.Revision, newest.Revision)) > 0:
			newest = m
		}
	}
	return newest
}
