package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// Find finds the backup that a restore names, and verifies it: every byte is read.
func (s Stores) Find(ctx context.Context, namespace string, w desired.Restore) (m backup.Manifest, url string, err error) {
	store, err := s.OpenWith(ctx, namespace, w.Credentials())
	if err != nil {
		return m, "", err
	}
	url = w.Source.ObjectURL
	if url == "" {
		if url, err = s.findBackup(ctx, store, namespace, w); err != nil {
			return m, "", err
		}
	}
	if m, err = store.Verify(ctx, url); err != nil {
		return m, "", err
	}
	// Fail now rather than when the restore Job reads the backup.
	_, err = s.SignURL(ctx, store, url)
	return m, url, err
}

// findBackup is the URL of the newest backup that Git means. A manifest that cannot
// be read might be that of a newer one, so that it is unknown which is.
func (s Stores) findBackup(ctx context.Context, store backup.Store, namespace string, w desired.Restore) (string, error) {
	if w.From == nil {
		return "", errors.New("nobody knows where its backups are: name one with spec.source.objectURL")
	}
	place, err := backupsPlace(cmp.Or(w.From.Destination.ObjectURLTemplate, s.BackupURL), namespace, w.From.Cluster)
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
	chosen := Newest(all, namespace, *w.From, before)
	if chosen == nil {
		return "", fmt.Errorf("there is no %s among the %d backups at %s; look into the store, or name one with spec.source.objectURL",
			strings.TrimPrefix(desired.SourceText(w.Source), "the newest "), len(all), desired.WithoutQuery(place))
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

// Newest is the newest of a cluster's backups, by its time and its revision as
// numbers, that was begun before a time, if one is given. One that a trial restore
// has found bad is no backup.
func Newest(all []backup.Manifest, namespace string, from desired.RestoreFrom, before time.Time) *backup.Manifest {
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
