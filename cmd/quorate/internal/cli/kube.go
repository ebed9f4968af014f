package cli

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Connect returns a client for the API server that a kubeconfig names, "" for the default
// one, and how it is reached. It sends nothing yet. The agent is what the API server logs, and
// what wraps hears each request and its answer.
func Connect(kubeconfig, agent string, wraps ...func(http.RoundTripper) http.RoundTripper) (kubernetes.Interface, *rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("find the Kubernetes cluster: %w; specify one with --kubeconfig or $KUBECONFIG", err)
	}
	// The limits of client-go are for interactive use; the API server has its own. An action takes a
	// few requests one after the other, so that these let some dozens begin a second.
	config.QPS, config.Burst = 300, 600
	config.UserAgent = agent
	for _, wrap := range wraps {
		config.Wrap(wrap)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return kube, config, nil
}
