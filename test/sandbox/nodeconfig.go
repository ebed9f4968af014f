package main

import (
	"fmt"
	"os"
)

// registryConfig sends every pull to a port that nothing listens on, so that
// an image that was not loaded is an error at once.
const registryConfig = `server = "http://127.0.0.1:1"
`

// cniPlugins returns the directory of the CNI plugins: Debian's, or the one
// that everybody else uses.
func cniPlugins() (string, error) {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		if _, err := os.Stat(dir + "/bridge"); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no CNI plugins at /usr/lib/cni or /opt/cni/bin; install the package containernetworking-plugins")
}

// containerdConfig restricts the OOM score, because lowering it needs a
// capability that root in a container lacks.
func (n node) containerdConfig(plugins string) string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
  address = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      Root = %q
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %q
`, n.path("containerd"), n.path("run"), n.socket(), pauseImage, n.path("run", "runc"), plugins, n.path("cni"), n.path("registry"))
}

// podNetworkConfig lets a pod reach itself through a service (hairpinMode).
func (n node) podNetworkConfig() string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": %q,
  "plugins": [{
    "type": "bridge",
    "bridge": "cni0",
    "isGateway": true,
    "hairpinMode": true,
    "ipam": {
      "type": "host-local",
      "dataDir": %q,
      "ranges": [[{"subnet": %q}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`, n.namespace(), n.path("ipam"), n.podCIDR())
}

// kubeletConfig works on cgroup v1 and v2 alike, reports soon, and neither
// collects images nor evicts pods because of what the machine's disk is
// otherwise used for. Kubernetes 1.30, which does not know failCgroupV1, says so
// in its log and lets it be.
func (n node) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[2]q}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: %[3]q
cgroupsPerQOS: true
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
clusterDNS: [%[4]s]
clusterDomain: cluster.local
resolvConf: %[5]q
containerRuntimeEndpoint: "unix://%[6]s"
podLogsDir: %[7]q
volumePluginDir: %[8]q
oomScoreAdj: 0
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, nodefs.inodesFree: 1%%, imagefs.available: 1%%, imagefs.inodesFree: 1%%}
nodeLeaseDurationSeconds: 20
nodeStatusUpdateFrequency: 5s
syncFrequency: 10s
serializeImagePulls: false
`, n.ip(), n.sandbox.pki("ca.crt"), n.cgroup(), hostIP, n.path("resolv.conf"), n.socket(), n.path("pod-logs"), n.path("volume-plugins"))
}

// proxyConfig leaves the connection tracking settings alone, since those are
// the whole machine's.
func (n node) proxyConfig() string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: %s
clientConnection: {kubeconfig: %q}
detectLocalMode: ClusterCIDR
clusterCIDR: %s
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, n.name, n.sandbox.kubeconfig("proxy"), podCIDR)
}
