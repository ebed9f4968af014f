// Package needs finds what tests need beside Go: servers, programs, time. A test whose needs are not met is
// skipped with one line that names the make target that meets them, so that `go test ./...` passes on any
// machine. The make targets themselves set QUORATE_TEST_ALL, and there the same line is a failure: what a target
// promises to run is never skipped.
package needs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/quorate/quorate/test/checkout"
)

// All is the environment variable that turns skipped tests into failures when it is not empty.
const All = "QUORATE_TEST_ALL"

// Skip skips a test for the reason given, or fails it when All is set. It does not return.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(All) != "" {
		t.Fatalf("nothing may be skipped here ("+All+" is set): "+format, args...)
	}
	t.Skipf(format, args...)
}

// Main returns the exit code for a TestMain whose package cannot run its tests here: 0 after one line that says
// why, or 1 when All is set.
func Main(err error) int {
	fmt.Fprintln(os.Stderr, "no test of this package is run:", err)
	if os.Getenv(All) != "" {
		return 1
	}
	return 0
}

// Time returns an error under -short, for a TestMain.
func Time() error {
	if testing.Short() {
		return errors.New("they take long: `make test` runs them, without -short")
	}
	return nil
}

// Cluster returns an error unless a make target runs the tests. Tests that change a Kubernetes cluster never run
// because KUBECONFIG happens to name one.
func Cluster() error {
	if os.Getenv(All) == "" {
		return errors.New("they change a Kubernetes cluster: `make test` and `make e2e` bring one up and run them")
	}
	return nil
}

// Long skips a test under -short.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		Skip(t, "takes long: `make unit` runs it, which is without -short")
	}
}

// Server returns the path of a server that tests start, such as etcd-v3.5.35 or versitygw.
func Server(t testing.TB, name string) string {
	t.Helper()
	path, err := checkout.Program(name)
	if err != nil {
		Skip(t, "%v", err)
	}
	return path
}

// Program returns the path of an installed program, such as promtool. Directories of administrators are searched
// as well, because not every user has them in PATH.
func Program(t testing.TB, name string) string {
	t.Helper()
	for _, candidate := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	Skip(t, "needs %s, which is not installed: `make servers` installs it", name)
	return ""
}
