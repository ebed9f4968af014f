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

// poll is one way to look at a branch that has not moved.
type poll struct {
	name   string
	took   time.Duration
	memory float64 // bytes allocated; zero where it is another program's
}

// measurePoll runs the benchmark of package sources.
func measurePoll(ctx context.Context) ([]poll, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "./sources", "-run", "^$", "-bench", "UnchangedBranch", "-benchtime", "20x")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmark of a look at Git: %w", err)
	}
	var list []poll
	for line := range strings.Lines(string(out)) {
		name, isResult := strings.CutPrefix(line, "BenchmarkUnchangedBranch/")
		if !isResult {
			continue
		}
		values, err := figures(line)
		if err != nil || values["ns/op"] == 0 {
			return nil, fmt.Errorf("benchmark of a look at Git: %q: %w", line, err)
		}
		name, _, _ = strings.Cut(name, " ")
		list = append(list, poll{strings.TrimSpace(name), time.Duration(values["ns/op"]), values["B/op"]})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("benchmark of a look at Git: no result in %q", out)
	}
	return list, nil
}

// printPolls prints how long each way takes.
func printPolls(out io.Writer, list []poll) {
	fmt.Fprintln(out, "a look at a branch that has not moved, mean of 20:")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, p := range list {
		memory := ""
		if p.memory > 0 {
			memory = fmt.Sprintf("%.0f KiB allocated", p.memory/1024)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", p.name, lab.Round(p.took), memory)
	}
	_ = w.Flush()
}
