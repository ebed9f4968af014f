package record

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// Store keeps records in ConfigMaps, past all caches.
type Store struct{ Kube kubernetes.Interface }

// Find is the ConfigMap of the cluster's record, nil where there is none.
func (s Store) Find(ctx context.Context, c schema.EtcdCluster) (*corev1.ConfigMap, error) {
	live, err := kube.FoundOrNil(s.Kube.CoreV1().ConfigMaps(c.Metadata.Namespace).Get(ctx, naming.Record(c.Metadata.Name), metav1.GetOptions{}))
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	return live, nil
}

// Get is the current record. That there is none is an error.
func (s Store) Get(ctx context.Context, c schema.EtcdCluster) (Record, error) {
	rec, _, err := s.get(ctx, c)
	return rec, err
}

func (s Store) get(ctx context.Context, c schema.EtcdCluster) (Record, *corev1.ConfigMap, error) {
	live, err := s.Kube.CoreV1().ConfigMaps(c.Metadata.Namespace).Get(ctx, naming.Record(c.Metadata.Name), metav1.GetOptions{})
	if err != nil {
		return Record{}, nil, fmt.Errorf("read the record: %w", err)
	}
	rec, err := Read(live)
	return rec, live, err
}

// Create writes the record of a cluster that has none. One that exists is left alone,
// and counts as done.
func (s Store) Create(ctx context.Context, c schema.EtcdCluster, rec Record) error {
	if err := s.create(ctx, c, rec); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the record: %w", err)
	}
	return nil
}

// create is not server-side apply, which would take over one that exists.
func (s Store) create(ctx context.Context, c schema.EtcdCluster, rec Record) error {
	want := rec.ConfigMap(c)
	_, err := s.Kube.CoreV1().ConfigMaps(c.Metadata.Namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: *want.Name, Namespace: *want.Namespace, Labels: want.Labels}, Data: want.Data,
	}, metav1.CreateOptions{FieldManager: naming.FieldManager})
	return err
}

// Replace writes a record in place of exactly the one that was read; nil for none.
func (s Store) Replace(ctx context.Context, c schema.EtcdCluster, rec Record, was *corev1.ConfigMap) error {
	err := error(nil)
	if was == nil {
		err = s.create(ctx, c, rec)
	} else {
		next := was.DeepCopy()
		next.Data = rec.ConfigMap(c).Data
		_, err = s.Kube.CoreV1().ConfigMaps(c.Metadata.Namespace).Update(ctx, next, metav1.UpdateOptions{FieldManager: naming.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	return nil
}

// Update changes the current record, and returns what it has become. It fails
// where it is changed at the same time, where change does, and with
// ErrChanged where the cluster belongs to another owner; the zero Owner is any. A change that changes nothing is not written.
func (s Store) Update(ctx context.Context, c schema.EtcdCluster, owner state.Owner, change func(*Record) error) (Record, error) {
	rec, live, err := s.get(ctx, c)
	if err != nil {
		return Record{}, err
	}
	if was := OwnerOf(rec); was != nil && !owner.Nobody() && !was.Is(owner) {
		return Record{}, state.ErrChanged
	}
	before := rec.ConfigMap(c).Data
	if err := change(&rec); err != nil {
		return Record{}, err
	}
	if maps.Equal(rec.ConfigMap(c).Data, before) && maps.Equal(live.Data, before) {
		return rec, nil
	}
	rec.Revision++
	live.Data = rec.ConfigMap(c).Data
	if _, err := s.Kube.CoreV1().ConfigMaps(c.Metadata.Namespace).Update(ctx, live, metav1.UpdateOptions{FieldManager: naming.FieldManager}); err != nil {
		return Record{}, fmt.Errorf("write the record: %w", err)
	}
	return rec, nil
}
