package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const nodeCount = 3

// node is one of the cluster's nodes: a network namespace with a kubelet, a
// containerd and a kube-proxy of its own.
type node struct {
	sandbox *sandbox
	number  int
	name    string
}

func (s *sandbox) nodes() []node {
	var all []node
	for i := 1; i <= nodeCount; i++ {
		all = append(all, node{sandbox: s, number: i, name: fmt.Sprintf("node-%d", i)})
	}
	return all
}

func (s *sandbox) node(name string) (node, error) {
	var names []string
	for _, n := range s.nodes() {
		if n.name == name {
			return n, nil
		}
		names = append(names, n.name)
	}
	return node{}, fmt.Errorf("no node is named %s; there are %s", name, strings.Join(names, ", "))
}

func (n node) namespace() string { return "quorate-" + n.name }
func (n node) ip() string        { return fmt.Sprintf("10.88.0.%d", 10+n.number) }
func (n node) podCIDR() string   { return fmt.Sprintf("10.244.%d.0/24", n.number) }
func (n node) cgroup() string    { return cgroupRoot + "/" + n.name }
func (n node) socket() string    { return n.path("containerd.sock") }

func (n node) path(elements ...string) string {
	return n.sandbox.path(append([]string{"nodes", n.name}, elements...)...)
}

// The processes of a node, in the order of starting.
func (n node) containerd() string { return "containerd-" + n.name }
func (n node) kubelet() string    { return "kubelet-" + n.name }
func (n node) proxy() string      { return "kube-proxy-" + n.name }

func (n node) processes() []string { return []string{n.containerd(), n.kubelet(), n.proxy()} }

// up starts what of the node does not run.
func (n node) up(ctx context.Context) error {
	if err := n.configure(); err != nil {
		return err
	}
	if err := n.startContainerd(ctx); err != nil {
		return err
	}
	if err := n.importImages(ctx); err != nil {
		return err
	}
	return errors.Join(n.startKubelet(), n.startProxy())
}

// configure writes the configuration of the node's processes.
func (n node) configure() error {
	plugins, err := cniPlugins()
	if err != nil {
		return err
	}
	for path, text := range map[string]string{
		"containerd.toml":              n.containerdConfig(plugins),
		"cni/10-pods.conflist":         n.podNetworkConfig(),
		"registry/_default/hosts.toml": registryConfig,
		"kubelet.yaml":                 n.kubeletConfig(),
		"kube-proxy.yaml":              n.proxyConfig(),
		"resolv.conf":                  "nameserver " + hostIP + "\n",
	} {
		if err := writeFile(n.path(path), text); err != nil {
			return err
		}
	}
	return makeCgroup(n.cgroup())
}

// startContainerd starts containerd in the node's namespace, since it is
// containerd that plugs pods into the network.
func (n node) startContainerd(ctx context.Context) error {
	args := append(inNamespace(n.namespace()), "containerd", "--config", n.path("containerd.toml"))
	if err := n.sandbox.start(n.containerd(), args...); err != nil {
		return err
	}
	ready := func() error {
		_, err := n.ctr(ctx, "version")
		return err
	}
	return n.sandbox.awaitProcess(ctx, n.containerd(), time.Minute, ready, n.containerd())
}

func (n node) ctr(ctx context.Context, args ...string) (string, error) {
	return run(ctx, "ctr", append([]string{"--address", n.socket(), "--namespace", "k8s.io"}, args...)...)
}

// importImages gives the node the sandbox's own images, and those that were
// loaded later.
func (n node) importImages(ctx context.Context) error {
	archives, err := n.sandbox.loadedArchives()
	if err != nil {
		return err
	}
	for _, image := range n.sandbox.images() {
		archive, err := n.sandbox.imageArchive(image)
		if err != nil {
			return err
		}
		archives = append(archives, archive)
	}
	for _, archive := range archives {
		if err := n.importArchive(ctx, archive); err != nil {
			return err
		}
	}
	return nil
}

// importArchive gives the node an image, unless it has it already: importing
// again takes seconds, so the time of the archive is noted.
func (n node) importArchive(ctx context.Context, archive string) error {
	info, err := os.Stat(archive)
	if err != nil {
		return fmt.Errorf("give an image to %s: %w", n.name, err)
	}
	noted, stamp := n.path("imported", digest(archive)), info.ModTime().Format(time.RFC3339Nano)
	if old, err := os.ReadFile(noted); err == nil && string(old) == stamp {
		return nil
	}
	if _, err := n.ctr(ctx, "images", "import", archive); err != nil {
		return fmt.Errorf("give an image to %s: %w", n.name, err)
	}
	return writeFile(noted, stamp)
}

func (n node) startKubelet() error {
	binary, err := n.sandbox.execPath("kubelet")
	if err != nil {
		return err
	}
	zone := string(rune('a' + n.number - 1))
	return n.sandbox.start(n.kubelet(), append(inNamespace(n.namespace()), binary,
		"--config="+n.path("kubelet.yaml"),
		"--kubeconfig="+n.sandbox.kubeconfig(n.name),
		"--root-dir="+n.path("kubelet"),
		"--cert-dir="+n.path("kubelet-pki"),
		"--hostname-override="+n.name,
		"--node-ip="+n.ip(),
		"--node-labels=topology.kubernetes.io/region=sandbox,topology.kubernetes.io/zone=zone-"+zone,
	)...)
}

func (n node) startProxy() error {
	binary, err := n.sandbox.execPath("kube-proxy")
	if err != nil {
		return err
	}
	return n.sandbox.start(n.proxy(), append(inNamespace(n.namespace()), binary, "--config="+n.path("kube-proxy.yaml"))...)
}

// awaitReady waits until the node says that it is ready and kube-proxy has
// written its rules.
func (n node) awaitReady(ctx context.Context) error {
	ready := func() error {
		var object struct {
			Status struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
		if err := n.sandbox.get(ctx, "/api/v1/nodes/"+n.name, &object); err != nil {
			return err
		}
		for _, c := range object.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				return nil
			}
		}
		return fmt.Errorf("%s is not ready: %v", n.name, object.Status.Conditions)
	}
	if err := n.sandbox.awaitProcess(ctx, n.name, 2*time.Minute, ready, n.kubelet(), n.containerd()); err != nil {
		return err
	}
	return n.sandbox.awaitProcess(ctx, n.proxy(), time.Minute, func() error { return n.proxyHealthy(ctx) }, n.proxy())
}

func (n node) proxyHealthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.ip()+":10256/healthz", nil)
	if err != nil {
		return fmt.Errorf("ask kube-proxy: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask kube-proxy: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("kube-proxy answers %s", response.Status)
	}
	return nil
}

// stopNode ends everything on a node at once and unplugs it, as a power cut
// does. What it had in memory is gone, what it had on disk is kept.
func (s *sandbox) stopNode(ctx context.Context, name string) error {
	n, err := s.node(name)
	if err != nil {
		return err
	}
	return s.progress.step("stopping "+name, func() error {
		if err := n.setConnected(ctx, false); err != nil {
			return err
		}
		return n.kill()
	})
}

// startNode switches a node on again and waits until it is ready.
func (s *sandbox) startNode(ctx context.Context, name string) error {
	n, err := s.node(name)
	if err != nil {
		return err
	}
	return s.progress.step("starting "+name, func() error {
		if err := n.setConnected(ctx, true); err != nil {
			return err
		}
		if err := n.up(ctx); err != nil {
			return err
		}
		return n.awaitReady(ctx)
	})
}

// kill ends the node's processes and pods, and removes what a machine that is
// switched off does not keep: mounts, sockets and the pods' network.
func (n node) kill() error {
	var all errgroup.Group
	for _, name := range slices.Backward(n.processes()) {
		all.Go(func() error { return n.sandbox.endProcess(name) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if err := killNamed(n.path(), "containerd-shim", "runc"); err != nil {
		return err
	}
	if err := killCgroup(n.cgroup()); err != nil {
		return err
	}
	n.removeShimSockets()
	if err := errors.Join(unmountBelow(n.path("run")), unmountBelow(n.path("kubelet"))); err != nil {
		return err
	}
	if err := os.RemoveAll(n.path("run")); err != nil {
		return fmt.Errorf("remove containerd's state: %w", err)
	}
	return nil
}

// removeShimSockets removes the sockets that killed shims have left. They lie
// outside the state directory; each bundle says where.
func (n node) removeShimSockets() {
	bundles, _ := filepath.Glob(n.path("run", "io.containerd.runtime.v2.task", "k8s.io", "*", "address"))
	for _, bundle := range bundles {
		if address, err := os.ReadFile(bundle); err == nil {
			_ = os.Remove(strings.TrimPrefix(strings.TrimSpace(string(address)), "unix://")) // mostly gone already
		}
	}
}
