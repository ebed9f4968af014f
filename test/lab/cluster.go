package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a Kubernetes cluster that answers.
type Cluster struct {
	// Client talks to the API server with the rights of Kubeconfig.
	Client *kubernetes.Clientset
	Config *rest.Config
	// Kubeconfig is the path of the file, or the list of paths, that was used.
	Kubeconfig string
	// Host is this machine's address as pods see it.
	Host string
	// Sandbox is not nil when the cluster is the sandbox: only there are faults
	// possible, and images loaded.
	Sandbox *Sandbox
	// Version of the API server, as it reports it.
	Version string
}

// Connect uses the cluster that KUBECONFIG names, else the sandbox.
func Connect(ctx context.Context) (*Cluster, error) {
	kubeconfig, sandbox, err := chooseCluster(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Kubeconfig: kubeconfig, Sandbox: sandbox}
	if err := c.dial(); err != nil {
		return nil, err
	}
	c.Host, err = c.hostAddress(ctx)
	return c, err
}

// chooseCluster returns the kubeconfig, and the sandbox when it is the
// sandbox's.
func chooseCluster(ctx context.Context) (string, *Sandbox, error) {
	kubeconfig, sandbox := os.Getenv("KUBECONFIG"), FindSandbox()
	if sandbox == nil || !sandbox.Wanted(ctx) {
		if kubeconfig == "" {
			return "", nil, errors.New("there is no cluster: set KUBECONFIG, or QUORATE_SANDBOX to the path of the sandbox binary (make sandbox)")
		}
		return kubeconfig, nil, nil
	}
	status, err := sandbox.Status(ctx)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("ask the sandbox where its cluster is: %w", err)
	case !status.Up:
		return "", nil, errors.New("the sandbox is not up: run make sandbox, or set KUBECONFIG to another cluster")
	}
	return status.Kubeconfig, sandbox, nil
}

// Wanted reports whether the sandbox is the cluster to use: KUBECONFIG names none
// or the sandbox's.
func (s *Sandbox) Wanted(ctx context.Context) bool {
	named := os.Getenv("KUBECONFIG")
	if named == "" {
		return true
	}
	status, err := s.Status(ctx)
	return err == nil && named == status.Kubeconfig
}

func (c *Cluster) dial() error {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(c.Kubeconfig)}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", c.Kubeconfig, err)
	}
	// The harness polls; it must not wait for its own rate limiter.
	config.QPS, config.Burst = 100, 200
	config.Timeout = 0
	if c.Client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
	}
	c.Config = config
	version, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server of %s: %w", c.Kubeconfig, err)
	}
	c.Version = version.GitVersion
	return nil
}

// hostAddress is QUORATE_HOST, else the address from which this machine sends
// to the first node: nodes, and pods by way of them, can answer to it. Nothing
// is sent to find it out.
func (c *Cluster) hostAddress(ctx context.Context) (string, error) {
	if host := os.Getenv("QUORATE_HOST"); host != "" {
		return host, nil
	}
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	for _, node := range nodes.Items {
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				return localAddress(ctx, address.Address)
			}
		}
	}
	return "", errors.New("the cluster has no node with an address: set QUORATE_HOST to this machine's address as pods see it")
}

func localAddress(ctx context.Context, node string) (string, error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "udp", net.JoinHostPort(node, "9"))
	if err != nil {
		return "", fmt.Errorf("set QUORATE_HOST to this machine's address as pods see it; it is not clear from the route to node %s: %w", node, err)
	}
	defer func() { _ = conn.Close() }()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}

// Kubectl returns kubectl with args on this cluster: the sandbox's own, else the
// one in PATH.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (*exec.Cmd, error) {
	path, err := c.program(ctx, "kubectl")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	return cmd, nil
}

// program is a tool of the sandbox, else one in PATH.
func (c *Cluster) program(ctx context.Context, name string) (string, error) {
	if c.Sandbox != nil {
		return c.Sandbox.Build(ctx, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("this cluster is not the sandbox, so %s must be in PATH: %w", name, err)
	}
	return path, nil
}
