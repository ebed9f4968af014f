package fleet

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/quorate/quorate/test/lab"
)

func (f Figures) atRest() string {
	return fmt.Sprintf("at rest: %.2f cores, %d MiB, %d sockets, %.0f questions a second, each member asked within %s", f.Cores, f.Memory>>20, f.Sockets, f.Questions, lab.Round(f.Unseen))
}

func (f Figures) whileSilent() string {
	return fmt.Sprintf("one in %d silent: commit to first action %s, p99 %s; %.2f cores, each other member asked within %s", silentShare, lab.Round(f.Median), lab.Round(f.P99), f.CoresSilent, lab.Round(f.UnseenSilent))
}

// Print prints figures as one table.
func Print(out io.Writer, list []Figures) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(out, "clusters by the daemon as a process, with sockets; one in %d silent and one in %d slow, Git polled every %s\n", silentShare, slowShare, interval)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "clusters × members\tcores at rest\tmemory\tsockets\tquestions/s\teach asked within\tsilent: cores\tcommit to first action\tp99\teach other asked within\tcreated by one commit\tfirst actions of all\tall ready")
	for _, f := range list {
		fmt.Fprintf(w, "%d × %d\t%.2f\t%d MiB\t%d\t%.0f\t%s\t%.2f\t%s\t%s\t%s\t%d\t%s\t%s\n", f.Clusters, f.Replicas, f.Cores, f.Memory>>20, f.Sockets, f.Questions, lab.Round(f.Unseen),
			f.CoresSilent, lab.Round(f.Median), lab.Round(f.P99), lab.Round(f.UnseenSilent), f.Created, lab.Round(f.FirstActions), lab.Round(f.AllReady))
	}
	_ = w.Flush()
}
