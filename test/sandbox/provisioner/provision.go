package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// provisioner makes a disk for each claim, once the scheduler has chosen the
// node. The disk stays on that node, as the volume of a real local disk does.
type provisioner struct{ disks disks }

// Provision makes the disk and describes it as a persistent volume.
func (p provisioner) Provision(ctx context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if o.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished, errors.New("the storage class must have volumeBindingMode WaitForFirstConsumer: a disk belongs to one node")
	}
	size := o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]
	if err := p.disks.create(ctx, o.PVName, size.Value()); err != nil {
		return nil, controller.ProvisioningInBackground, err
	}
	mode := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			AccessModes:                   o.PVC.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			VolumeMode:                    &mode,
			// Local rather than HostPath, because kubelet applies a pod's fsGroup to it.
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: p.disks.data(o.PVName)},
			},
			NodeAffinity: onNode(o.SelectedNodeName),
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the disk of a released volume.
func (p provisioner) Delete(ctx context.Context, volume *corev1.PersistentVolume) error {
	return p.disks.remove(ctx, volume.Name)
}

func onNode(hostname string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{hostname},
			}},
		}},
	}}
}
