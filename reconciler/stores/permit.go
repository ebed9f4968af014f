package stores

import (
	"fmt"
	"net/url"

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
	if param := schema.UnencryptedParam(objectURL); param != "" && !s.Insecure {
		return fmt.Errorf("the backup store of %s is not used: by its parameter %s it is reached without TLS, so that backups and what proves who quorate is could be read on the way: write https, or start quorate with --insecure-stores", desired.WithoutQuery(objectURL), param)
	}
	return nil
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
