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

// 340: what README and the page on pull requests show as printed by quorate is printed, in a
// repository with the cluster that the README shows.
func TestTheSamplesOfPagesArePrinted(t *testing.T) {
	cluster := clusterOfTheREADME(t)
	const validate, plan, comment = "    $ quorate validate --base", "    $ quorate plan --offline", "> **quorate plan**: 1 cluster"
	change := map[string]string{"orders": cluster}
	mistakes := map[string]string{
		"orders": strings.Replace(cluster, "size: 8Gi", "size: 6Gi", 1),
		"ledger": strings.NewReplacer("orders", "ledger", `"3.6.16"`, "3.10").Replace(cluster),
	}
	for _, c := range []struct {
		page, begin string
		head        map[string]string
	}{
		{"README.md", plan, change},
		{"docs/pull-requests.md", validate, mistakes},
		{"docs/pull-requests.md", plan, change},
		{"docs/pull-requests.md", comment, change},
	} {
		_, sample, found := strings.Cut(textOf(t, c.page), "\n"+c.begin)
		sample, _, _ = strings.Cut(c.begin+sample, "\n\n")
		sample = regexp.MustCompile("(?m)^(    |> ?)").ReplaceAllString(sample, "")
		first, want, _ := strings.Cut(sample, "\n")
		command, isCommand := strings.CutPrefix(first, "$ ")
		if !isCommand {
			command, want = "quorate plan --offline --base origin/main --head HEAD -o markdown clusters", sample
		}
		before := map[string]string{"orders": cluster, "ledger": strings.ReplaceAll(cluster, "orders", "ledger")}
		if c.begin != validate {
			before = map[string]string{"orders": strings.Replace(cluster, "3.6.16", "3.5.35", 1)}
		}
		if got := printedBy(t, command, before, c.head); !found || !isSample(want, got) {
			t.Errorf("%s shows of %s\n%s\nand it prints\n%s", c.page, command, want, got)
		}
	}
}

// The demo prints the steps of a plan as the daemon logs them.
func TestTheDemoOfTheREADMEIsThePlan(t *testing.T) {
	cluster := clusterOfTheREADME(t)
	plan := strings.Split(numbers().Replace(printedBy(t, "quorate plan --offline --base origin/main clusters",
		map[string]string{"orders": strings.Replace(cluster, "3.6.16", "3.5.35", 1)}, map[string]string{"orders": cluster})), "\n")
	steps := regexp.MustCompile(`(?m)^    \[ +[0-9.]+s\]   orders  (.*?) +because (.*)$`).FindAllStringSubmatch(textOf(t, "README.md"), -1)
	if len(steps) < 3 {
		t.Errorf("the README shows %d steps of the demo", len(steps))
	}
	for _, step := range steps {
		shown := numbers().Replace(step[1] + ": " + step[2])
		if !slices.ContainsFunc(plan, func(line string) bool {
			_, text, numbered := strings.Cut(line, ". ")
			return numbered && isPrinted(shown+"…", text)
		}) {
			t.Errorf("the README shows of the demo %q, and the plan is\n%s", shown, strings.Join(plan, "\n"))
		}
	}
}

// clusterOfTheREADME is the file that the README shows.
func clusterOfTheREADME(t *testing.T) string {
	t.Helper()
	_, cluster, found := strings.Cut(textOf(t, "README.md"), "```yaml\n")
	cluster, _, _ = strings.Cut(cluster, "```\n")
	if !found || !strings.Contains(cluster, "kind: EtcdCluster") {
		t.Fatalf("the README shows no cluster first, but %q", cluster)
	}
	return cluster
}

// textOf is a page, by its path from the top of the checkout.
func textOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// numbers takes out which member it is, which differs from run to run.
func numbers() *strings.Replacer {
	return strings.NewReplacer("orders-0", "orders-N", "orders-1", "orders-N", "orders-2", "orders-N", "3 left", "N left", "2 left", "N left")
}

// isSample reports whether the lines of a sample are printed one after the other; a line
// with … alone stands for any lines, … in a line for any text, and hashes of commits are any.
func isSample(want, got string) bool {
	hash := regexp.MustCompile("`[0-9a-f]{7}`")
	printed := strings.Split(hash.ReplaceAllString(got, "HASH"), "\n")
	skip := true
	for line := range strings.SplitSeq(hash.ReplaceAllString(want, "HASH"), "\n") {
		if strings.TrimSpace(line) == "…" {
			skip = true
			continue
		}
		i := slices.IndexFunc(printed, func(one string) bool { return isPrinted(line, one) })
		if i < 0 || i > 0 && !skip {
			return false
		}
		printed, skip = printed[i+1:], false
	}
	return true
}

// isPrinted reports whether a line is what a sample shows of it.
func isPrinted(shown, line string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(shown), "…", ".*") + "$").MatchString(line)
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
