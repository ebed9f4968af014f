package needs_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/needs"
)

// recorder is a test that notes how it ends.
type recorder struct {
	testing.TB
	skipped, failed bool
	text            string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, _ ...any) { r.skipped, r.text = true, format; runtime.Goexit() }

func (r *recorder) Fatalf(format string, _ ...any) { r.failed, r.text = true, format; runtime.Goexit() }

// run calls a need as a test would.
func run(need func(testing.TB)) *recorder {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		need(r)
	}()
	<-done
	return r
}

func TestUnmetNeedSkipsOrFails(t *testing.T) {
	needed := map[string]func(testing.TB){
		"a server that is not built":       func(t testing.TB) { needs.Server(t, "no-such-server") },
		"a program that is not installed":  func(t testing.TB) { needs.Program(t, "no-such-program") },
		"something that only the test has": func(t testing.TB) { needs.Skip(t, "this is not Linux") },
	}
	for name, need := range needed {
		t.Setenv(needs.All, "")
		if r := run(need); !r.skipped || r.failed || strings.Contains(r.text, "\n") {
			t.Errorf("%s: %+v, want it skipped with one line", name, r)
		}
		t.Setenv(needs.All, "yes")
		if r := run(need); r.skipped || !r.failed {
			t.Errorf("%s with %s: %+v, want it failed", name, needs.All, r)
		}
	}
}

func TestMainExitCode(t *testing.T) {
	t.Setenv(needs.All, "")
	if code := needs.Main(os.ErrNotExist); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	t.Setenv(needs.All, "yes")
	if code := needs.Main(os.ErrNotExist); code != 1 {
		t.Errorf("exit code %d with %s, want 1", code, needs.All)
	}
}

func TestClusterIsChangedByMakeTargetsOnly(t *testing.T) {
	t.Setenv("KUBECONFIG", "/somebody/production")
	t.Setenv(needs.All, "")
	if err := needs.Cluster(); err == nil {
		t.Error("the cluster of KUBECONFIG would be changed by a plain go test")
	}
	t.Setenv(needs.All, "yes")
	if err := needs.Cluster(); err != nil {
		t.Error(err)
	}
}
