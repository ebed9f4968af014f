package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// forwarded lets do reach a daemon through the API server, as kubectl port-forward does:
// that reaches what listens on the loopback of its pod only.
func (c cluster) forwarded(ctx context.Context, pod corev1.Pod, do func(d server) error) error {
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return fmt.Errorf("forward a port of its pod: %w", err)
	}
	to := c.kube.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("portforward").URL()
	stop, ready := make(chan struct{}), make(chan struct{})
	defer close(stop)
	forwarder, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, to), []string{"0:" + pagePort(pod)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return fmt.Errorf("forward a port of its pod: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return fmt.Errorf("forward a port of its pod: %w; let your account create pods/portforward there", err)
	case <-ctx.Done():
		return fmt.Errorf("forward a port of its pod: %w", ctx.Err())
	}
	ports, err := forwarder.GetPorts()
	if err != nil || len(ports) == 0 {
		return fmt.Errorf("forward a port of its pod: %w", errors.Join(err, errors.New("no port is open here")))
	}
	return do(server{url: &url.URL{Scheme: "http", Host: fmt.Sprintf("localhost:%d", ports[0].Local)}})
}

// defaultPagePort is where deploy/base has the daemon serve its page.
const defaultPagePort = "8081"

// pagePort is where a daemon serves its page and the API, by its arguments.
func pagePort(pod corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		for _, argument := range c.Args {
			if address, is := strings.CutPrefix(argument, "--page-listen="); is {
				return address[strings.LastIndex(address, ":")+1:]
			}
		}
	}
	return defaultPagePort
}
