package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// run runs a program and returns what it printed. The error holds the whole
// command line and what the program said, since that is what one needs next.
func run(ctx context.Context, name string, args ...string) (string, error) {
	return runInput(ctx, "", name, args...)
}

func runInput(ctx context.Context, input, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	var out, problems bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &problems
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(problems.String()+out.String()))
	}
	return out.String(), nil
}

// runAll runs command lines without quoting, one after the other, and stops at
// the first that goes wrong.
func runAll(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		fields := strings.Fields(line)
		if _, err := run(ctx, fields[0], fields[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// inNamespace is the beginning of a command line that runs in a network
// namespace. It is nsenter because `ip netns exec` hides the cgroups.
func inNamespace(namespace string) []string {
	return []string{"nsenter", "--net=" + namespacePath(namespace)}
}
