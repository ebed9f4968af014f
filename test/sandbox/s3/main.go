// Command s3 is versitygw with the one backend that tests use, directories of this
// machine, and of its options those. Its own command holds Azure's SDK, an
// integration test and an IAM service as well, which take as long to compile as the
// rest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "versitygw:", err)
		os.Exit(1) //nolint:forbidigo // main is the one place that exits
	}
}

// run serves what `versitygw [--port=ADDRESS …] posix --sidecar=DIR DIR` names. What
// has no option here is what it is in versitygw's own command.
func run(ctx context.Context, args []string) error {
	config := &embedgw.Config{
		RootUserAccess: os.Getenv("ROOT_ACCESS_KEY"), RootUserSecret: os.Getenv("ROOT_SECRET_KEY"),
		MaxConnections: 250000, MaxRequests: 100000, MultipartMaxParts: 10000,
	}
	var port string
	options := flag.NewFlagSet("versitygw", flag.ContinueOnError)
	options.StringVar(&port, "port", ":7070", "address to listen at")
	options.StringVar(&config.Region, "region", "us-east-1", "region that clients are told")
	options.StringVar(&config.CertFile, "cert", "", "certificate, for TLS")
	options.StringVar(&config.KeyFile, "key", "", "its key")
	options.BoolVar(&config.Quiet, "quiet", false, "do not log requests")
	if err := options.Parse(args); err != nil {
		return err
	}
	config.Ports = []string{port}
	if options.Arg(0) != "posix" {
		return errors.New("want the backend posix, as in versitygw --port=:7070 posix --sidecar=DIR DIR")
	}
	backend, err := newBackend(options.Args()[1:])
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, backend, config)
}

func newBackend(args []string) (*posix.Posix, error) {
	var sidecar string
	options := flag.NewFlagSet("posix", flag.ContinueOnError)
	options.StringVar(&sidecar, "sidecar", "", "directory for metadata")
	if err := options.Parse(args); err != nil {
		return nil, err
	}
	if sidecar == "" || options.NArg() != 1 {
		return nil, errors.New("want posix --sidecar=DIR and one directory of buckets")
	}
	metadata, err := meta.NewSideCar(sidecar)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	posixOptions := posix.PosixOpts{
		SideCarDir: sidecar, Concurrency: 5000, IOBufferSize: 1 << 20, CopyObjectThreshold: 5 << 30,
	}
	posixOptions.SetNewDirPerm(0o755)
	posixOptions.SetNewFilePerm(0o644)
	return posix.New(options.Arg(0), metadata, posixOptions)
}
