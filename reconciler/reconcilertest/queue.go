package reconcilertest

import (
	"context"
	"time"

	"github.com/quorate/quorate/reconciler/queue"
)

// Drop drops the next key of a queue.
func Drop(ctx context.Context, q queue.Queue) { q.Next(ctx, dropped{}) }

type dropped struct{}

func (dropped) Pass(context.Context, string) (time.Duration, bool, error) { return 0, false, nil }
func (dropped) Failed(string, error)                                      {}
func (dropped) Succeeded(string)                                          {}
