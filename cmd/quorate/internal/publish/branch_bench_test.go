package publish

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cmdtest"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// BenchmarkYearOfStatus writes 2,000 changes of 50 clusters, five and a half a day,
// and reports how large the repository is then: as written, and after Git's own
// upkeep, which code hosts do on their own.
func BenchmarkYearOfStatus(b *testing.B) {
	const changes, clusters = 2000, 50
	for _, compact := range []int{500, 1_000_000} {
		b.Run(fmt.Sprintf("compact=%d", compact), func(b *testing.B) {
			for b.Loop() {
				dir := b.TempDir()
				gitIn(b, dir, "init", "--quiet", "--bare")
				p, err := sources.NewPublisher(sources.PublishConfig{URL: dir, Owner: "default in cluster 3f2a", Compact: compact})
				if err != nil {
					b.Fatal(err)
				}
				var list []schema.Status
				for i := range clusters {
					list = append(list, cmdtest.Changed(fmt.Sprintf("%040x", i), fmt.Sprintf("orders-%d", i), schema.PhaseReady, 3))
				}
				for i := range changes {
					phase := schema.Phases()[i%4]
					list[i%clusters] = cmdtest.Changed(fmt.Sprintf("%040x", i), fmt.Sprintf("orders-%d", i%clusters), phase, i%4)
					files, err := statusFiles(follow.State{}, list)
					if err != nil {
						b.Fatal(err)
					}
					when := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 4 * time.Hour)
					if _, err := p.Publish(b.Context(), sources.Publication{Files: files, Subject: fmt.Sprintf("status: change %d", i), Time: when}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(sizeOf(b, dir), "written-B")
				gitIn(b, dir, "gc", "--quiet", "--prune=now")
				b.ReportMetric(sizeOf(b, dir), "kept-B")
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/changes*1e9, "ns/change")
		})
	}
}

func gitIn(b *testing.B, dir string, args ...string) {
	b.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// sizeOf is the size of all files below a directory, in bytes.
func sizeOf(b *testing.B, dir string) float64 {
	b.Helper()
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return float64(sum)
}
