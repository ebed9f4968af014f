package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/quorate/quorate/test/lab"
)

// start is what a command takes that reads nothing: its start.
type start struct {
	command string
	// cpu is the median of the processor's time, user and system, memory that of the most resident memory.
	cpu    time.Duration
	memory int64
}

// startTimes is how often each command is run.
const startTimes = 21

// measureStart runs two commands that need no client.
func measureStart(ctx context.Context) ([]start, error) {
	binary, err := lab.Binary(ctx)
	if err != nil {
		return nil, err
	}
	var list []start
	for _, argument := range []string{"version", "--help"} {
		s, err := startOf(ctx, binary, argument)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func startOf(ctx context.Context, binary, argument string) (start, error) {
	var times []time.Duration
	var sizes []int64
	for range startTimes {
		cmd := exec.CommandContext(ctx, binary, argument)
		if err := cmd.Run(); err != nil {
			return start{}, fmt.Errorf("quorate %s: %w", argument, err)
		}
		times = append(times, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			sizes = append(sizes, usage.Maxrss<<10)
		}
	}
	slices.Sort(times)
	slices.Sort(sizes)
	return start{command: "quorate " + argument, cpu: times[len(times)/2], memory: sizes[len(sizes)/2]}, nil
}

func printStart(out io.Writer, list []start) {
	fmt.Fprintf(out, "the start of a command, median of %d:\n\n", startTimes)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s CPU\t%d MiB\n", s.command, lab.Round(s.cpu), s.memory>>20)
	}
	_ = w.Flush()
}
