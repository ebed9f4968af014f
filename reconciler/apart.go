package reconciler

import (
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler/etcd"
)

var errApart = errors.New("this plans for what is not in Git yet: nothing is carried out")

// Apart returns a Reconciler that plans for what Git does not say yet, such as a
// pull request. It sees what r's caches hold of Kubernetes and has all else of its
// own, what Git says, what was said, connections to members: nothing that it is
// asked leaves a trace in r. It refuses to change anything.
func (r *Reconciler) Apart(etcd etcd.Members) *Reconciler {
	options := r.options
	options.Lease = func() error { return errApart }
	apart := wire(r.kube, r.cache, etcd, &eventrecord.FakeRecorder{}, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler), options)
	apart.filled.Store(true)
	apart.shutDown() // nothing is ever queued
	return apart
}
