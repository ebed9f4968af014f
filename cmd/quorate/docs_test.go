package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorate/quorate/cmd/quorate/internal/docs"
)

var update = flag.Bool("update", false, "rewrite docs/cli.md")

// docs/cli.md is the help of the commands, the same on every machine.
func TestCLIPageIsFresh(t *testing.T) {
	const path = "../../docs/cli.md"
	// In a pod these are defaults of flags.
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("QUORATE_IMAGE", "")
	want := docs.Reference(newRoot(programName))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): run go test ./cmd/quorate -run CLI -update", path, err)
	}
	for _, has := range []string{"## quorate run\n", "## quorate snapshot list\n", "| `--interval duration` | `30s` |", "| `-o, --output text\\|json\\|github\\|sarif` | `text` |"} {
		if !strings.Contains(want, has) {
			t.Errorf("it has no %q", has)
		}
	}
	for _, internal := range []string{"restore-volume", "--help for"} {
		if strings.Contains(want, internal) {
			t.Errorf("it has %q", internal)
		}
	}
}

// quorate docs has all pages, lists what each is for, and prints it as it is.
func TestDocsPrintsThePagesOfTheBinary(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	listed := documentation(t, 0)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if name != "README" && !regexp.MustCompile(`(?m)^`+name+` +\S.{20}`).MatchString(listed) {
			t.Errorf("%s is listed without its sentence:\n%s", name, listed)
		}
		for _, as := range []string{name, "docs/" + name + ".md"} {
			if documentation(t, 0, as) != string(text) {
				t.Errorf("quorate docs %s is not %s", as, file)
			}
		}
	}
	if text := documentation(t, 1, "alert"); text != "quorate: there is no page \"alert\", did you mean alerts?\n" {
		t.Error(text)
	}
	if text := documentation(t, 1, "weather"); text != "quorate: there is no page \"weather\"; quorate docs lists them\n" {
		t.Error(text)
	}
}

// documentation is what quorate docs prints, and how it ends.
func documentation(t *testing.T, status int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if got := execute(t.Context(), append([]string{"docs"}, args...), &out, &out); got != status {
		t.Fatalf("quorate docs %q ends with %d: %s", args, got, &out)
	}
	return out.String()
}

// There is a man page for each command that help lists, with its flags, and two builds of one
// commit write the same ones.
func TestManPagesAreOfTheCommandsAndTheCommit(t *testing.T) {
	pages := func(build docs.Build) map[string]string {
		dir := filepath.Join(t.TempDir(), "share", "man1")
		cmd := newRoot(programName)
		for _, sub := range cmd.Commands() {
			if sub.Name() == "docs" {
				cmd.RemoveCommand(sub)
			}
		}
		cmd.AddCommand(docs.Command(build))
		cmd.SetArgs([]string{"docs", "--man", dir})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.Base(file)] = string(text)
		}
		return found
	}
	of := docs.Build{Version: "v1.2.3", Time: "2026-03-01T23:30:00-05:00"}
	first, second := pages(of), pages(of)
	for _, name := range []string{"quorate.1", "quorate-run.1", "quorate-docs.1", "quorate-snapshot-list.1", "quorate-completion.1"} {
		if first[name] == "" || first[name] != second[name] {
			t.Errorf("%s is %q, and then %q", name, first[name], second[name])
		}
	}
	run := first["quorate-run.1"]
	for _, has := range []string{
		".TH \"QUORATE-RUN\" \"1\" \"2026-03-02\" \"quorate v1.2.3\" \"quorate\"\n.SH NAME\nquorate\\-run \\- Run the daemon\n.SH SYNOPSIS\n.B quorate run [flags]\n",
		"\n.TP\n\\fB\\-\\-interval\\fR \\fIduration\\fR\nGit poll interval (default 30s)\n", "\n.SH SEE ALSO\n\\fBquorate\\fR(1)\n",
	} {
		if !strings.Contains(run, has) {
			t.Errorf("it has no %q:\n%s", has, run)
		}
	}
	for name, text := range first {
		if beyond := regexp.MustCompile(`[^\n -~]`).FindString(text); beyond != "" {
			t.Errorf("%s has %q, which not every man sets", name, beyond)
		}
		if strings.Contains(name, "restore-volume") || strings.Contains(name, "help") {
			t.Errorf("%s is of a command that help does not list", name)
		}
		if request := regexp.MustCompile(`(?m)^[.'](TH|SH|B|PP|nf|fi|TP)?\b.*$|^[.'].*$`).FindAllStringSubmatch(text, -1); len(request) < 6 {
			t.Errorf("%s has %d requests", name, len(request))
		} else {
			for _, r := range request {
				if r[1] == "" {
					t.Errorf("%s has the request %q", name, r[0])
				}
			}
		}
	}
	// It is no directory: an error names it.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := documentation(t, 1, "--man", file); !strings.Contains(text, file) {
		t.Error(text)
	}
}
