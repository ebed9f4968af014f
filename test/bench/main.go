// Command bench measures what users feel, on a real cluster, and prints one
// table: how long an upgrade takes compared with a script that just deletes the pods,
// what a client notices of either, how soon a commit is acted on, and what a backup
// and a restore take compared with etcd's own tools.
//
// What is compared alternates in one run, so that a slow moment of the machine
// meets all of it, and the figures are medians.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/test/lab"
)

func main() {
	b := &bench{Progress: lab.NewProgress(os.Stderr), sizes: []int64{100 << 20, 1 << 30}, fleets: []int{300, 1000, 3000}}
	flag.IntVar(&b.rolls, "rolls", 10, "rolls of each kind; 0 measures only what needs no cluster")
	flag.IntVar(&b.keys, "keys", 2_000_000, "keys of the large cluster that is rolled; 0 for none")
	flag.StringVar(&b.only, "only", "", "measure the rolls only, the large cluster (large), or one part that needs no cluster: noop, polls, fetches, commits, page, metrics, year, files, start, fleet or backups")
	flag.Func("fleets", "how many clusters the fleets have that are measured with sockets, as in 300,1000,3000", b.setFleets)
	flag.IntVar(&b.members, "members", 1, "members of each cluster of these fleets")
	flag.Func("sizes", "sizes of the member that is backed up, as in 100Mi,1Gi", b.setSizes)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// setSizes reads the flag.
func (b *bench) setSizes(text string) error {
	b.sizes = nil
	for one := range strings.SplitSeq(text, ",") {
		q, err := resource.ParseQuantity(one)
		if err != nil || q.Value() < 1<<20 || q.Value() > 3<<30 {
			return errors.New("write sizes from 1Mi to 3Gi")
		}
		b.sizes = append(b.sizes, q.Value())
	}
	return nil
}

// setFleets reads the flag.
func (b *bench) setFleets(text string) error {
	b.fleets = nil
	for one := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(one)
		if err != nil || n < 20 || n > 20_000 {
			return errors.New("write numbers from 20 to 20000")
		}
		b.fleets = append(b.fleets, n)
	}
	return nil
}

// limit bounds the whole run: two minutes a pair of rolls, two more for every
// 100 MiB of a member that is backed up, one for every 100,000 keys of a large cluster,
// and a while for the rest.
func (b *bench) limit() time.Duration {
	limit := time.Duration(b.rolls)*2*time.Minute + 10*time.Minute
	if b.keys > 0 {
		limit += time.Duration(b.keys/100_000)*time.Minute + 2*largeRolls*largeLimit
	}
	for _, clusters := range b.fleets {
		limit += 15*time.Minute + time.Duration(clusters*b.members/100)*time.Minute/4
	}
	for _, size := range b.sizes {
		limit += 5*time.Minute + time.Duration(size/(100<<20))*2*time.Minute
	}
	return limit
}
