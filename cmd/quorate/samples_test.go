package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// 340: what the README shows as printed by quorate is printed, in a repository with the
// cluster that the README shows.
func TestTheSamplesOfTheREADMEArePrinted(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	_, cluster, _ := strings.Cut(readme, "```yaml\n")
	cluster, _, _ = strings.Cut(cluster, "```\n")
	for begin, head := range map[string]map[string]string{
		"    $ quorate validate --base": {
			"orders": strings.Replace(cluster, "size: 8Gi", "size: 4Gi", 1),
			"ledger": strings.NewReplacer("orders", "ledger", `"3.6.16"`, "3.10").Replace(cluster),
		},
		"    $ quorate plan --offline":  {"orders": cluster},
		"> **quorate plan**: 1 cluster": {"orders": cluster},
	} {
		_, sample, found := strings.Cut(readme, "\n"+begin)
		sample, _, _ = strings.Cut(begin+sample, "\n\n")
		sample = regexp.MustCompile("(?m)^(    |> ?)").ReplaceAllString(sample, "")
		first, want, _ := strings.Cut(sample, "\n")
		command, isCommand := strings.CutPrefix(first, "$ ")
		if !isCommand {
			command, want = "quorate plan --offline --base origin/main --head HEAD -o markdown clusters", sample
		}
		before := map[string]string{"orders": cluster, "ledger": strings.ReplaceAll(cluster, "orders", "ledger")}
		if !strings.Contains(begin, "validate") {
			before = map[string]string{"orders": strings.Replace(cluster, "3.6.16", "3.5.35", 1)}
		}
		if got := printedBy(t, command, before, head); !found || !isSample(want, got) {
			t.Errorf("the README shows of %s\n%s\nand it prints\n%s", command, want, got)
		}
	}
	// The demo prints the steps of a plan as the daemon logs them.
	plan := numbers().Replace(printedBy(t, "quorate plan --offline --base origin/main clusters",
		map[string]string{"orders": strings.Replace(cluster, "3.6.16", "3.5.21", 1)}, map[string]string{"orders": strings.Replace(cluster, "3.6.16", "3.5.35", 1)}))
	steps := regexp.MustCompile(`(?m)^    \[ +[0-9.]+s\]   orders  (.*?) +because (.*)$`).FindAllStringSubmatch(readme, -1)
	if len(steps) < 3 {
		t.Errorf("the README shows %d steps of the demo", len(steps))
	}
	for _, step := range steps {
		if shown := numbers().Replace(step[1] + ": " + step[2]); !strings.Contains(plan, ". "+shown) {
			t.Errorf("the README shows of the demo %q, and the plan is\n%s", shown, plan)
		}
	}
}

// numbers takes out which member it is, which differs from run to run.
func numbers() *strings.Replacer {
	return strings.NewReplacer("orders-0", "orders-N", "orders-1", "orders-N", "orders-2", "orders-N", "3 left", "N left", "2 left", "N left")
}

// isSample reports whether the lines of a sample are printed one after the other; a line
// with … alone stands for any lines, and hashes of commits are any.
func isSample(want, got string) bool {
	hash := regexp.MustCompile("`[0-9a-f]{7}`")
	printed := strings.Split(hash.ReplaceAllString(got, "HASH"), "\n")
	skip := true
	for line := range strings.SplitSeq(hash.ReplaceAllString(want, "HASH"), "\n") {
		if strings.TrimSpace(line) == "…" {
			skip = true
			continue
		}
		i := slices.Index(printed, line)
		if i < 0 || i > 0 && !skip {
			return false
		}
		printed, skip = printed[i+1:], false
	}
	return true
}

// printedBy runs a command in a repository whose origin/main has some files, and HEAD others.
func printedBy(t *testing.T, command string, before, after map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(files map[string]string) {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, "clusters", name+".yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(line string) string {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+binaryDir(t)+":"+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() > 2 {
			t.Fatalf("%s: %v\n%s", line, err, &out)
		}
		return out.String()
	}
	if err := os.Mkdir(filepath.Join(dir, "clusters"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(before)
	run("git init -q -b main . && git add -A && git commit -q -m before && git update-ref refs/remotes/origin/main HEAD")
	write(after)
	run("git add -A && git commit -q -m after")
	return run(command)
}
