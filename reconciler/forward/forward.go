// Package forward reaches ports of pods through the API server, as kubectl port-forward
// does: a person's machine often has no other way to them. The daemon never does.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forwarder opens ports of pods.
type Forwarder struct {
	Kube   kubernetes.Interface
	Config *rest.Config
}

// Open leads from a port on loopback to one of a pod, until stop is called. It returns the
// address on loopback. The account needs create on pods/portforward there.
func (f Forwarder) Open(ctx context.Context, namespace, pod string, port int) (address string, stop func(), err error) {
	transport, upgrader, err := spdy.RoundTripperFor(f.Config)
	if err != nil {
		return "", nil, fmt.Errorf("forward a port of pod %s: %w", pod, err)
	}
	to := f.Kube.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, to)
	stopped, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.New(dialer, []string{"0:" + strconv.Itoa(port)}, stopped, ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, fmt.Errorf("forward a port of pod %s: %w", pod, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return "", nil, fmt.Errorf("forward a port of pod %s: %w; let your account create pods/portforward in namespace %s", pod, err, namespace)
	case <-ctx.Done():
		close(stopped)
		return "", nil, fmt.Errorf("forward a port of pod %s: %w", pod, ctx.Err())
	}
	ports, err := forwarder.GetPorts()
	if err != nil || len(ports) == 0 {
		close(stopped)
		return "", nil, fmt.Errorf("forward a port of pod %s: %w", pod, errors.Join(err, errors.New("no port is open here")))
	}
	return net.JoinHostPort("localhost", strconv.Itoa(int(ports[0].Local))), func() { close(stopped) }, nil
}
