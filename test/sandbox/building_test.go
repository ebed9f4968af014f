package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestBuildsFollowWhatTheyShareMostOf(t *testing.T) {
	s := &sandbox{cache: t.TempDir(), source: ".", kubernetes: kubernetesVersions()[0]}
	chains, err := s.chains(append(s.core(), s.core()...))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range chains {
		var names []string
		for _, one := range c {
			names = append(names, one.name)
		}
		got = append(got, strings.Join(names, " "))
	}
	want := []string{"kubernetes/v1.36.3 coredns provisioner", "etcd/" + storeVersion, "pause", "probe"}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKubernetesFollowsWhatIsCompiledBesideIt(t *testing.T) {
	s := &sandbox{cache: t.TempDir(), source: ".", kubernetes: kubernetesVersions()[0], progress: newProgress(&bytes.Buffer{})}
	one := link{compilation: &compilation{name: "demo"}}
	chains, err := s.chainsBeside(one, []string{"versitygw"})
	if err != nil {
		t.Fatal(err)
	}
	if len(chains) != 5 || len(chains[0]) != 4 || chains[0][0].name != "demo" || chains[0][1].name != "kubernetes/v1.36.3" {
		t.Errorf("%d chains, the first of %d", len(chains), len(chains[0]))
	}
	if chains, err = s.chainsBeside(one, nil); err != nil || len(chains) != 1 || len(chains[0]) != 1 {
		t.Errorf("%d chains of nothing else, %v", len(chains), err)
	}
	if _, err := s.chainsBeside(one, []string{"nothing"}); err == nil {
		t.Error("a name that nothing has was found")
	}
}

func TestKubernetesIsOfTheReleaseThatIsAskedFor(t *testing.T) {
	for name, want := range map[string]string{"": "v1.36.3", "1.36": "v1.36.3", "1.30": "v1.30.14", "v1.30": "v1.30.14", "v1.30.14": "v1.30.14"} {
		if got, err := kubernetesVersion(name); err != nil || got != want {
			t.Errorf("%q is %s, %v, want %s", name, got, err, want)
		}
	}
	for _, name := range []string{"1.3", "1.30.1", "v1.29", "newest"} {
		if got, err := kubernetesVersion(name); err == nil || !strings.Contains(err.Error(), "v1.36.3, v1.30.14") {
			t.Errorf("%q is %s, %v", name, got, err)
		}
	}
	places := map[string]bool{}
	for _, version := range kubernetesVersions() {
		s := &sandbox{cache: t.TempDir(), source: ".", kubernetes: version}
		a, err := s.artifactNamed("kubelet")
		if err != nil {
			t.Fatal(err)
		}
		dir, err := s.artifactDir(a)
		if err != nil || !strings.Contains(a.ldflags, version) {
			t.Errorf("%s: %v, %s", version, err, a.ldflags)
		}
		places[filepath.Base(dir)] = true
	}
	if len(places) != len(kubernetesVersions()) {
		t.Errorf("built at %v", places)
	}
}

func TestSandboxOfAnotherReleaseIsLeftAlone(t *testing.T) {
	s := &sandbox{dir: t.TempDir(), kubernetes: "v1.30.14", progress: newProgress(&bytes.Buffer{})}
	for _, step := range []func() error{s.mustBeOfRelease, s.makeDir, s.makeDir, s.mustExist} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	other := &sandbox{dir: s.dir, kubernetes: "v1.36.3"}
	if got := other.currentStatus(t.Context()).Kubernetes; got != "v1.30.14" {
		t.Errorf("the status tells %q", got)
	}
	up := func() error { return other.up(t.Context()) }
	for what, step := range map[string]func() error{"up": up, "others": other.mustExist} {
		if err := step(); err == nil || !strings.Contains(err.Error(), "QUORATE_KUBERNETES=v1.30.14") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestEveryNameOfExecPathCanBeBuilt(t *testing.T) {
	s := &sandbox{}
	all, err := s.named(s.execNames())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(s.execNames()) {
		t.Errorf("%d of %d", len(all), len(s.execNames()))
	}
	if _, err := s.named([]string{"etcd-v0.0.0"}); err == nil {
		t.Error("a name that nothing has was found")
	}
}

func TestChainsRunInOrderAndTwoAtOnce(t *testing.T) {
	var mu sync.Mutex
	var order []string
	running, most := 0, 0
	one := func(name string) link {
		return link{&compilation{name: name}, func(context.Context) error {
			mu.Lock()
			running, order = running+1, append(order, name)
			most = max(most, running)
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		}}
	}
	p := newProgress(&bytes.Buffer{})
	if err := p.build(t.Context(), []chain{{one("a1"), one("a2")}, {one("b")}, {one("c")}, {one("d")}}); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(order, " ")
	if len(order) != 5 || strings.Index(all, "a1") > strings.Index(all, "a2") {
		t.Errorf("built %s", all)
	}
	if most > atOnce {
		t.Errorf("%d at once", most)
	}
}

func TestFailedBuildEndsTheOthers(t *testing.T) {
	wrong := errors.New("does not compile")
	var after bool
	chains := []chain{
		{{&compilation{name: "bad"}, func(context.Context) error { return wrong }}},
		{
			{&compilation{name: "long"}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			{&compilation{name: "never"}, func(context.Context) error { after = true; return nil }},
		},
	}
	if err := newProgress(&bytes.Buffer{}).build(t.Context(), chains); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
	if after {
		t.Error("a build began after another had failed")
	}
}

func TestProgressOfBuilds(t *testing.T) {
	compiling := &compilation{name: "kubernetes", begun: true, counted: true, stale: 2000, fresh: 940}
	linked := &compilation{name: "etcd", begun: true, counted: true, stale: 60, fresh: 60}
	later := &compilation{name: "coredns", expected: 160}
	b := &building{begin: time.Now().Add(-200 * time.Second), all: []*compilation{compiling, linked, later}}
	want := "building kubernetes (940 of 2000 packages) and etcd (linking); 3 of 3 builds left, about 4 min"
	if got := b.state(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	linked.end()
	later.start()
	want = "building kubernetes (940 of 2000 packages) and coredns (loading modules); 2 of 3 builds left, about 4 min"
	if got := b.state(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	compiling.end()
	later.end()
	if got := b.left(); got != "all is built" {
		t.Error(got)
	}
}

func TestAbout(t *testing.T) {
	for seconds, want := range map[float64]string{0: "10 s", 14: "10 s", 26: "30 s", 50: "1 min", 80: "1 min", 100: "2 min"} {
		if got := about(seconds); got != "about "+want {
			t.Errorf("%v: %s, want %s", seconds, got, want)
		}
	}
}

func TestNamesOfPackagesAreCountedAndTheRestIsKept(t *testing.T) {
	count := 0
	s := &saying{name: func() { count++ }}
	for _, part := range []string{"internal/", "abi\nk8s.io/api", "/core/v1\n# k8s.io/api", "\n./a.go:1:2: wrong thing\n"} {
		fmt.Fprint(s, part)
	}
	if want := "# k8s.io/api\n./a.go:1:2: wrong thing\n"; count != 2 || s.rest.String() != want {
		t.Errorf("%d names, kept %q", count, s.rest.String())
	}
}

func TestBuildTagIsAddedToThoseOfTheEnvironment(t *testing.T) {
	for before, want := range map[string]string{
		"":                      "-tags=x",
		"-trimpath":             "-trimpath -tags=x",
		"-tags=a,b -mod=vendor": "-tags=a,b,x -mod=vendor",
	} {
		if got := withTag(before, "x"); got != want {
			t.Errorf("%q: got %q, want %q", before, got, want)
		}
	}
}

func TestSourceIsThatOfTheWorkingDirectory(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("kubernetes")
	if got := sourceDir(); got != here {
		t.Errorf("source %q, want %q", got, here)
	}
	t.Chdir("/")
	s, err := newSandbox(t.Output(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.execPath("kubelet"); err == nil || !strings.Contains(err.Error(), "checkout") {
		t.Errorf("outside of a checkout: %v", err)
	}
}
