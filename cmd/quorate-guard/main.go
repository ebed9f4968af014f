// Command quorate-guard runs in each member's pod before etcd, and ends with 0
// only if etcd may start on the pod's volume. It is a separate program, a
// fraction of quorate's size, since every member waits for it at every start.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/quorate/quorate/reconciler/guard"
)

func main() {
	record := flag.String("record", "", "file with the cluster's record")
	volume := flag.String("volume", "", "directory of the member's volume")
	member := flag.String("member", "", "name of the member")
	flag.Parse()
	if err := guard.Check(*record, *volume, *member); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(guard.ExitCode(err))
	}
}
