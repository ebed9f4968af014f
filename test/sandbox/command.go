package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "sandbox",
		Short:         "A real Kubernetes on this Linux machine, and faults on request",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		simpleCommand("preflight", "Say whether this machine can run the sandbox", (*sandbox).preflight),
		newBuildCommand(),
		newCompileCommand(),
		newUpCommand(),
		simpleCommand("down", "Remove every trace of the sandbox but the build cache", locked((*sandbox).down)),
		newStatusCommand(),
		newExecPathCommand(),
		newImageCommand(),
		newFillCommand(),
		targetCommand("drain", "NAMESPACE/CLAIM", "Remove what fill has put on a volume", (*sandbox).drain),
		group("node", "Switch a node off and on",
			targetCommand("stop", "NODE", "End everything on a node at once, as a power cut does", locked1((*sandbox).stopNode)),
			targetCommand("start", "NODE", "Switch a node on again", locked1((*sandbox).startNode))),
		group("cut", "Cut the network, both ways",
			targetCommand("node", "NODE", "Cut a node off from everything else", (*sandbox).cutNode),
			targetCommand("pod", "NAMESPACE/NAME", "Cut a pod off from everything else", (*sandbox).cutPod)),
		group("heal", "Undo a cut",
			targetCommand("node", "NODE", "Connect a node again", (*sandbox).healNode),
			targetCommand("pod", "NAMESPACE/NAME", "Connect a pod again", (*sandbox).healPod)),
	)
	return root
}

func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short}
	command.AddCommand(commands...)
	return command
}

// simpleCommand is a command without arguments.
func simpleCommand(use, short string, run func(*sandbox, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := newSandbox(c.OutOrStdout(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			return run(s, c.Context())
		},
	}
}

// targetCommand is a command on a sandbox that is up, with one argument: the
// thing it is done to.
func targetCommand(use, target, short string, run func(*sandbox, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " " + target, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := newSandbox(c.OutOrStdout(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := s.mustExist(); err != nil {
				return err
			}
			return run(s, c.Context(), args[0])
		},
	}
}

// locked makes two of the commands that start and end processes wait for each
// other.
func locked(run func(*sandbox, context.Context) error) func(*sandbox, context.Context) error {
	return func(s *sandbox, ctx context.Context) error {
		unlock, err := s.lock()
		if err != nil {
			return err
		}
		defer unlock()
		return run(s, ctx)
	}
}

func locked1(run func(*sandbox, context.Context, string) error) func(*sandbox, context.Context, string) error {
	return func(s *sandbox, ctx context.Context, target string) error {
		return locked(func(s *sandbox, ctx context.Context) error { return run(s, ctx, target) })(s, ctx)
	}
}

func newBuildCommand() *cobra.Command {
	return &cobra.Command{
		Use: "build [NAME...]", Short: "Build binaries, and start nothing",
		Long: "Build binaries, and start nothing: those that are named, as exec-path names them, or all but gitea and cert-manager.\n" +
			"azurite is installed by npm.",
		RunE: func(c *cobra.Command, names []string) error {
			s, err := newSandbox(c.OutOrStdout(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			wanted, err := s.named(names)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				wanted = s.allButApart()
			}
			return s.build(c.Context(), wanted)
		},
	}
}

// newCompileCommand is for programs of the checkout that take minutes to compile, of
// which go build says nothing.
func newCompileCommand() *cobra.Command {
	var output string
	var beside []string
	command := &cobra.Command{
		Use: "compile PACKAGE...", Short: "Run go build, and tell how long it takes", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, packages []string) error {
			s, err := newSandbox(c.OutOrStdout(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			one := &compilation{name: packages[0], flags: []string{"-ldflags=-s -w", "-o", output}, packages: packages, expected: 1400}
			chains, err := s.chainsBeside(link{one, one.run}, beside)
			if err != nil {
				return err
			}
			return s.progress.build(c.Context(), chains)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", ".", "file, or directory with a slash at its end")
	command.Flags().StringSliceVar(&beside, "beside-up", nil, "build what `up NAME...` builds as well, beside it")
	return command
}

func newUpCommand() *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use: "up [NAME...]", Short: "Bring the sandbox up; what runs already is left running",
		Long: "Bring the sandbox up, and build further binaries first, as exec-path names them, such as etcd-v3.5.35 or versitygw.\n" +
			"The nodes get the images of all releases of etcd that are built.",
		RunE: func(c *cobra.Command, names []string) error {
			s, err := newSandbox(c.OutOrStdout(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			more, err := s.named(names)
			if err != nil {
				return err
			}
			if all {
				more = append(more, s.allButApart()...)
			}
			return locked(func(s *sandbox, ctx context.Context) error { return s.up(ctx, more...) })(s, c.Context())
		},
	}
	command.Flags().BoolVar(&all, "all", false, "build all but gitea and cert-manager")
	return command
}

func newStatusCommand() *cobra.Command {
	var output string
	command := simpleCommand("status", "Show what runs", func(s *sandbox, ctx context.Context) error {
		return s.status(ctx, output)
	})
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return command
}

func newExecPathCommand() *cobra.Command {
	var build bool
	command := &cobra.Command{
		Use: "exec-path NAME", Short: "Print the path of a built binary", Args: cobra.ExactArgs(1),
		Long: "Print the path of a built binary: " + strings.Join((&sandbox{}).execNames(), ", ") + ".",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := newSandbox(c.OutOrStdout(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			if build {
				wanted, err := s.named(args)
				if err != nil {
					return err
				}
				if err := s.build(c.Context(), wanted); err != nil {
					return err
				}
			}
			path, err := s.execPath(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(s.out, path)
			return err
		},
	}
	command.Flags().BoolVar(&build, "build", false, "build it first when it is not in the cache; needs no root")
	return command
}

func newFillCommand() *cobra.Command {
	var leave int64
	command := targetCommand("fill", "NAMESPACE/CLAIM", "Fill a claim's volume until nothing fits any more", func(s *sandbox, ctx context.Context, claim string) error {
		return s.fill(ctx, claim, leave)
	})
	command.Flags().Int64Var(&leave, "leave", 0, "bytes to leave free")
	return command
}

func newImageCommand() *cobra.Command {
	var image image
	load := targetCommand("load", "NAME=BINARY[,BINARY...]", "Make an image of static binaries and give it to every node", func(s *sandbox, ctx context.Context, spec string) error {
		name, binaries, found := strings.Cut(spec, "=")
		if !found || name == "" || binaries == "" {
			return fmt.Errorf("image load %s: want NAME=BINARY, as in ghcr.io/quorate/quorate:dev=bin/quorate", spec)
		}
		image.name, image.binaries = name, strings.Split(binaries, ",")
		return s.loadImage(ctx, image)
	})
	load.Long = "Make an image of static binaries, each at /usr/local/bin, and give it to every node."
	load.Flags().StringVar(&image.entrypoint, "entrypoint", "", "path in the image of what runs when a pod gives no command")
	load.Flags().StringVar(&image.user, "user", "", "user, and group after a colon, that it runs as")
	return group("image", "Give images to the nodes", load)
}
