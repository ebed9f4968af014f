// Command bench measures what users feel, on a real cluster, and prints one
// table: how long an upgrade takes beside a script that just deletes the pods,
// what a client notices of either, and how soon a commit is acted on.
//
// Both kinds of roll alternate in one run, so that a slow moment of the machine
// meets both, and the figures are medians.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/quorate/quorate/test/lab"
)

func main() {
	rolls := flag.Int("rolls", 10, "rolls of each kind; 0 measures only what needs no cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{Progress: lab.NewProgress(os.Stderr), rolls: *rolls}
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// limit bounds the whole run, at two minutes a pair of rolls.
func (b *bench) limit() time.Duration { return time.Duration(b.rolls)*2*time.Minute + 5*time.Minute }
