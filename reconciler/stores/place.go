package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// ErrForeign says that what a record names is no backup of its object. Whoever may write
// ConfigMaps in a namespace may write its records, while quorate reaches the stores of all
// namespaces: what a record names is obeyed only where Git names it, too.
var ErrForeign = errors.New("it is not what Git names")

// uidOf matches what NewURL makes unique.
const uidOf = `[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}`

// Place is where Git puts the backups of one cluster.
type Place struct {
	// directory is a URL with a slash at the end of its path, and with Git's query.
	directory string
	// namespace and cluster are those that the manifests name.
	namespace, cluster string
	gives              *regexp.Regexp
}

// NewPlace is the place that a template gives to the backups of d's cluster. Its error is
// that of a template that gives none.
func NewPlace(template string, d schema.ObjectURLData) (p Place, err error) {
	p.namespace, p.cluster = d.Namespace, d.Name
	d.Version = cmp.Or(d.Version, "any")
	if p.directory, err = schema.ObjectURLDirectory(template, d); err != nil {
		return p, fmt.Errorf("where the backups of %s/%s are is not known: %w", d.Namespace, d.Name, err)
	}
	p.gives, err = schema.ObjectURLPattern(template, d, uidOf)
	return p, err
}

// Gives wants a URL to be one that NewURL can have made for a backup of this place. Only
// there is anything removed that has no manifest.
func (p Place) Gives(objectURL string) error {
	if p.gives == nil || !p.gives.MatchString(objectURL) {
		return p.foreign(objectURL)
	}
	return nil
}

// At is the URL of a backup that a record names, with the query that Git gives, when it lies
// in this place. It is a backup of the place if its manifest is one, see Owns: of any other
// nothing but the manifest is read, and nothing at all outside of this place.
func (p Place) At(objectURL string) (string, error) {
	if !p.holds(objectURL) {
		return "", p.foreign(objectURL)
	}
	return desired.WithQueryOf(desired.WithoutQuery(objectURL), p.directory), nil
}

// holds reports whether an object lies below the directory. The query of its URL is not
// looked at, for it is not used.
func (p Place) holds(objectURL string) bool {
	o, err := url.Parse(objectURL)
	return err == nil && !strings.HasSuffix(o.Path, "/") && schema.InObjectURLPlace(p.directory, objectURL)
}

// Owns wants a manifest to be of the cluster that the place is for: clusters may share one.
func (p Place) Owns(m backup.Manifest) error {
	if m.Namespace == p.namespace && m.Name == p.cluster {
		return nil
	}
	return fmt.Errorf("the record names the backup %s, whose manifest says that it is of %s/%s, and the record is about %s/%s: %w",
		m.Object, m.Namespace, m.Name, p.namespace, p.cluster, ErrForeign)
}

func (p Place) foreign(objectURL string) error {
	return fmt.Errorf("the record names the backup %s, and Git puts those of %s/%s at %s: %w",
		desired.WithoutQuery(objectURL), p.namespace, p.cluster, desired.WithoutQuery(p.directory), ErrForeign)
}

// InGit is the backup that the record of a recovery or a restore names, and the way to it,
// both as Git says: it is the very URL that the file names, or lies where the file says
// that the backups are, with a manifest of that cluster. Where keys are trusted, that is
// signed, and of the bytes that the record names.
func (s Stores) InGit(ctx context.Context, c desired.Cluster, objectURL, sha256 string) (backup.Store, Offered, error) {
	o, place, trust, err := s.named(c, objectURL)
	if err == nil && place != nil {
		o.ObjectURL, err = place.At(objectURL)
	}
	if err != nil {
		return backup.Store{}, o, told(err)
	}
	store, err := s.OpenWith(ctx, c.Metadata.Namespace, o.Credentials, o.ObjectURL)
	signed := len(s.keys(trust)) > 0
	if err != nil || place == nil && !signed {
		return store, o, err
	}
	m, err := store.ReadManifest(ctx, o.ObjectURL)
	if err == nil && place != nil {
		err = place.Owns(m)
	}
	if err == nil {
		err = s.Trusted(m, trust)
	}
	if err == nil && signed && m.SHA256 != sha256 {
		err = fmt.Errorf("the record names the backup %s with sha256 %s, and its manifest says %s: %w", m.Object, sha256, m.SHA256, ErrForeign)
	}
	return store, o, told(err)
}

// named says how Git lets the backup at a URL be read, where Git does not name that very
// URL the place in which it lies, and whose signature it must have.
func (s Stores) named(c desired.Cluster, objectURL string) (Offered, *Place, Trust, error) {
	w, own := c.Restore, OfferedBy(c.Spec.Backup.Destination, objectURL)
	// is reports whether a file names that very backup, in full or as holds print it.
	is := func(secret, named string) bool {
		return objectURL == named || objectURL == s.At(c.Metadata.Namespace, secret, named)
	}
	switch {
	case w != nil && is(w.Credentials(), w.Source.ObjectURL):
		return Offered{ObjectURL: s.At(c.Metadata.Namespace, w.Credentials(), objectURL), Credentials: w.Credentials(), Pod: w.PodAccess()}, nil, TrustOf(w.Source), nil
	case is(own.Credentials, c.Spec.Recovery.ObjectURL):
		own.ObjectURL = s.At(c.Metadata.Namespace, own.Credentials, objectURL)
		return own, nil, TrustOfRecovery(c.Spec.Recovery), nil
	}
	if w != nil && w.Source.ObjectURL == "" && w.From != nil {
		place, err := NewPlace(cmp.Or(w.From.Destination.ObjectURLTemplate, s.BackupURL), schema.ObjectURLData{Namespace: c.Metadata.Namespace, Name: w.From.Cluster})
		if err == nil && place.holds(objectURL) {
			return Offered{ObjectURL: objectURL, Credentials: w.Credentials(), Pod: w.PodAccess()}, &place, TrustOf(w.Source), nil
		}
	}
	place, err := NewPlace(c.BackupURL(s.BackupURL), schema.ObjectURLData{Namespace: c.Metadata.Namespace, Name: c.Metadata.Name})
	if err != nil {
		return Offered{}, nil, Trust{}, told(fmt.Errorf("the record names the backup %s, which the file does not: %w", desired.WithoutQuery(objectURL), ErrForeign))
	}
	return own, &place, TrustOfRecovery(schema.RecoverySpec{}), nil
}

// told adds what a person can do about a backup that Git does not name.
func told(err error) error {
	if !errors.Is(err, ErrForeign) {
		return err
	}
	return fmt.Errorf("%w; nothing of it is given out: name that backup in the file until the restore is over, or restore the record's ConfigMap as it was before", err)
}
