package kube_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/reconciler/kube"
)

func TestPagesAreReadUntilTheLastOne(t *testing.T) {
	refused := errors.New("refused")
	for _, tc := range []struct {
		name string
		// next is the token of each page, and stop the pages after which the reader stops; 0 for all.
		next   []string
		fails  int
		stop   int
		asked  []string
		failed bool
	}{
		{name: "one page", next: []string{""}, asked: []string{""}},
		{name: "three pages", next: []string{"a", "b", ""}, asked: []string{"", "a", "b"}},
		{name: "an error ends it", next: []string{"a", "b", ""}, fails: 2, asked: []string{"", "a"}, failed: true},
		{name: "a reader that has enough requests no more", next: []string{"a", "b", ""}, stop: 2, asked: []string{"", "a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked []string
			list := func(_ context.Context, o metav1.ListOptions) (*corev1.ConfigMapList, error) {
				if o.Limit != 7 || o.LabelSelector != "a=b" {
					t.Errorf("asked with %+v", o)
				}
				asked = append(asked, o.Continue)
				if len(asked) == tc.fails {
					return nil, refused
				}
				return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{Continue: tc.next[len(asked)-1]}}, nil
			}
			read, failed := 0, false
			for page, err := range kube.Pages(t.Context(), list, metav1.ListOptions{Limit: 7, LabelSelector: "a=b"}) {
				failed = errors.Is(err, refused)
				if (page == nil) != failed {
					t.Errorf("page %v with error %v", page, err)
				}
				if read++; read == tc.stop {
					break
				}
			}
			if !slices.Equal(asked, tc.asked) || failed != tc.failed {
				t.Errorf("asked for %q, failed %t; want %q, %t", asked, failed, tc.asked, tc.failed)
			}
		})
	}
}
