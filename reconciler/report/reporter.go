package report

import (
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/drift"
	"github.com/quorate/quorate/reconciler/memo"
)

// Reporter tells what happens.
type Reporter struct {
	Metrics *Metrics
	Log     *slog.Logger
	Events  eventrecord.EventRecorder
	// Subject is what an Event about a cluster without a StatefulSet is about; nil for
	// nothing.
	Subject func(key string) runtime.Object
	Fights  *drift.Fights
	Now     func() time.Time

	Said memo.Once
	// revived are the clusters that Git brings back, until they are what it says:
	// what is missing there was not deleted out of band.
	revived memo.Map[bool]
	Board   Board
}

// Forget drops all cached state of a cluster.
func (r *Reporter) Forget(key string, c desired.Cluster) {
	r.Metrics.forget(c)
	r.Said.Forget(key)
	r.Board.Forget(key)
	r.revived.Forget(key)
}
