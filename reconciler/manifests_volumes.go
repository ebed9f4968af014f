package reconciler

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/schema"
)

// Where the certificates are in a member's pod.
const (
	podServerCertPath = "/etc/quorate/tls/server"
	podPeerCertPath   = "/etc/quorate/tls/peer"
)

// The volumes with certificates; a pod without them speaks clear text.
const (
	serverTLSVolume = "tls-server"
	peerTLSVolume   = "tls-peer"
)

func renderEtcdMounts(c schema.EtcdCluster, o RenderOptions) []*corev1ac.VolumeMountApplyConfiguration {
	mounts := []*corev1ac.VolumeMountApplyConfiguration{
		corev1ac.VolumeMount().WithName(o.claimPrefix()).WithMountPath(podVolumePath),
	}
	if usesTLS(c) {
		mounts = append(mounts,
			corev1ac.VolumeMount().WithName(serverTLSVolume).WithMountPath(podServerCertPath).WithReadOnly(true),
			corev1ac.VolumeMount().WithName(peerTLSVolume).WithMountPath(podPeerCertPath).WithReadOnly(true))
	}
	return mounts
}

func renderVolumes(c schema.EtcdCluster) []*corev1ac.VolumeApplyConfiguration {
	volumes := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName("record").WithConfigMap(corev1ac.ConfigMapVolumeSource().
			WithName(RecordName(c)).
			WithItems(corev1ac.KeyToPath().WithKey(keyRecord).WithPath(keyRecord))),
	}
	if usesTLS(c) {
		volumes = append(volumes,
			corev1ac.Volume().WithName(serverTLSVolume).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(tlsSecrets(c).Server)),
			corev1ac.Volume().WithName(peerTLSVolume).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(tlsSecrets(c).Peer)))
	}
	return volumes
}

// tlsArgs asks for certificates on both sides of both ports.
func tlsArgs(c schema.EtcdCluster) []string {
	if !usesTLS(c) {
		return nil
	}
	return []string{
		"--cert-file=" + podServerCertPath + "/tls.crt",
		"--key-file=" + podServerCertPath + "/tls.key",
		"--trusted-ca-file=" + podServerCertPath + "/ca.crt",
		"--client-cert-auth=true",
		"--peer-cert-file=" + podPeerCertPath + "/tls.crt",
		"--peer-key-file=" + podPeerCertPath + "/tls.key",
		"--peer-trusted-ca-file=" + podPeerCertPath + "/ca.crt",
		"--peer-client-cert-auth=true",
	}
}
