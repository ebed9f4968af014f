package follow

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/sources"
)

// accepted is what of Git outlives the process: the commit that was accepted last. Its
// history tells a rewritten branch from a new commit, its clusters tell how many change,
// its backups and schedules stay where the next commit breaks their documents, and its
// files stay in force when a daemon starts while the repository cannot be read.
type accepted struct {
	snapshot sources.Snapshot
	clusters map[string]desired.Origin
	backups  []desired.Backup
	// approval is the one that was used for it, if any, and spent the value of
	// --approve-commit that was used last.
	approval Approval
	spent    string
}

// store keeps the accepted commit in a ConfigMap next to the lease, one for each daemon
// and for each source that it follows.
type store struct {
	kube                    kubernetes.Interface
	namespace, name, source string
}

func newStore(kube kubernetes.Interface, namespace, instance, source string) store {
	return store{kube: kube, namespace: namespace, name: "quorate-git-" + Identity(instance, source), source: source}
}

// Identity is the part of names that is unique to an instance and the source that it
// follows.
func Identity(instance, source string) string {
	sum := sha256.Sum256([]byte(instance + "\n" + source))
	return hex.EncodeToString(sum[:5])
}

// storeFormat is the newest format of the ConfigMap that this quorate knows. It rises when an
// older reader would misread it; one without a number is of the first.
const storeFormat = 1

// The keys of the ConfigMap. Those of the approval, the source and the subject are for people.
const (
	keyFormat   = "formatVersion"
	keySource   = "source"
	keyCommit   = "commit"
	keySubject  = "subject"
	keySnapshot = "snapshot.json.gz"
	keyClusters = "clusters.json.gz"
	keyRequests = "requests.json.gz"

	// keyApproved and keyApprovedBy say which approval the commit was accepted by, and
	// keySpent which value of --approve-commit counts no more.
	keyApproved   = "approved"
	keyApprovedBy = "approvedBy"
	keySpent      = "spentApproval"

	// maxStoredBytes leaves room below the megabyte that an object may have.
	maxStoredBytes = 900 << 10
	// maxUnpackedBytes is above the limit of the files of one commit.
	maxUnpackedBytes = 128 << 20
)

func (k store) String() string { return k.namespace + "/" + k.name }

// load returns nil if nothing is stored yet.
func (k store) load(ctx context.Context) (*accepted, error) {
	cm, err := k.kube.CoreV1().ConfigMaps(k.namespace).Get(ctx, k.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s with the commit that was accepted last: %w", k, err)
	}
	if err := checkFormat(cm.Data[keyFormat]); err != nil {
		return nil, fmt.Errorf("ConfigMap %s with the commit that was accepted last: %w", k, err)
	}
	found := &accepted{spent: cm.Data[keySpent]}
	if found.approval, err = ParseApproval(cm.Data[keyApproved]); err != nil {
		return nil, k.damaged(err)
	}
	found.approval.By = cm.Data[keyApprovedBy]
	if err := unzip(cm.BinaryData[keyClusters], &found.clusters); err != nil {
		return nil, k.damaged(err)
	}
	for key, value := range map[string]any{keyRequests: &found.backups, keySnapshot: &found.snapshot} {
		if packed, there := cm.BinaryData[key]; there {
			if err := unzip(packed, value); err != nil {
				return nil, k.damaged(err)
			}
		}
	}
	found.snapshot.Commit = cm.Data[keyCommit]
	if found.snapshot.Commit == "" {
		return nil, k.damaged(fmt.Errorf("it names no commit"))
	}
	return found, nil
}

// checkFormat returns an error for what a newer quorate has written.
func checkFormat(text string) error {
	if text == "" {
		return nil
	}
	switch format, err := strconv.Atoi(text); {
	case err != nil:
		return fmt.Errorf("%s %q is no number: restore the ConfigMap", keyFormat, text)
	case format > storeFormat:
		return fmt.Errorf("format %d was written by a newer quorate and this one knows formats up to %d: run the newer one", format, storeFormat)
	}
	return nil
}

func (k store) damaged(err error) error {
	return fmt.Errorf("ConfigMap %s with the commit that was accepted last cannot be parsed: %w; restore it, or delete it to follow what is in Git now whatever was there before", k, err)
}

// errOvertaken keeps a process that was paused from undoing what another has accepted meanwhile.
var errOvertaken = errors.New("another quorate has accepted a commit meanwhile")

// save stores a commit before it is applied, in place of the one before. What is too large for a ConfigMap is left
// out, the files first; whole reports whether nothing was.
func (k store) save(ctx context.Context, next accepted, before string) (whole bool, err error) {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: k.name, Namespace: k.namespace, Labels: map[string]string{"app.kubernetes.io/managed-by": "quorate"}},
		Data:       map[string]string{keyFormat: strconv.Itoa(storeFormat), keySource: k.source, keyCommit: next.snapshot.Commit, keySubject: next.snapshot.Subject},
		BinaryData: map[string][]byte{},
	}
	for key, value := range map[string]string{keyApproved: next.approval.String(), keyApprovedBy: next.approval.By, keySpent: next.spent} {
		if value != "" {
			cm.Data[key] = value
		}
	}
	size, whole := 0, true
	for _, part := range []struct {
		key   string
		value any
	}{{keyClusters, next.clusters}, {keyRequests, next.backups}, {keySnapshot, next.snapshot}} {
		room := maxStoredBytes - size
		if part.key == keyClusters {
			room = math.MaxInt // without them no commit is safe: let the API server refuse them
		}
		packed, err := zip(part.value, room)
		if errors.Is(err, errNoRoom) {
			whole = false
			if packed, err = zip(next.snapshot.WithoutFiles(), math.MaxInt); err != nil {
				return false, err
			}
			cm.BinaryData[keySnapshot] = packed
			break
		}
		if err != nil {
			return false, err
		}
		size += len(packed)
		cm.BinaryData[part.key] = packed
	}
	if err := k.put(ctx, cm, before); errors.Is(err, errOvertaken) {
		return false, fmt.Errorf("save commit %s in ConfigMap %s: %w; it is read again", next.snapshot.Commit, k, err)
	} else if err != nil {
		return false, fmt.Errorf("save commit %s in ConfigMap %s: %w; the commit is applied only after it was saved; create the namespace, or set --lease-namespace", next.snapshot.Commit, k, err)
	}
	return whole, nil
}

// put creates the ConfigMap, or replaces that of the commit before, and keeps its annotations. Where it names another
// commit than before, an approval is used up, or was for a transition that is not to be; and
// so is one of another tag at the same commit.
func (k store) put(ctx context.Context, cm *corev1.ConfigMap, before string) error {
	api := k.kube.CoreV1().ConfigMaps(k.namespace)
	old, err := api.Get(ctx, k.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, cm, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if old.Data[keyCommit] != before {
		return errOvertaken
	}
	cm.ResourceVersion, cm.Annotations = old.ResourceVersion, old.Annotations
	used := cm.Data[keyApproved] != old.Data[keyApproved] || cm.Data[keyApprovedBy] != old.Data[keyApprovedBy]
	if used || cm.Data[keyCommit] != old.Data[keyCommit] {
		delete(cm.Annotations, annotationApprove)
	}
	_, err = api.Update(ctx, cm, metav1.UpdateOptions{})
	return err
}

// errNoRoom says that a part is larger than it may be.
var errNoRoom = errors.New("it is too large")

// room is a buffer of so many bytes.
type room struct {
	bytes.Buffer
	left int
}

// Write returns errNoRoom once it is full.
func (r *room) Write(p []byte) (int, error) {
	if r.left -= len(p); r.left < 0 {
		return 0, errNoRoom
	}
	return r.Buffer.Write(p)
}

// zip packs a value. It stops with errNoRoom where that takes more bytes than there are.
func zip(value any, most int) ([]byte, error) {
	packed := &room{left: most}
	w := gzip.NewWriter(packed)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		return nil, err
	}
	err := w.Close()
	return packed.Bytes(), err
}

func unzip(packed []byte, value any) error {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(r, maxUnpackedBytes)).Decode(value)
}
