package status

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/forward"
)

// forwarded lets do reach a daemon through the API server: that reaches what listens on
// the loopback of its pod only.
func (c cluster) forwarded(ctx context.Context, pod corev1.Pod, do func(d server) error) error {
	port, err := pagePort(pod)
	if err != nil {
		return err
	}
	address, stop, err := forward.Forwarder{Kube: c.kube, Config: c.config}.Open(ctx, pod.Namespace, pod.Name, port)
	if err != nil {
		return err
	}
	defer stop()
	return do(server{url: &url.URL{Scheme: "http", Host: address}})
}

// defaultPagePort is where deploy/base has the daemon serve its page.
const defaultPagePort = 8081

// pagePort is where a daemon serves its page and the API, by its arguments: of two flags the last
// one counts.
func pagePort(pod corev1.Pod) (int, error) {
	at := defaultPagePort
	for _, c := range pod.Spec.Containers {
		for _, argument := range c.Args {
			if address, is := strings.CutPrefix(argument, "--page-listen="); is {
				port, err := strconv.ParseUint(address[strings.LastIndex(address, ":")+1:], 10, 16)
				if err != nil {
					return 0, fmt.Errorf("find the port of pod %s: its %s names none", pod.Name, argument)
				}
				at = int(port)
			}
		}
	}
	return at, nil
}
