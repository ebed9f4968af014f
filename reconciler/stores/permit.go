package stores

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/schema"
)

// permit refuses a URL that would send the daemon's own identity to where a file in Git
// says, and one that sends anything in the clear. A file is validated before, and yet a
// URL may come from a record that an earlier quorate wrote, or with a Secret that turns
// out to have a CA and no keys: this is the last look before the first request.
func (s Stores) permit(namespace string, store backup.Store, objectURL string) error {
	err := schema.CheckStoreAccess(objectURL, !store.FromEnvironment(), s.own(namespace))
	if err != nil {
		return fmt.Errorf("the backup store of %s is not used: %w", desired.WithoutQuery(objectURL), err)
	}
	if err := s.serves(namespace, store, objectURL); err != nil {
		return fmt.Errorf("the backup store of %s is not used: %w", desired.WithoutQuery(objectURL), err)
	}
	if param := schema.UnencryptedParam(objectURL); param != "" && !s.Insecure {
		return fmt.Errorf("the backup store of %s is not used: by its parameter %s it is reached without TLS, so that backups and what proves who quorate is could be read on the way: write https, or start quorate with --insecure-stores", desired.WithoutQuery(objectURL), param)
	}
	return nil
}

// serves refuses what the daemon's own credentials, and its own disk, do not serve for objects
// of a namespace: the platform names the places for that, and no file does.
func (s Stores) serves(namespace string, store backup.Store, objectURL string) error {
	u, err := url.Parse(objectURL)
	onDisk := err != nil || u.Scheme == "file"
	if !store.FromEnvironment() && !onDisk {
		return nil
	}
	places := s.places(namespace)
	if slices.ContainsFunc(places, func(place string) bool { return schema.InObjectURLPlace(place, objectURL) }) {
		return nil
	}
	where := "nowhere"
	if len(places) > 0 {
		where = "at " + strings.Join(places, ", ")
	}
	if onDisk {
		return fmt.Errorf("files of quorate's own disk are backups of namespace %s %s, as --backup-url and --backup-place say: have the place added to --backup-place, or name an object store", namespace, where)
	}
	return fmt.Errorf("quorate's own credentials serve namespace %s %s, as --backup-url and --backup-place say: name a Secret with keys for this store as credentials.secretName, or have the place added to --backup-place", namespace, where)
}

// places are what the URLs of a namespace's backups begin with at the daemon's places.
func (s Stores) places(namespace string) []string {
	var places []string
	for _, template := range append([]string{s.BackupURL}, s.More...) {
		if place, err := schema.ObjectURLPlace(template, namespace); err == nil {
			places = append(places, place)
		}
	}
	return places
}

// own is a URL at the daemon's place for backups, "" where there is none: what its
// parameters name of a cluster is the namespace at most.
func (s Stores) own(namespace string) string {
	text, err := schema.ExpandObjectURL(s.BackupURL, schema.ObjectURLData{Namespace: namespace, Name: "any", Version: "any", UID: "any"})
	if err != nil {
		return ""
	}
	return text
}

// At is how a backup is reached that a file names without parameters, as holds and lists
// name backups: in the bucket of --backup-url, and without a Secret, it is with the
// parameters of that.
func (s Stores) At(namespace, secret, objectURL string) string {
	own := s.own(namespace)
	if secret != "" || bucketOf(objectURL) == "" || bucketOf(objectURL) != bucketOf(own) {
		return objectURL
	}
	return desired.WithQueryOf(objectURL, own)
}

// bucketOf is the bucket of an object URL with its scheme, "" for none and for files.
func bucketOf(objectURL string) string {
	u, err := url.Parse(objectURL)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
