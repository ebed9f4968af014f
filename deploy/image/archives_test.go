package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// archivesOf are the files that are written for a checkout, by name.
func archivesOf(t *testing.T, root string, platforms ...v1.Platform) map[string][]byte {
	t.Helper()
	to := t.TempDir()
	// An earlier release's would be published with these.
	if err := os.WriteFile(filepath.Join(to, "quorate_v0.9.0_linux_amd64.tar.gz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := archives(t.Context(), root, to, platforms); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	entries, err := os.ReadDir(to)
	for _, e := range entries {
		text, errRead := os.ReadFile(filepath.Join(to, e.Name()))
		files[e.Name()], err = text, errors.Join(err, errRead)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// untar are the files of a .tar.gz, which are in order, of no owner and of one time.
func untar(t *testing.T, content []byte, at time.Time) (names []string, files map[string]string) {
	t.Helper()
	from, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for archive := tar.NewReader(from); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		text, errRead := io.ReadAll(archive)
		if err := errors.Join(err, errRead); err != nil {
			t.Fatal(err)
		}
		mode := int64(0o644)
		if filepath.Base(h.Name) == "quorate" {
			mode = 0o755
		}
		if !h.ModTime.Equal(at) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Mode != mode {
			t.Errorf("%s is %+v", h.Name, h)
		}
		names, files[h.Name] = append(names, h.Name), string(text)
	}
}

// An archive has all that a user needs, and its checksum; two clones on machines with different
// settings give the same ones, and another commit does not. Of six platforms, one of each system.
func TestTwoClonesGiveTheSameArchives(t *testing.T) {
	platforms := []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "darwin", Architecture: "arm64"}, {OS: "windows", Architecture: "amd64"}}
	origin := small(t)
	first := archivesOf(t, cloneOf(t, origin, "here"), platforms...)
	there := cloneOf(t, origin, "somewhere", "else")
	t.Setenv("POD_NAMESPACE", "elsewhere")
	t.Setenv("GOFLAGS", "-tags=other")
	if second := archivesOf(t, there, platforms...); !maps.EqualFunc(first, second, bytes.Equal) {
		t.Errorf("%s\nand\n%s", first["SHA256SUMS"], second["SHA256SUMS"])
	}
	git(t, there, "commit", "-q", "--allow-empty", "-m", "Go on")
	if third := archivesOf(t, there, platforms[0]); strings.HasPrefix(string(first["SHA256SUMS"]), string(third["SHA256SUMS"])) {
		t.Error("another commit has the same archives")
	}
	want := []string{"SHA256SUMS"}
	sums := ""
	for _, p := range platforms {
		name := "quorate_v1.2.3_" + p.OS + "_" + p.Architecture + ".tar.gz"
		if p.OS == "windows" {
			name = strings.TrimSuffix(name, ".tar.gz") + ".zip"
		}
		want = append(want, name)
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(first[name]), name)
	}
	if got := slices.Sorted(maps.Keys(first)); !slices.Equal(got, slices.Sorted(slices.Values(want))) || string(first["SHA256SUMS"]) != sums {
		t.Errorf("%v with the sums\n%s", got, first["SHA256SUMS"])
	}
	if all := archived(); len(all) != 6 || !slices.ContainsFunc(all, platforms[2].Equals) {
		t.Errorf("a release has archives for %v", all)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	names, files := untar(t, first["quorate_v1.2.3_darwin_arm64.tar.gz"], at)
	top := "quorate_v1.2.3_darwin_arm64/"
	contents := []string{top + "LICENSE", top + "README.md", top + "completions/_quorate", top + "completions/quorate.bash", top + "completions/quorate.fish", top + "completions/quorate.ps1", top + "man/man1/quorate.1", top + "quorate"}
	if !slices.Equal(names, contents) || files[top+"LICENSE"] != "Take it.\n" || files[top+"completions/_quorate"] != "[completion zsh] \n" || files[top+"man/man1/quorate.1"] != ".TH\n" {
		t.Errorf("%q, %q", names, files[top+"completions/_quorate"])
	}
	if program := files[top+"quorate"]; !strings.HasPrefix(program, "\xcf\xfa\xed\xfe") {
		t.Errorf("the program for darwin begins with %q", program[:min(4, len(program))])
	}
	zipped, err := zip.NewReader(bytes.NewReader(first["quorate_v1.2.3_windows_amd64.zip"]), int64(len(first["quorate_v1.2.3_windows_amd64.zip"])))
	if err != nil || len(zipped.File) != len(contents) {
		t.Fatalf("the archive for Windows: %v, %d files", err, len(zipped.File))
	}
	for i, f := range zipped.File {
		if name := strings.Replace(contents[i], "darwin_arm64", "windows_amd64", 1); f.Name != name && f.Name != name+".exe" || !f.Modified.Equal(at) {
			t.Errorf("%s is there for %s, of %s", f.Name, name, f.Modified)
		}
	}
}

// The archive of quorate itself, for this machine: it runs, says its commit, and has the man page
// of each command and what shells complete. A second build is the same.
func TestQuorateIsOneArchive(t *testing.T) {
	origin := git(t, ".", "rev-parse", "--show-toplevel")
	here := v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}
	clone := cloneOf(t, origin, "here")
	first, second := archivesOf(t, clone, here), archivesOf(t, cloneOf(t, clone, "somewhere", "else"), here)
	if len(first) != 2 || !maps.EqualFunc(first, second, bytes.Equal) {
		t.Errorf("%s and %s", first["SHA256SUMS"], second["SHA256SUMS"])
	}
	at, err := time.Parse(time.RFC3339, git(t, clone, "log", "-1", "--format=%cI"))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Fields(string(first["SHA256SUMS"]))[1]
	_, files := untar(t, first[name], at)
	top := strings.TrimSuffix(name, ".tar.gz") + "/"
	program := filepath.Join(t.TempDir(), "quorate")
	if err := os.WriteFile(program, []byte(files[top+"quorate"]), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "version", "-o", "json").Output()
	if err != nil || !strings.Contains(string(out), `"commit": "`+git(t, clone, "rev-parse", "HEAD")+`"`) || strings.Contains(string(out), "dirty") {
		t.Errorf("it is %s, %v", out, err)
	}
	for path, has := range map[string]string{
		"man/man1/quorate-run.1": `.TH "QUORATE-RUN" "1" "` + at.UTC().Format(time.DateOnly) + `"`, "man/man1/quorate-snapshot-list.1": ".SH OPTIONS", "LICENSE": "Apache License", "README.md": "quorate",
		"completions/quorate.bash": "__start_quorate", "completions/_quorate": "#compdef quorate", "completions/quorate.fish": "complete -c quorate", "completions/quorate.ps1": "Register-ArgumentCompleter",
	} {
		if !strings.Contains(files[top+path], has) {
			t.Errorf("%s has no %s: %.200s", path, has, files[top+path])
		}
	}
}
