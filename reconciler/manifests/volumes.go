package manifests

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/schema"
)

// Where the certificates are in a member's pod.
const (
	podServerCertPath = "/etc/quorate/tls/server"
	podPeerCertPath   = "/etc/quorate/tls/peer"
	podTrustPath      = "/etc/quorate/tls/trust"
)

func renderEtcdMounts(c schema.EtcdCluster, o Options) []*corev1ac.VolumeMountApplyConfiguration {
	mounts := []*corev1ac.VolumeMountApplyConfiguration{
		corev1ac.VolumeMount().WithName(o.claimPrefix()).WithMountPath(naming.VolumePath),
	}
	if naming.UsesTLS(secured(c, o)) {
		mounts = append(mounts,
			corev1ac.VolumeMount().WithName(naming.ServerTLSVolume).WithMountPath(podServerCertPath).WithReadOnly(true),
			corev1ac.VolumeMount().WithName(naming.PeerTLSVolume).WithMountPath(podPeerCertPath).WithReadOnly(true))
	}
	if mountsTrust(c, o) {
		mounts = append(mounts, corev1ac.VolumeMount().WithName(naming.TrustVolume).WithMountPath(podTrustPath).WithReadOnly(true))
	}
	return mounts
}

// mountsTrust reports whether what members trust is in a Secret of its own.
func mountsTrust(c schema.EtcdCluster, o Options) bool {
	return naming.UsesTLS(secured(c, o)) && o.Trust != ""
}

func renderVolumes(c schema.EtcdCluster, o Options) []*corev1ac.VolumeApplyConfiguration {
	volumes := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName("record").WithConfigMap(corev1ac.ConfigMapVolumeSource().
			WithName(naming.Record(c.Metadata.Name)).
			WithItems(corev1ac.KeyToPath().WithKey(naming.KeyRecord).WithPath(naming.KeyRecord))),
	}
	if certified := secured(c, o); naming.UsesTLS(certified) {
		names := naming.TLSSecrets(certified)
		volumes = append(volumes,
			corev1ac.Volume().WithName(naming.ServerTLSVolume).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(names.Server)),
			corev1ac.Volume().WithName(naming.PeerTLSVolume).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(names.Peer)))
	}
	if mountsTrust(c, o) {
		volumes = append(volumes, corev1ac.Volume().WithName(naming.TrustVolume).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(o.Trust)))
	}
	return volumes
}

// tlsArgs asks for certificates on both sides of both ports.
func tlsArgs(c schema.EtcdCluster, o Options) []string {
	if !naming.UsesTLS(secured(c, o)) {
		return nil
	}
	clients, peers := podServerCertPath+"/"+naming.AuthorityCertKey, podPeerCertPath+"/"+naming.AuthorityCertKey
	if mountsTrust(c, o) {
		clients, peers = podTrustPath+"/"+naming.TrustedClientsKey, podTrustPath+"/"+naming.TrustedPeersKey
	}
	return []string{
		"--cert-file=" + podServerCertPath + "/tls.crt",
		"--key-file=" + podServerCertPath + "/tls.key",
		"--trusted-ca-file=" + clients,
		"--client-cert-auth=true",
		"--peer-cert-file=" + podPeerCertPath + "/tls.crt",
		"--peer-key-file=" + podPeerCertPath + "/tls.key",
		"--peer-trusted-ca-file=" + peers,
		"--peer-client-cert-auth=true",
	}
}
