package release_test

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"

	"github.com/quorate/quorate/schema/release"
	"github.com/quorate/quorate/test/needs"
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

// binary returns the path of a release's binary.
func binary(t *testing.T, v release.Version) string {
	t.Helper()
	return needs.Server(t, "etcd-v"+v.String())
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
