package release_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/schema/release"
)

// checked are the releases whose binaries are compared: every minor that the
// sandbox builds, and where a line has several, the first and the last.
func checked() []release.Version {
	return []release.Version{
		{Major: 3, Minor: 3, Patch: 27},
		{Major: 3, Minor: 4, Patch: 34},
		{Major: 3, Minor: 5, Patch: 21},
		{Major: 3, Minor: 5, Patch: 35},
		{Major: 3, Minor: 6, Patch: 12},
		{Major: 3, Minor: 6, Patch: 16},
		{Major: 3, Minor: 7, Patch: 3},
	}
}

// binaries are the paths of the etcd binaries, by release. Building them is part
// of the test: a check that is skipped where nothing was built checks nothing.
var binaries = sync.OnceValues(buildBinaries)

func buildBinaries() (map[release.Version]string, error) {
	dir, err := os.MkdirTemp("", "release-check-*")
	if err != nil {
		return nil, fmt.Errorf("build etcd: %w", err)
	}
	defer os.RemoveAll(dir)
	sandbox := filepath.Join(dir, "sandbox")
	build := exec.Command("go", "build", "-o", sandbox, ".")
	build.Dir, build.Env = filepath.Join("..", "sandbox"), append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the sandbox tool: %w\n%s", err, out)
	}
	paths := map[release.Version]string{}
	for _, v := range checked() {
		command := exec.Command(sandbox, "exec-path", "--build", "etcd-v"+v.String())
		command.Stderr = os.Stderr
		out, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("build etcd %s: %w", v, err)
		}
		paths[v] = strings.TrimSpace(string(out))
	}
	return paths, nil
}

// binary is the path of one of them.
func binary(t *testing.T, v release.Version) string {
	t.Helper()
	paths, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	return paths[v]
}

// forEach runs a test for every binary.
func forEach(t *testing.T, test func(*testing.T, release.Version)) {
	t.Helper()
	for _, v := range checked() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			test(t, v)
		})
	}
}

// helpWith is what the binary prints for flags and then --help. It ends with an
// error at a flag that it does not take, and otherwise never starts a member.
func helpWith(t *testing.T, v release.Version, flags ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := exec.CommandContext(t.Context(), binary(t, v), append(flags, "--help")...)
	command.Dir, command.Stdout, command.Stderr = t.TempDir(), &out, &out
	err := command.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), err
}

// help is what the binary prints for --help.
func help(t *testing.T, v release.Version) string {
	t.Helper()
	text, err := helpWith(t, v)
	if err != nil {
		t.Fatalf("etcd %s --help: %v\n%s", v, err, text)
	}
	return text
}
