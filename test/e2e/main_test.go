package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/test/checkout"
	"github.com/quorate/quorate/test/lab"
	"github.com/quorate/quorate/test/needs"
)

const (
	// image is quorate's image under a name that no other program loads, so that
	// a demo that runs at the same time does not change it.
	image = "ghcr.io/quorate/quorate:e2e"
	// atOnce is how many tests run at a time: each keeps about one core busy.
	atOnce = 2
	// prepareLimit bounds a build from nothing and the loading of the image.
	prepareLimit = 15 * time.Minute
)

// suite is what all tests share.
type suite struct {
	cluster *lab.Cluster
	// rights are those that deploy/base gives to quorate, nil with -namespaced.
	rights *lab.Rights
	// store is a healthy S3 server. Tests that break theirs start another one.
	store *lab.S3Server
	// binary is quorate, image its image on the nodes, dir where logs go.
	binary, image, dir string
	keep               bool
	// endings are namespaces on their way out.
	endings sync.WaitGroup

	mu sync.Mutex
	// leftOut are the tests that only -long runs.
	leftOut []string
}

var (
	shared     suite
	long       = flag.Bool("long", false, "run all tests, and not only a few")
	namespaced = flag.Bool("namespaced", false, "give quorate the rights of deploy/overlays/namespaces: in the namespace of each test, and none beyond")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m)) //nolint:forbidigo // TestMain returns no error
}

func run(m *testing.M) int {
	if parallel := flag.Lookup("test.parallel"); parallel != nil {
		if n, err := strconv.Atoi(parallel.Value.String()); err == nil && n > atOnce {
			_ = parallel.Value.Set(strconv.Itoa(atOnce))
		}
	}
	if err := needs.Cluster(); err != nil {
		return needs.Main(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), prepareLimit)
	defer cancel()
	err := shared.prepare(ctx)
	defer shared.close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer shared.sayLeftOut()
	if code := m.Run(); code != 0 {
		return code
	}
	return shared.judgeRights()
}

// judgeRights returns 1 where no test has used a right that deploy/base gives quorate: each must be
// needed. It takes all tests to say so.
func (s *suite) judgeRights() int {
	some := flag.Lookup("test.run").Value.String() + flag.Lookup("test.skip").Value.String()
	if !*long || some != "" || s.cluster.Sandbox == nil {
		return 0
	}
	unused, err := s.cluster.Unused(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	if len(unused) > 0 {
		fmt.Fprintf(os.Stderr, "e2e: deploy/base lets quorate do what no test has needed: %v\n", unused)
		return 1
	}
	fmt.Println("each right of deploy/base was used")
	return 0
}

// takesLong leaves a test to `make e2e`: all tests together are too slow for
// a quick check, and take hours where the machine is shared with others.
func takesLong(t *testing.T) {
	t.Helper()
	if *long {
		return
	}
	shared.mu.Lock()
	shared.leftOut = append(shared.leftOut, t.Name())
	shared.mu.Unlock()
	t.Skip("left to make e2e (-args -long)")
}

func (s *suite) sayLeftOut() {
	if len(s.leftOut) > 0 {
		fmt.Printf("left to make e2e (-args -long): %s\n", strings.Join(s.leftOut, ", "))
	}
}

func (s *suite) prepare(ctx context.Context) (err error) {
	s.keep = os.Getenv("QUORATE_E2E_KEEP") != ""
	if s.cluster, err = lab.Connect(ctx); err != nil {
		return fmt.Errorf("these tests need a Kubernetes cluster: %w", err)
	}
	if s.cluster.Sandbox != nil {
		// It may have been brought up for the demo, which needs less of it.
		if err := s.cluster.Sandbox.Up(ctx, os.Stderr, "--all"); err != nil {
			return err
		}
	}
	if s.dir, err = os.MkdirTemp("", "quorate-e2e-"); err != nil {
		return err
	}
	if !*namespaced {
		if s.rights, err = s.cluster.GrantRights(ctx, s.dir); err != nil {
			return err
		}
	}
	if err := s.build(ctx); err != nil {
		return err
	}
	if s.store, err = s.cluster.StartS3(ctx); err != nil {
		return err
	}
	return s.store.UseCredentials()
}

// build builds quorate once for all tests, and gives the nodes its image.
func (s *suite) build(ctx context.Context) (err error) {
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	if err := lab.GoBuild(ctx, root, s.dir, "./cmd/quorate", "./cmd/quorate-guard"); err != nil {
		return err
	}
	s.binary = filepath.Join(s.dir, "quorate")
	if s.image = os.Getenv("QUORATE_IMAGE"); s.image != "" {
		return nil
	}
	if s.cluster.Sandbox == nil {
		return errors.New("set QUORATE_IMAGE to an image of quorate that the cluster's nodes have or can pull")
	}
	s.image = image
	return s.cluster.Sandbox.LoadImage(ctx, image, "65532:65532", s.binary, filepath.Join(s.dir, "quorate-guard"))
}

func (s *suite) close() {
	s.endings.Wait()
	if s.store != nil {
		s.store.Close()
	}
	if s.rights != nil {
		if err := s.rights.Revoke(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
		}
	}
	if s.dir == "" {
		return
	}
	// Logs of failed tests stay; a directory that is not empty is not removed.
	for _, name := range []string{"quorate", "quorate-guard", ""} {
		_ = os.Remove(filepath.Join(s.dir, name))
	}
}
