package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/branches"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// Git are the flags that name a repository.
type Git struct {
	// Add adds them to a command.
	Add func(*cobra.Command)
	// Named reports whether one is named.
	Named func() bool
	// Open opens it, to read branches.
	Open func(branch string) (*sources.Repository, error)
}

// branchFlags are the flags about status branches.
type branchFlags struct {
	git    Git
	all    bool
	prefix string
}

func (f *branchFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "show the clusters of all Kubernetes clusters that write their status to --repo")
	flags.StringVar(&f.prefix, "status-branch", sources.DefaultStatusBranch, "with --all: what the names of the status branches begin with")
	f.git.Add(cmd)
}

// check rejects flags that contradict each other.
func (f *branchFlags) check(show *showFlags) error {
	d := show.daemon
	switch {
	case !f.all && f.git.Named():
		return errors.New("--repo is for --all, which reads the status branches there: add it, or leave --repo out to ask the daemon")
	case f.all && !f.git.Named():
		return errors.New("--all needs --repo, the repository to which the daemons write their status branches")
	case f.all && show.watch:
		return errors.New("--watch is for one daemon, and --all reads branches, which change once in a minute: leave one of them out")
	case f.all && (d.server != "" || d.tokenFile != "" || d.caFile != "" || d.kubeconfig != ""):
		return errors.New("--all asks no daemon: leave --server, --token-file, --ca-file and --kubeconfig out")
	case f.all && strings.TrimSpace(f.prefix) == "":
		return errors.New("--status-branch is empty: give what the names of the status branches begin with, such as " + sources.DefaultStatusBranch)
	}
	return nil
}

func (f *branchFlags) source() (source, error) {
	r, err := f.git.Open(f.prefix)
	if err != nil {
		return nil, err
	}
	return statusBranches{&branches.Reader{Repository: r, Prefix: f.prefix}}, nil
}

// statusBranches are those of one repository, one of each daemon.
type statusBranches struct{ *branches.Reader }

// ask reads all of them. A branch or a file that cannot be read hides no other, and is told.
func (s statusBranches) ask(ctx context.Context, q query) (answer, error) {
	if err := s.Read(ctx); err != nil {
		return answer{}, err
	}
	a := answer{whole: true}
	var bad, doubts []string
	now := time.Now()
	for _, branch := range s.Branches(now, now) {
		for _, one := range branch.Statuses {
			if q.matches(one) {
				a.items = append(a.items, item{Branch: branch.Name, Written: schema.TimeText(branch.Written), Status: one})
			}
		}
		for _, file := range branch.Unread {
			bad = append(bad, branch.Name+"/"+file)
		}
		if branch.Doubt != "" {
			doubts = append(doubts, fmt.Sprintf("what branch %s holds may be old: %s", cli.Shown(branch.Name), cli.Shown(branch.Doubt)))
		}
	}
	sortItems(a.items)
	if len(bad) > 0 {
		doubts = append(doubts, fmt.Sprintf("%s of the status branches cannot be read, first %s", state.Plural(len(bad), "file"), cli.Shown(bad[0])))
	}
	a.whole, a.note = len(doubts) == 0, strings.Join(doubts, "\nquorate: ")
	return a, nil
}

// follow implements source: branches tell of nothing.
func (statusBranches) follow(context.Context, query, func()) error {
	return errors.New("branches tell of no change")
}
