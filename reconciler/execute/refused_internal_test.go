package execute

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/clustertest"
)

// Refusing lets the API server refuse one request of all that come, and notes what
// is written after it.
type Refusing struct {
	Seen, At atomic.Int64
	Later    atomic.Pointer[string]
}

func (r *Refusing) React(a clienttesting.Action) (bool, runtime.Object, error) {
	if a.GetVerb() == "watch" || r.At.Load() == 0 {
		return false, nil, nil
	}
	switch n := r.Seen.Add(1); {
	case n == r.At.Load():
		return true, nil, clustertest.ErrAway
	case n > r.At.Load() && a.GetVerb() != "get" && a.GetVerb() != "list":
		text := a.GetVerb() + " " + a.GetResource().Resource
		r.Later.Store(&text)
	}
	return false, nil, nil
}
