package kube

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pages yields what a client's List returns, o.Limit objects at a time, until the last page or an
// error, which is yielded too. Nothing is requested ahead.
func Pages[L metav1.ListInterface](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), o metav1.ListOptions) iter.Seq2[L, error] {
	return func(yield func(L, error) bool) {
		for {
			page, err := list(ctx, o)
			if !yield(page, err) || err != nil {
				return
			}
			if o.Continue = page.GetContinue(); o.Continue == "" {
				return
			}
		}
	}
}
