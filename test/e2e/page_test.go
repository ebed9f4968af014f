package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/quorate/quorate/test/lab"
)

// page is a page of the documentation whose commands a test runs.
type page struct {
	// dir is the clone of the repository in which its reader works.
	dir string
	env []string
	// parts are its blocks by the heading of the second level that they are under.
	parts map[string][]block
}

// block is commands, one a line, and the lines that they print, in this order, with
// others between them; "…" matches anything.
type block struct{ commands, prints []string }

// headings and fences of Markdown.
var (
	headingLine = regexp.MustCompile(`^## (.*)$`)
	fenceLine   = regexp.MustCompile("^```(\\w*)$")
)

// readPage reads a page, with the names that it gives to things in place of those of
// the test.
func (w *world) readPage(path string, names *strings.Replacer) *page {
	w.Helper()
	text, err := os.ReadFile(path)
	w.must(err)
	p := &page{dir: filepath.Join(w.TempDir(), "clone"), parts: map[string][]block{}}
	heading, fence := "", ""
	for line := range strings.Lines(names.Replace(string(text))) {
		line = strings.TrimRight(line, "\n")
		blocks := p.parts[heading]
		switch {
		case fenceLine.MatchString(line):
			if fence = fenceLine.FindStringSubmatch(line)[1]; fence == "sh" {
				p.parts[heading] = append(blocks, block{})
			}
		case fence == "sh":
			blocks[len(blocks)-1].commands = append(blocks[len(blocks)-1].commands, line)
		case fence == "text":
			blocks[len(blocks)-1].prints = append(blocks[len(blocks)-1].prints, strings.TrimSpace(line))
		case headingLine.MatchString(line):
			heading = headingLine.FindStringSubmatch(line)[1]
		}
	}
	w.must(w.git.Clone(w.Context(), p.dir))
	p.env = w.operator()
	return p
}

// operator is the environment of a person who operates the cluster.
func (w *world) operator() []string {
	w.Helper()
	kubectl, err := w.cluster.Kubectl(w.Context())
	w.must(err)
	tools := w.TempDir()
	for name, path := range map[string]string{"kubectl": kubectl.Path, "quorate": shared.binary} {
		w.must(os.Symlink(path, filepath.Join(tools, name)))
	}
	env := append(os.Environ(), lab.GitEnvironment()...)
	return append(env, "KUBECONFIG="+w.cluster.Kubeconfig, "PATH="+tools+":"+os.Getenv("PATH"))
}

// follow runs the commands under a heading.
func (w *world) follow(p *page, heading string) {
	w.Helper()
	if len(p.parts[heading]) == 0 {
		w.Fatalf("the page has no commands under %q", heading)
	}
	for _, b := range p.parts[heading] {
		var printed strings.Builder
		for _, command := range b.commands {
			text := w.command(p, command)
			w.Logf("$ %s\n%s", command, text)
			printed.WriteString(text)
		}
		if missing := unprinted(printed.String(), b.prints); missing != "" {
			w.Fatalf("the page says that %q prints %q, and it prints\n%s", b.commands, missing, printed.String())
		}
	}
}

// command runs one line. It must succeed: with 0, or where it is a plan, with
// the 2 that says that there is something to do.
func (w *world) command(p *page, line string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "timeout", fmt.Sprint(changeLimit.Seconds()), "bash", "-c", line)
	cmd.Dir, cmd.Env = p.dir, p.env
	text, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); err != nil && (code != 2 || !strings.HasPrefix(line, "quorate plan ")) {
		w.Fatalf("%s: %v\n%s", line, err, text)
	}
	return string(text)
}

// unprinted is the first line of those wanted that is not in the text behind those
// before it, or "".
func unprinted(text string, want []string) string {
	lines := strings.Split(text, "\n")
	for _, line := range want {
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$")
		for len(lines) > 0 && !pattern.MatchString(strings.TrimSpace(lines[0])) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return line
		}
		lines = lines[1:]
	}
	return ""
}
