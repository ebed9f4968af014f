package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/reconciler/certs"
	"github.com/quorate/quorate/reconciler/guard"
	"github.com/quorate/quorate/reconciler/kube"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/test/lab"
)

// seeders is how many clusters are made at the same time.
const seeders = 24

// seed makes everything that quorate makes of clusters, as they are once they have formed.
func seed(ctx context.Context, api kubernetes.Interface, source string, clusters []clusterName) error {
	for i := range namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}}
		if _, err := api.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("make a namespace: %w", err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range seeders {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(clusters)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := seedOne(ctx, api, source, clusters[i]); err != nil {
					cancel(fmt.Errorf("make %s: %w", clusters[i].key(), err))
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func seedOne(ctx context.Context, api kubernetes.Interface, source string, name clusterName) error {
	c, apply := name.file(), kube.ApplyOptions()
	m, err := manifests.Render(c, manifests.Options{GuardImage: lab.Image, ClusterDomain: "cluster.local", Repository: manifests.DefaultRepository, Partition: c.Spec.Replicas})
	if err != nil {
		return err
	}
	secrets, err := certs.Issue(c, "cluster.local", nil, time.Now())
	if err != nil {
		return err
	}
	for _, s := range secrets {
		if _, err := api.CoreV1().Secrets(c.Metadata.Namespace).Create(ctx, s, metav1.CreateOptions{FieldManager: naming.FieldManager}); err != nil {
			return err
		}
	}
	_, err1 := api.CoreV1().ConfigMaps(c.Metadata.Namespace).Apply(ctx, recordOf(name, c, source).ConfigMap(c), apply)
	_, err2 := api.CoreV1().Services(c.Metadata.Namespace).Apply(ctx, m.Headless, apply)
	_, err3 := api.CoreV1().Services(c.Metadata.Namespace).Apply(ctx, m.Client, apply)
	_, err4 := api.PolicyV1().PodDisruptionBudgets(c.Metadata.Namespace).Apply(ctx, m.PDB, apply)
	_, err5 := api.AppsV1().StatefulSets(c.Metadata.Namespace).Apply(ctx, m.StatefulSet, apply)
	return errors.Join(err1, err2, err3, err4, err5)
}

// recordOf is the record of a cluster that has formed.
func recordOf(name clusterName, c schema.EtcdCluster, source string) record.Record {
	r := record.New(c.Metadata.Name + "-0123456789abcdef")
	r.Floors = map[string]guard.Floor{}
	r.ClusterID, r.BornOn = strconv.FormatUint(name.id(), 16), "3.6"
	for i := range c.Spec.Replicas {
		member, id := naming.Member(c.Metadata.Name, i), strconv.FormatUint(name.memberID(i), 16)
		r.Members[member], r.Floors[member] = id, guard.Floor{ID: id, Term: 2, Index: 100}
	}
	r.FlooredAt, r.HighestRevision = time.Now().UTC(), 7
	r.Owner = &record.Owner{Source: source, Instance: "default", Claim: 1}
	r.Applied = &record.Applied{SpecHash: schema.SpecHash(c.Spec), Version: c.Spec.Version, Commit: "0a1b2c3"}
	return r
}
