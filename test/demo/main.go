// Command demo shows quorate's main job from end to end, and fails unless it was
// done well: a cluster appears because a file is in Git, and a commit brings it
// to the next minor version of etcd while a client writes and reads without pause.
//
// It ends with exit code 0 only if every member reports the new version, every
// acknowledged write is there, and the backup that was taken before the
// upgrade is whole. `make demo` runs it in the sandbox; where KUBECONFIG names
// another cluster it runs there.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/quorate/quorate/test/lab"
)

func main() {
	keep := flag.Bool("keep", false, "leave the namespaces and the logs when the demo is over")
	pictureFile := flag.String("picture", "", "draw the last upgrade into this SVG file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	progress := lab.NewProgress(os.Stdout)
	err := newDemo(progress, *keep, *pictureFile).run(ctx)
	stop()
	if err != nil {
		fmt.Println()
		progress.Say("%s %v", progress.Bad("The demo failed:"), err)
		os.Exit(1)
	}
}
