package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// provisionedBy is the annotation that says which provisioner made a volume.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// growInterval is how soon a claim that asks for more gets it, at the latest.
const growInterval = time.Second

// grower gives claims the size they ask for when it is more than they have.
type grower struct {
	client      kubernetes.Interface
	disks       disks
	provisioner string
}

func (g grower) run(ctx context.Context) {
	factory := informers.NewSharedInformerFactory(g.client, 0)
	claims := factory.Core().V1().PersistentVolumeClaims().Lister()
	volumes := factory.Core().V1().PersistentVolumes().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	tick := time.NewTicker(growInterval)
	defer tick.Stop()
	for {
		if err := g.growAll(ctx, claims, volumes); err != nil {
			log.Println("grow volumes:", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (g grower) growAll(ctx context.Context, claims corelisters.PersistentVolumeClaimLister, volumes corelisters.PersistentVolumeLister) error {
	all, err := claims.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	for _, claim := range all {
		volume, err := volumes.Get(claim.Spec.VolumeName)
		if err != nil || volume.Annotations[provisionedBy] != g.provisioner || !wantsMore(claim) {
			continue
		}
		if err := g.grow(ctx, claim, volume); err != nil {
			return fmt.Errorf("claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		log.Printf("claim %s/%s: grown", claim.Namespace, claim.Name)
	}
	return nil
}

// grow enlarges the disk first, then the volume, then the claim's status: the
// order in which a user may rely on them.
func (g grower) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if err := g.disks.grow(ctx, volume.Name, size.Value()); err != nil {
		return err
	}
	capacity := map[string]any{"capacity": corev1.ResourceList{corev1.ResourceStorage: size}}
	patch, err := json.Marshal(map[string]any{"spec": capacity})
	if err != nil {
		return fmt.Errorf("write patch of volume: %w", err)
	}
	if _, err := g.client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch volume: %w", err)
	}
	capacity["conditions"] = nil
	if patch, err = json.Marshal(map[string]any{"status": capacity}); err != nil {
		return fmt.Errorf("write patch of claim: %w", err)
	}
	_, err = g.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("patch status of claim: %w", err)
	}
	return nil
}

// wantsMore reports whether a bound claim asks for more than it has.
func wantsMore(claim *corev1.PersistentVolumeClaim) bool {
	want, have := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && want.Cmp(have) > 0
}
