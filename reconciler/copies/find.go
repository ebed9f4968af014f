package copies

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Finder finds the copies that are not as Git says. A nil one finds none.
type Finder struct {
	Cache *Cache
	// Fights knows what was refused, and when that is tried again.
	Fights *drift.Fights
	Now    func() time.Time
}

// closedFor is when a namespace that cannot be read is looked at again: at each pass, before any
// copy is tried.
const closedFor = time.Hour

// Find compares the copies of a cluster with its Secrets, by name. clients are those Secrets that are
// to be issued first, and digest is that of the file.
func (f *Finder) Find(c schema.EtcdCluster, digest string, secrets map[string]*corev1.Secret, clients []state.ClientCertificate) (found []state.ClientCopy) {
	if f == nil {
		return nil
	}
	var wanting []certs.Wanting
	for _, client := range clients {
		wanting = append(wanting, certs.Wanting(client))
	}
	key := c.Metadata.Namespace + "/" + c.Metadata.Name
	for _, is := range certs.CheckCopies(c, secrets, wanting, f.Cache.Of(c)) {
		one := state.ClientCopy{Secret: is.Secret, Namespace: is.Namespace, Why: is.Why, Unwanted: is.Unwanted}
		if closed := f.Cache.Closed(is.Namespace); closed != "" {
			now := f.Now()
			one.Refused = &state.Refusal{Problem: closed + "; quorate needs its role in namespace " + is.Namespace + ", by a RoleBinding", Since: now, Until: now.Add(closedFor)}
		} else {
			one.Refused = f.Fights.Refusal(key, Object(one.Object()), digest)
		}
		found = append(found, one)
	}
	return found
}

// Object is the name by which a copy is known among the objects of its cluster, by its namespace and
// name.
func Object(name string) string { return "Secret/" + name }

// Refusal is why a copy is not written or deleted, and whether that is what an error is about: what
// only a person changes, or another try much later.
func Refusal(err error) (problem string, refused bool) {
	if apierrors.IsNotFound(err) { // not of the Secret: one that is not there is made, or is gone
		return fmt.Sprintf("%v", err), true
	}
	return kube.Refusal(err)
}
