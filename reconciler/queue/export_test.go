package queue

import "context"

// Work makes passes until the queue is shut down.
func (q Queue) Work(ctx context.Context, h Handler) {
	for q.Next(ctx, h) {
	}
}
