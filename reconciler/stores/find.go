package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// How long a listing of a store may take, which reads each manifest: one that decides, and
// one that only tells what lies beside a backup.
const (
	listTime   = 5 * time.Minute
	besideTime = 5 * time.Second
)

// Found is the backup that a restore begins with.
type Found struct {
	backup.Manifest
	// URL is where it is read.
	URL string
	// Text describes it, and how many newer ones there are and whose.
	Text string
	// Beside it are the backups at the place where it was found.
	Beside []backup.Manifest
}

// Find finds the backup that a restore names, and verifies it: every byte is read. With
// an object it is that one, which was chosen among those that the restore means before.
func (s Stores) Find(ctx context.Context, namespace string, w desired.Restore, object string, now time.Time) (Found, error) {
	store, place, err := s.openFor(ctx, namespace, w)
	if err != nil {
		return Found{}, err
	}
	f, err := s.choose(ctx, store, place, namespace, w, object, now)
	if err != nil {
		return f, err
	}
	if f.Manifest, err = store.Verify(ctx, f.URL); err != nil {
		return f, err
	}
	if err := s.Trusted(f.Manifest, TrustOf(w.Source)); err != nil {
		return f, err
	}
	// Fail now rather than when the restore Job reads the backup.
	_, _, err = s.Way(ctx, store, Offered{ObjectURL: f.URL, Credentials: w.Credentials(), Pod: w.PodAccess()})
	return f, err
}

// Choose is the backup that a restore would begin with now, in the planner's words, by
// its manifest alone. An error says that this is unknown, as the store does not answer.
func (s Stores) Choose(ctx context.Context, c desired.Cluster, now time.Time) (state.Chosen, error) {
	w := *c.Restore
	store, place, err := s.openFor(ctx, c.Metadata.Namespace, w)
	if err != nil {
		return state.Chosen{}, err
	}
	f, err := s.choose(ctx, store, place, c.Metadata.Namespace, w, "", now)
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		own := w.From != nil && w.From.Cluster == c.Metadata.Name && w.From.Schedule == "" && w.Source.Before == nil
		return state.Chosen{Problem: refused.Problem, Do: refused.Do, None: refused.None && own}, nil
	}
	if err != nil {
		return state.Chosen{}, err
	}
	chosen := state.Chosen{Object: f.Object, Text: f.Text}
	if refused := (*Refusal)(nil); errors.As(s.Trusted(f.Manifest, TrustOf(w.Source)), &refused) {
		chosen.Problem, chosen.Do = refused.Problem, refused.Do
		return chosen, nil
	}
	_, encrypted := f.Verified(w.Source.Decryption, "spec.source.decryption.secretName")
	if err := errors.Join(FitsRelease(f.Manifest, c.Spec.Version), FitsVolume(f.Manifest, c), encrypted); err != nil {
		chosen.Problem, chosen.Do = "the backup "+f.Text+": it cannot be restored so: "+err.Error(), "correct that in a new commit, or name another backup with spec.source.objectURL"
	}
	return chosen, nil
}

// openFor is the store of what a restore begins with, and where it is in that: the URL of
// the one backup that Git names, or the directory that all are in that it may mean.
func (s Stores) openFor(ctx context.Context, namespace string, w desired.Restore) (store backup.Store, place string, err error) {
	switch {
	case w.Source.ObjectURL != "":
		place = s.At(namespace, w.Credentials(), w.Source.ObjectURL)
	case w.From == nil:
		return store, "", errors.New("nobody knows where its backups are: name one with spec.source.objectURL")
	default:
		if place, err = backupsPlace(cmp.Or(w.From.Destination.ObjectURLTemplate, s.BackupURL), namespace, w.From.Cluster); err != nil {
			return store, "", err
		}
	}
	store, err = s.OpenWith(ctx, namespace, w.Credentials(), place)
	return store, place, err
}

// choose reads the manifest of the one that Git names, or chooses the newest one that
// Git means.
func (s Stores) choose(ctx context.Context, store backup.Store, place, namespace string, w desired.Restore, object string, now time.Time) (f Found, err error) {
	if w.Source.ObjectURL == "" {
		return s.findNewest(ctx, store, place, namespace, w, object, now)
	}
	f.URL = place
	if f.Manifest, err = store.ReadManifest(ctx, f.URL); err != nil {
		return f, err
	}
	// What lies beside it hides nothing of it: not what cannot be read, either.
	bounded, cancel := context.WithTimeout(ctx, besideTime)
	defer cancel()
	f.Beside, err = listed(store.List(bounded, f.URL))
	f.Text = describe(f.Manifest) + "; " + newer(f.Beside, f.Manifest)
	if err != nil {
		f.Text = describe(f.Manifest) + "; whether there are newer ones is unknown, because the backups beside it cannot be listed"
	}
	return f, nil
}

// findNewest is the newest backup that Git means. A manifest that cannot be read might be
// that of a newer one, so that it is unknown which is.
func (s Stores) findNewest(ctx context.Context, store backup.Store, place, namespace string, w desired.Restore, object string, now time.Time) (f Found, err error) {
	bounded, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	all, err := store.List(bounded, place)
	if err != nil {
		return f, fmt.Errorf("%w; name the backup that you want with spec.source.objectURL", err)
	}
	judged, err := s.judged(bounded, namespace, all)
	if err != nil {
		return f, err
	}
	candidates := Candidates(judged, namespace, *w.From, w.Source)
	for _, m := range candidates {
		if m.Object == object {
			return found(m, place, all), nil
		}
	}
	if len(candidates) == 0 {
		return f, &Refusal{
			Problem: fmt.Sprintf("there is no %s among the %d backups at %s", strings.TrimPrefix(desired.SourceText(w.Source), "the newest "), len(all), desired.WithoutQuery(place)),
			Do:      "look into the store, or name a backup with spec.source.objectURL",
			None:    true,
		}
	}
	lineage, err := s.lineage(ctx, namespace, w)
	if err != nil {
		return f, err
	}
	m, err := newest(candidates, lineage, now)
	return found(m, place, all), err
}

// found is a backup of a listing.
func found(m backup.Manifest, place string, all []backup.Manifest) Found {
	return Found{Manifest: m, URL: m.URL(place), Text: describe(m) + "; " + newer(all, m), Beside: all}
}

// lineage are the IDs of the clusters that Git can mean; empty where it is unknown.
func (s Stores) lineage(ctx context.Context, namespace string, w desired.Restore) ([]string, error) {
	if w.Source.ClusterID != "" {
		return []string{w.Source.ClusterID}, nil
	}
	c := schema.EtcdCluster{Metadata: schema.Metadata{Namespace: namespace, Name: w.From.Cluster}}
	live, err := record.Store{Kube: s.Kube}.Find(ctx, c)
	if live == nil || err != nil {
		return nil, err
	}
	rec, err := record.Read(live)
	if err != nil {
		return nil, fmt.Errorf("which cluster %s is, is unknown: %w; or name it with spec.source.clusterID", w.From.Cluster, err)
	}
	return rec.Lineage(), nil
}

// Reached is the highest revision in the manifests of backups of a cluster's name, at the
// place where its own go: what clusters of that name have served before, as far as their
// backups tell. One that cannot be read hides no other.
func (s Stores) Reached(ctx context.Context, c desired.Cluster) (reached int64, err error) {
	template := c.BackupURL(s.BackupURL)
	if template == "" {
		return 0, nil
	}
	place, err := backupsPlace(template, c.Metadata.Namespace, c.Metadata.Name)
	if err != nil {
		return 0, err
	}
	store, err := s.OfCluster(ctx, c, place)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	all, err := listed(store.List(ctx, place))
	return HighestRevision(all, c), err
}

// HighestRevision is the highest one in the manifests of backups of a cluster's name.
func HighestRevision(all []backup.Manifest, c desired.Cluster) (revision int64) {
	for _, m := range all {
		if m.Namespace == c.Metadata.Namespace && m.Name == c.Metadata.Name {
			revision = max(revision, m.Revision)
		}
	}
	return revision
}

// listed is a listing without the manifests that cannot be read.
func listed(all []backup.Manifest, err error) ([]backup.Manifest, error) {
	if broken := (*backup.BrokenManifests)(nil); errors.As(err, &broken) {
		return all, nil
	}
	return all, err
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
