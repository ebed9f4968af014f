package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	// storeURL is where the API server's etcd listens: not at etcd's own
	// port, which may be taken.
	storeURL     = "http://127.0.0.1:22379"
	storePeerURL = "http://127.0.0.1:22380"

	provisionerName = "sandbox.quorate.dev/disk"
)

// controlPlane names the processes outside the nodes, in the order of starting.
func controlPlane() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns", "provisioner"}
}

// controlPlaneUp starts the control plane and waits until it serves.
func (s *sandbox) controlPlaneUp(ctx context.Context) error {
	if err := s.startStore(); err != nil {
		return err
	}
	if err := s.startAPIServer(ctx); err != nil {
		return err
	}
	if err := s.applyBase(ctx); err != nil {
		return err
	}
	for _, start := range []func() error{s.startControllerManager, s.startScheduler, s.startDNS, s.startProvisioner} {
		if err := start(); err != nil {
			return err
		}
	}
	return nil
}

// startStore starts the API server's etcd. It never syncs: nothing in it is
// worth more than the sandbox, and the disk is needed by those under test.
func (s *sandbox) startStore() error {
	etcd, err := s.execPath("etcd-" + storeVersion)
	if err != nil {
		return err
	}
	return s.start("etcd", etcd,
		"--name=store",
		"--data-dir="+s.path("store"),
		"--unsafe-no-fsync",
		"--listen-client-urls="+storeURL,
		"--advertise-client-urls="+storeURL,
		"--listen-peer-urls="+storePeerURL,
		"--initial-advertise-peer-urls="+storePeerURL,
		"--initial-cluster=store="+storePeerURL,
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=10m",
	)
}

func (s *sandbox) startAPIServer(ctx context.Context) error {
	binary, err := s.execPath("kube-apiserver")
	if err != nil {
		return err
	}
	if err := writeFile(s.path("audit.yaml"), auditPolicy); err != nil {
		return err
	}
	err = s.start("kube-apiserver", binary,
		"--advertise-address="+hostIP,
		"--bind-address="+hostIP,
		"--secure-port=6443",
		"--etcd-servers="+storeURL,
		"--service-cluster-ip-range="+serviceCIDR,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--client-ca-file="+s.pki("ca.crt"),
		"--tls-cert-file="+s.pki("apiserver.crt"),
		"--tls-private-key-file="+s.pki("apiserver.key"),
		"--kubelet-client-certificate="+s.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key="+s.pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+s.pki("service-account.key"),
		"--service-account-signing-key-file="+s.pki("service-account.key"),
		"--audit-policy-file="+s.path("audit.yaml"),
		"--audit-log-path="+s.logPath("audit"),
		"--audit-log-maxsize=1000", // MB; nothing is read of what was before
		"--audit-log-maxbackup=1",
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	ready := func() error {
		return s.get(ctx, "/readyz", nil)
	}
	return s.awaitProcess(ctx, "API server", 2*time.Minute, ready, "kube-apiserver", "etcd")
}

// auditPolicy keeps who asked what, for tests that ask whether a right is used. What Kubernetes
// asks itself is left out: it is most of all.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    userGroups: [system:nodes, system:serviceaccounts:kube-system]
  - level: None
    users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler]
  - level: None
    nonResourceURLs: ["*"]
  - level: Metadata
`

// startControllerManager notices a dead node after 20 s rather than 40 s; when
// pods are evicted from it is left at the default.
func (s *sandbox) startControllerManager() error {
	binary, err := s.execPath("kube-controller-manager")
	if err != nil {
		return err
	}
	return s.start("kube-controller-manager", binary,
		"--kubeconfig="+s.kubeconfig("controller-manager"),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port=0",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+s.pki("service-account.key"),
		"--root-ca-file="+s.pki("ca.crt"),
		"--node-monitor-grace-period=20s",
		"--node-monitor-period=2s",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	)
}

func (s *sandbox) startScheduler() error {
	binary, err := s.execPath("kube-scheduler")
	if err != nil {
		return err
	}
	return s.start("kube-scheduler", binary,
		"--kubeconfig="+s.kubeconfig("scheduler"),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port=0",
	)
}

// startDNS serves the cluster's names at the machine's own address, where pods
// of every node reach it without a service in between. Other names it refuses.
func (s *sandbox) startDNS() error {
	binary, err := s.execPath("coredns")
	if err != nil {
		return err
	}
	corefile := fmt.Sprintf(`.:53 {
    bind %s
    errors
    kubernetes cluster.local in-addr.arpa {
        kubeconfig %s
        pods insecure
    }
}
`, hostIP, s.kubeconfig("admin"))
	if err := writeFile(s.path("Corefile"), corefile); err != nil {
		return err
	}
	return s.start("coredns", binary, "-conf", s.path("Corefile"))
}

func (s *sandbox) startProvisioner() error {
	binary, err := s.execPath("provisioner")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.path("volumes"), 0o755); err != nil {
		return fmt.Errorf("make directory for volumes: %w", err)
	}
	return s.start("provisioner", binary,
		"-kubeconfig="+s.kubeconfig("admin"),
		"-dir="+s.path("volumes"),
		"-name="+provisionerName,
	)
}

// storageClass is what the cluster has from the start.
const storageClass = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: ` + provisionerName + `
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
allowVolumeExpansion: true
`

// applyBase awaits the built-in roles and namespaces too: they follow a moment
// after the API server is ready.
func (s *sandbox) applyBase(ctx context.Context) error {
	apply := func() error {
		return s.apply(ctx, "/apis/storage.k8s.io/v1/storageclasses/standard", storageClass)
	}
	return s.awaitProcess(ctx, "storage class", 30*time.Second, apply, "kube-apiserver")
}
