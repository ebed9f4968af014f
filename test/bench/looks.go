package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// look is one way to read a repository.
type look struct {
	name string
	took time.Duration
	// memory is what was allocated, and peak the largest resident size, in bytes;
	// zero where it was not measured.
	memory, peak float64
}

// The benchmarks of package sources, and how often each way is measured.
const (
	unchangedBranch, unchangedTimes = "UnchangedBranch", 20
	newCommit, newCommitTimes       = "NewCommit", 5
)

// measureLooks runs a benchmark of package sources.
func measureLooks(ctx context.Context, benchmark string, times int) ([]look, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "./sources", "-run", "^$", "-bench", "^Benchmark"+benchmark+"$", "-benchtime", fmt.Sprintf("%dx", times))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmark of reading Git: %w", err)
	}
	var list []look
	for line := range strings.Lines(string(out)) {
		name, isResult := strings.CutPrefix(line, "Benchmark"+benchmark+"/")
		if !isResult {
			continue
		}
		values, err := figures(line)
		if err != nil || values["ns/op"] == 0 {
			return nil, fmt.Errorf("benchmark of reading Git: %q: %w", line, err)
		}
		name, _, _ = strings.Cut(name, " ")
		list = append(list, look{strings.TrimSpace(name), time.Duration(values["ns/op"]), values["B/op"], values["peak-B"]})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("benchmark of reading Git: no result in %q", out)
	}
	return list, nil
}

// printLooks prints how long each way takes.
func printLooks(out io.Writer, title string, list []look) {
	fmt.Fprintln(out, title)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, l := range list {
		var memory []string
		if l.memory > 0 {
			memory = append(memory, fmt.Sprintf("%.0f KiB allocated", l.memory/1024))
		}
		if l.peak > 0 {
			memory = append(memory, fmt.Sprintf("%.0f MiB at most", l.peak/(1<<20)))
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", l.name, lab.Round(l.took), strings.Join(memory, ", "))
	}
	_ = w.Flush()
}
