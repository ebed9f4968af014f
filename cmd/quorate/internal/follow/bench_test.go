package follow

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/reconciler/etcd"
	"github.com/quorate/quorate/reconciler/report"
	"github.com/quorate/quorate/sources"
)

// BenchmarkCommit goes from a commit that changes one file of many, each with a cluster, to the one that waits for its
// pass: it is read, parsed, compared, saved and applied.
func BenchmarkCommit(b *testing.B) {
	for _, clusters := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("clusters=%d", clusters), func(b *testing.B) {
			dir := b.TempDir()
			gitIn(b, dir, "init", "--quiet", "--initial-branch=main")
			put := func(i int, version string) {
				path := filepath.Join(dir, fmt.Sprintf("c%05d.yaml", i))
				if err := os.WriteFile(path, []byte(desiredtest.ClusterFile(fmt.Sprintf("c%05d", i), version)), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			for i := range clusters {
				put(i, "3.6.16")
			}
			gitIn(b, dir, "add", "--all")
			gitIn(b, dir, "commit", "--quiet", "--message=all")
			repository, err := sources.New(sources.Config{URL: dir, Branch: "main"})
			if err != nil {
				b.Fatal(err)
			}
			log, registry := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
			p := New(Config{Repository: repository, Interval: time.Second, Kube: fake.NewClientset(), Namespace: "quorate-system", Instance: "default"}, log, registry)
			r := reconciler.New(fake.NewClientset(), etcd.New(), record.NewFakeRecorder(10), report.NewMetrics(registry), log, reconciler.Options{})
			defer r.Close()
			p.Once(b.Context(), r)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				put(i%clusters, fmt.Sprintf("3.6.%d", 10+i%7))
				gitIn(b, dir, "commit", "--quiet", "--all", "--allow-empty", "--message=one")
				head := gitIn(b, dir, "rev-parse", "HEAD")
				b.StartTimer()
				if p.Once(b.Context(), r); p.State().Commit != head {
					b.Fatalf("commit %s, want %s: %s", p.State().Commit, head, p.State().Held)
				}
			}
		})
	}
}

func gitIn(b *testing.B, dir string, args ...string) string {
	b.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
