// Package branchestest writes status branches for tests.
package branchestest

import (
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/cmd/quorate/internal/publish"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// listed are the statuses that a daemon knows.
type listed []schema.Status

// Statuses implements publish.Statuses.
func (l listed) Statuses() ([]schema.Status, bool) { return l, true }

// Write writes a status branch as the daemon of a Kubernetes cluster of its own does, with a
// heartbeat of an hour.
func Write(r *cmdtest.Repository, branch string, list ...schema.Status) {
	r.Helper()
	kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(branch)}})
	b := publish.NewBranch(publish.BranchConfig{
		Publish: sources.PublishConfig{URL: r.Dir, Branch: branch, Heartbeat: time.Hour}, Interval: time.Second, Kube: kube, Instance: "default",
	}, func() follow.State { return follow.State{Commit: r.Head()} }, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	b.Once(r.Context(), listed(list), true)
	if !strings.Contains(r.Git("branch", "--list", branch), branch) {
		r.Fatalf("branch %s was not written", branch)
	}
}
