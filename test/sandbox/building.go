package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many builds run at a time: while one loads modules or is linked,
// on one core, another is compiled.
const atOnce = 2

// compilation is one `go build`, and how far it has come.
type compilation struct {
	name     string
	dir      string
	flags    []string
	packages []string
	// expected is how many packages have to be compiled when nothing is cached.
	expected int

	mu      sync.Mutex
	begun   bool
	counted bool
	stale   int // the packages that have to be compiled, once they are counted
	fresh   int // of these, those that are
	ended   bool
}

// run compiles. The packages that go build names as it goes on are counted, all
// else that it says is for the error.
func (c *compilation) run(ctx context.Context) error {
	if err := c.count(ctx); err != nil {
		return err
	}
	args := append([]string{"build", "-v"}, c.flags...)
	said, err := c.goCommand(ctx, io.Discard, append(args, c.packages...)...)
	if err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", c.name, c.dir, err, said)
	}
	return nil
}

// count finds out how many packages have to be compiled; it loads the modules that
// are missing on the way.
func (c *compilation) count(ctx context.Context) error {
	var names bytes.Buffer
	args := []string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}
	said, err := c.goCommand(ctx, &names, append(args, c.packages...)...)
	if err != nil {
		return fmt.Errorf("list the packages of %s in %s: %w\n%s", c.name, c.dir, err, said)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted, c.stale = true, len(strings.Fields(names.String()))
	return nil
}

// goCommand runs the go command and returns what it said, but for the names of
// packages.
func (c *compilation) goCommand(ctx context.Context, out io.Writer, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = c.dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="+withTag(os.Getenv("GOFLAGS"), providerless))
	if os.Getenv("GOGC") == "" {
		// Most packages are compiled in less than 200 MiB without collecting any
		// garbage, which would be a third of the work. The others keep the limit.
		command.Env = append(command.Env, "GOGC=off", "GOMEMLIMIT=1GiB")
	}
	said := &saying{name: c.add}
	command.Stdout, command.Stderr = out, said
	err := command.Run()
	return said.rest.String(), err
}

// providerless leaves out the clients of clouds that Kubernetes 1.30 still had, which take minutes to compile.
// No other program knows this tag.
const providerless = "providerless"

// withTag adds a build tag to the flags of GOFLAGS. A -tags flag of the command would replace the tags there, and
// packages that are built with other tags are compiled again.
func withTag(goflags, tag string) string {
	flags := strings.Fields(goflags)
	for i, flag := range flags {
		if strings.HasPrefix(flag, "-tags=") {
			flags[i] += "," + tag
			return strings.Join(flags, " ")
		}
	}
	return strings.Join(append(flags, "-tags="+tag), " ")
}

func (c *compilation) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh++
}

func (c *compilation) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
}

func (c *compilation) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// state is how far it has come, for a person; empty unless it is under way.
func (c *compilation) state() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.begun, c.ended:
		return ""
	case !c.counted:
		return c.name + " (loading modules)"
	case c.fresh >= c.stale:
		return c.name + " (linking)"
	}
	return fmt.Sprintf("%s (%d of %d packages)", c.name, c.fresh, c.stale)
}

// linking is the work of linking, in packages that could be compiled meanwhile.
const linking = 40

// work is what it is and what of it is done, in packages.
func (c *compilation) work() (all, done int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all = c.expected + linking; c.counted {
		all = c.stale + linking
	}
	if c.ended {
		return all, all
	}
	return all, min(c.fresh, c.stale)
}

// saying takes what `go build -v` says: the name of a package is a line without a
// space, and counted; the rest is kept.
type saying struct {
	name func()
	line []byte
	rest bytes.Buffer
}

func (s *saying) Write(text []byte) (int, error) {
	s.line = append(s.line, text...)
	for {
		line, after, whole := bytes.Cut(s.line, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		if s.line = after; bytes.ContainsAny(line, " \t") {
			fmt.Fprintf(&s.rest, "%s\n", line)
		} else {
			s.name()
		}
	}
}

// building is a number of builds.
type building struct {
	*progress
	begin time.Time
	all   []*compilation
}

// chain is builds that follow each other, since the later ones need packages that the
// first compiles.
type chain []link

// link is a compilation and what belongs to it; do runs both.
type link struct {
	*compilation
	do func(context.Context) error
}

// build runs the chains, atOnce of them at a time, and tells from time to time how
// long that still takes.
func (p *progress) build(ctx context.Context, chains []chain) error {
	b := &building{progress: p, begin: time.Now()}
	for _, c := range chains {
		for _, one := range c {
			b.all = append(b.all, one.compilation)
		}
	}
	defer p.beat(b.state)()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, c := range chains {
		group.Go(func() error { return b.run(ctx, c) })
	}
	return group.Wait()
}

func (b *building) run(ctx context.Context, c chain) error {
	for _, one := range c {
		if err := ctx.Err(); err != nil {
			return err // of another build, which says more
		}
		begin := time.Now()
		one.start()
		b.say("building %s…; %s", one.name, b.left())
		if err := one.do(ctx); err != nil {
			return err
		}
		one.end()
		b.say("building %s… done in %.1fs; %s", one.name, time.Since(begin).Seconds(), b.left())
	}
	return nil
}

// state says what is under way and how long the rest takes.
func (b *building) state() string {
	var words []string
	for _, c := range b.all {
		if state := c.state(); state != "" {
			words = append(words, state)
		}
	}
	return "building " + strings.Join(words, " and ") + "; " + b.left()
}

// slow is how long a package takes on two cores, until the pace is known.
const slow = 0.1

// left says how many builds are left, and how long they take at the pace so far.
func (b *building) left() string {
	var builds, all, done int
	for _, c := range b.all {
		work, over := c.work()
		if over < work {
			builds++
		}
		all, done = all+work, done+over
	}
	if builds == 0 {
		return "all is built"
	}
	pace := slow
	if done > 100 {
		pace = time.Since(b.begin).Seconds() / float64(done)
	}
	return fmt.Sprintf("%d of %d builds left, %s", builds, len(b.all), about(float64(all-done)*pace))
}

// about is a rough time for a person.
func about(seconds float64) string {
	if seconds < 50 {
		return fmt.Sprintf("about %d s", 10*max(1, int(seconds/10+0.5)))
	}
	return fmt.Sprintf("about %d min", max(1, int(seconds/60+0.5)))
}
