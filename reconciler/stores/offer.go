package stores

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// OfferTime is for how long a restore may read a backup: its pod may have to wait
// for its node.
const OfferTime = 6 * time.Hour

// renewAfter is how old an offer may be while a pod is to read by it. A signed URL lives
// no longer than the credentials that signed it, whatever time it names, and temporary
// ones may end in a quarter of an hour.
const renewAfter = 5 * time.Minute

// SignURL is a URL by which a pod without credentials reads a backup, for as long as a
// restore may take. Asked before, it says early what a restore could not do.
func (s Stores) SignURL(ctx context.Context, store backup.Store, objectURL string) (string, error) {
	if s.Sign != nil {
		return s.Sign(ctx, store, objectURL, OfferTime)
	}
	return store.Sign(ctx, objectURL, OfferTime)
}

// Offered is a backup that a pod is to read.
type Offered struct {
	ObjectURL string
	// Credentials is the Secret that opens its store, "" for the daemon's own way, and
	// Pod how a pod reads it by itself.
	Credentials string
	Pod         schema.PodAccess
}

// OfferedBy is a backup at a place as its destination lets pods read it.
func OfferedBy(to schema.Destination, objectURL string) Offered {
	return Offered{ObjectURL: objectURL, Credentials: to.Credentials.SecretName, Pod: to.PodAccess}
}

// Way is how a pod reads a backup: the zero value by a signed URL, else by itself, with
// exactly one of these.
type Way struct {
	// Credentials is a Secret with those of the store.
	Credentials string
	// Claim has the files, and is mounted at Root.
	Claim, Root string
	// ServiceAccount has an identity of its own at the store.
	ServiceAccount string
}

// Signed reports whether a pod reads it by a signed URL.
func (w Way) Signed() bool { return w == Way{} }

// Way says how a pod is to read a backup, with a URL where it is signed. Asked before,
// it says early what a restore could not do. A pod without credentials is preferred.
func (s Stores) Way(ctx context.Context, store backup.Store, o Offered) (w Way, signed string, err error) {
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	signed, err = s.SignURL(ctx, store, o.ObjectURL)
	root := backup.FileRoot(o.ObjectURL)
	switch {
	case err == nil:
		return Way{}, signed, nil
	case root != "" && o.Pod.ClaimName != "":
		return Way{Claim: o.Pod.ClaimName, Root: root}, "", nil
	case root != "":
		return w, "", fmt.Errorf("%w, or name a PersistentVolumeClaim that has the files in podAccess.claimName", err)
	case o.Credentials != "":
		return Way{Credentials: o.Credentials}, "", nil
	case o.Pod.ServiceAccountName != "":
		return Way{ServiceAccount: o.Pod.ServiceAccountName}, "", nil
	}
	return w, "", fmt.Errorf("%w, or give quorate the right to sign, or name a Secret in credentials.secretName, or a ServiceAccount in podAccess.serviceAccountName", err)
}

// Unreachable is why no restore could read a backup that is about to be taken, "" where one
// can. The text does not change with the backup's name, which no other has. A backup that no
// restore can read is better than none: it is taken all the same, and a person learns of it
// by day rather than at night.
func (s Stores) Unreachable(ctx context.Context, store backup.Store, o Offered) (string, error) {
	_, _, err := s.Way(ctx, store, o)
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	return strings.ReplaceAll(err.Error(), path.Base(desired.WithoutQuery(o.ObjectURL)), "…"), nil
}

// signTimeout bounds the signing of a URL, for which some stores have to be asked.
const signTimeout = 30 * time.Second

// KeepOffered renews, with renew, the Secret that offers a backup, while a pod is to read
// by it: the pod may start late, or have to ask again, when what was signed first has
// expired. Before it writes, lease is asked. The pod is as it was made, so that renew
// offers a signed URL and nothing else.
func (s Stores) KeepOffered(ctx context.Context, namespace, name string, now time.Time, lease func() error, renew func() error) error {
	due, err := s.renewalDue(ctx, namespace, name, now)
	if err != nil || !due {
		return err
	}
	if err := lease(); err != nil {
		return err
	}
	return renew()
}

// renewalDue reports whether a Secret that offers a backup is gone, or older than it may be.
func (s Stores) renewalDue(ctx context.Context, namespace, name string, now time.Time) (bool, error) {
	secret, err := kube.FoundOrNil(s.Kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{}))
	if err != nil {
		return false, fmt.Errorf("read Secret %s: %w", name, err)
	}
	if secret == nil {
		return true, nil
	}
	if len(secret.Data[KeyObject]) > 0 {
		return false, nil // nothing in it ends
	}
	// One that says nothing readable is as good as old.
	at, _ := time.Parse(time.RFC3339, secret.Annotations[naming.AnnotationOffered])
	age := now.Sub(at)
	return age < 0 || age >= renewAfter, nil
}

// Offer writes the Secret by which a pod reads a backup, and says which way that is: a URL
// that is good for some hours, with the certificate of the store's CA, where it has one
// of its own; or the object's own URL, which the pod opens by itself. Written again, it
// has a URL that is signed again.
func (s Stores) Offer(ctx context.Context, store backup.Store, o Offered, secret *corev1ac.SecretApplyConfiguration, now time.Time) (Way, error) {
	way, signed, err := s.Way(ctx, store, o)
	if err != nil {
		return way, err
	}
	data := map[string][]byte{KeyURL: []byte(signed)}
	if !way.Signed() {
		data = map[string][]byte{KeyObject: []byte(o.ObjectURL)}
	}
	if ca := store.Authority(); len(ca) > 0 {
		data[KeyCA] = ca
	}
	secret.WithType(corev1.SecretTypeOpaque).WithData(data).WithAnnotations(map[string]string{naming.AnnotationOffered: now.UTC().Format(time.RFC3339)})
	if err := s.applyOffer(ctx, secret); err != nil {
		return way, fmt.Errorf("write Secret %s: %w", *secret.Name, err)
	}
	return way, nil
}

// applyOffer writes a Secret that offers a backup. One that is there is written only where
// it is such an offer: its name may come from a record, which others may write, too.
func (s Stores) applyOffer(ctx context.Context, secret *corev1ac.SecretApplyConfiguration) error {
	secrets, owner := s.Kube.CoreV1().Secrets(*secret.Namespace), types.UID("")
	for _, o := range secret.OwnerReferences {
		owner = *o.UID
	}
	live, err := kube.FoundOrNil(secrets.Get(ctx, *secret.Name, metav1.GetOptions{}))
	how := metav1.ApplyOptions{FieldManager: naming.FieldManager} // one that comes in between is not overwritten
	switch {
	case err != nil:
		return err
	case live != nil && !kube.Marked(live, secret.Labels, owner):
		return errors.New("a Secret of this name exists, and is not quorate's: look at it, and delete or rename it")
	case live != nil:
		secret.WithUID(live.UID)
		how = kube.ApplyOptions()
	}
	_, err = secrets.Apply(ctx, secret, how)
	return err
}

const (
	// KeyURL is the key of the signed URL in a Secret that offers a backup.
	KeyURL = "url"
	// KeyObject is the key of the URL of an object that a pod opens by itself.
	KeyObject = "object"
	// KeyCA is the key of the certificate of the store's CA in it.
	KeyCA = "ca.crt"
)
