package kube

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// fillEvery is how often the first lists are looked at.
const fillEvery = 20 * time.Millisecond

// AwaitFilled waits until caches hold what their first lists say, or are known not to get them. The
// error says that the watches, whose context it is, ended before.
func AwaitFilled(ctx context.Context, filled func() bool) error {
	if wait.PollUntilContextCancel(ctx, fillEvery, true, func(context.Context) (bool, error) { return filled(), nil }) != nil {
		return errors.New("the watches ended before the first list was complete")
	}
	return nil
}
