package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

const (
	switchNamespace = "quorate-switch"
	hostLink        = "quorate0"
	hostIP          = "10.88.0.1"
	serviceCIDR     = "10.96.0.0/16"
	apiServiceIP    = "10.96.0.1"
	podCIDR         = "10.244.0.0/16"

	namespaceDir = "/run/netns"
)

func namespacePath(name string) string { return namespaceDir + "/" + name }

// networkUp makes the switch, the machine's own link to it, and a namespace a
// node. The switch has a namespace of its own so that a firewall of this
// machine does not see, and cannot drop, what nodes say to each other.
func (s *sandbox) networkUp(ctx context.Context) error {
	if err := s.noteNamespaceDir(); err != nil {
		return err
	}
	if err := s.switchUp(ctx); err != nil {
		return fmt.Errorf("set up the switch: %w", err)
	}
	for _, n := range s.nodes() {
		if err := n.networkUp(ctx); err != nil {
			return fmt.Errorf("set up the network of %s: %w", n.name, err)
		}
	}
	return s.routeHost(ctx)
}

// noteNamespaceDir notes that /run/netns does not exist, because ip(8) mounts
// it when the first namespace is added, and down has to undo that.
func (s *sandbox) noteNamespaceDir() error {
	if _, err := os.Stat(namespaceDir); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return writeFile(s.path("made-netns-dir"), "")
}

func (s *sandbox) switchUp(ctx context.Context) error {
	if !namespaceExists(switchNamespace) {
		if err := runAll(ctx, "ip netns add "+switchNamespace); err != nil {
			return err
		}
	}
	if !linkExists(ctx, switchNamespace, "bridge") {
		err := runAll(ctx,
			"ip -n "+switchNamespace+" link add bridge type bridge",
			"ip -n "+switchNamespace+" link set bridge up")
		if err != nil {
			return err
		}
	}
	if linkExists(ctx, "", hostLink) {
		return nil
	}
	return runAll(ctx,
		"ip link add "+hostLink+" type veth peer name host netns "+switchNamespace,
		"ip addr add "+hostIP+"/24 dev "+hostLink,
		"ip link set "+hostLink+" up",
		"ip -n "+switchNamespace+" link set host master bridge up")
}

// networkUp gives the node its namespace, its port on the switch (connected,
// even if it was cut off before), and routes to the pods of the other nodes. Services have a route too: the kernel looks
// for one before kube-proxy's rules get to rewrite the address.
func (n node) networkUp(ctx context.Context) error {
	if !namespaceExists(n.namespace()) {
		if err := runAll(ctx, "ip netns add "+n.namespace()); err != nil {
			return err
		}
	}
	ip := "ip -n " + n.namespace() + " "
	if !linkExists(ctx, n.namespace(), "eth0") {
		err := runAll(ctx,
			"ip link add "+n.name+" netns "+switchNamespace+" type veth peer name eth0 netns "+n.namespace(),
			"ip -n "+switchNamespace+" link set "+n.name+" master bridge",
			ip+"addr add "+n.ip()+"/24 dev eth0",
			ip+"link set lo up",
			ip+"link set eth0 up")
		if err != nil {
			return err
		}
	}
	if err := runAll(ctx, "ip -n "+switchNamespace+" link set "+n.name+" up"); err != nil {
		return err
	}
	routes := []string{ip + "route replace " + serviceCIDR + " dev eth0"}
	for _, other := range n.sandbox.nodes() {
		if other.number != n.number {
			routes = append(routes, ip+"route replace "+other.podCIDR()+" via "+other.ip())
		}
	}
	if err := runAll(ctx, routes...); err != nil {
		return err
	}
	return n.forwardUp(ctx)
}

// forwardUp lets the node route for its pods, and lets kube-proxy's rules see
// what pods of one node say to each other across the node's bridge.
func (n node) forwardUp(ctx context.Context) error {
	settings := []string{"net.ipv4.ip_forward=1"}
	if _, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables"); err == nil {
		settings = append(settings, "net.bridge.bridge-nf-call-iptables=1")
	}
	command := append(inNamespace(n.namespace()), "sysctl", "--quiet", "--write")
	command = append(command, settings...)
	_, err := run(ctx, command[0], command[1:]...)
	return err
}

// routeHost lets this machine reach pods and services. Any node can answer for
// services; the first that is connected does.
func (s *sandbox) routeHost(ctx context.Context) error {
	var routes []string
	for _, n := range s.nodes() {
		routes = append(routes, "ip route replace "+n.podCIDR()+" via "+n.ip())
	}
	for _, n := range s.nodes() {
		if n.connected(ctx) {
			routes = append(routes, "ip route replace "+serviceCIDR+" via "+n.ip())
			break
		}
	}
	if err := runAll(ctx, routes...); err != nil {
		return fmt.Errorf("route to pods and services: %w", err)
	}
	return nil
}

// connected reports whether the node's port on the switch is up.
func (n node) connected(ctx context.Context) bool {
	out, err := run(ctx, "ip", "-n", switchNamespace, "-brief", "link", "show", "dev", n.name)
	fields := strings.Fields(out)
	return err == nil && len(fields) > 1 && fields[1] == "UP"
}

// setConnected plugs the node into the switch, or unplugs it.
func (n node) setConnected(ctx context.Context, connected bool) error {
	state := "down"
	if connected {
		state = "up"
	}
	if err := runAll(ctx, "ip -n "+switchNamespace+" link set "+n.name+" "+state); err != nil {
		return err
	}
	return n.sandbox.routeHost(ctx)
}

// networkDown removes the namespaces, and with them every link, route and
// firewall rule.
func (s *sandbox) networkDown(ctx context.Context) error {
	names := []string{switchNamespace}
	for _, n := range s.nodes() {
		names = append(names, n.namespace())
	}
	var problems []error
	for _, name := range slices.DeleteFunc(names, func(name string) bool { return !namespaceExists(name) }) {
		problems = append(problems, runAll(ctx, "ip netns delete "+name))
	}
	return errors.Join(append(problems, linkDown(ctx, hostLink), s.namespaceDirDown())...)
}

// linkDown removes a link of this machine. The kernel removes one by itself some time after
// the namespace of its other end is gone, also between the two commands.
func linkDown(ctx context.Context, link string) error {
	if !linkExists(ctx, "", link) {
		return nil
	}
	if err := runAll(ctx, "ip link delete "+link); err != nil && linkExists(ctx, "", link) {
		return err
	}
	return nil
}

// namespaceDirDown removes /run/netns when the sandbox was the first to need
// it and is the last to use it.
func (s *sandbox) namespaceDirDown() error {
	if _, err := os.Stat(s.path("made-netns-dir")); err != nil {
		return nil
	}
	if entries, err := os.ReadDir(namespaceDir); err != nil || len(entries) > 0 {
		return nil
	}
	if err := unmountBelow(namespaceDir); err != nil {
		return err
	}
	if err := os.Remove(namespaceDir); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}

func namespaceExists(name string) bool {
	_, err := os.Stat(namespacePath(name))
	return err == nil
}

// linkExists reports whether a namespace, or this machine when it is empty,
// has a network link of this name.
func linkExists(ctx context.Context, namespace, link string) bool {
	args := []string{"link", "show", "dev", link}
	if namespace != "" {
		args = append([]string{"-n", namespace}, args...)
	}
	_, err := run(ctx, "ip", args...)
	return err == nil
}
