// Command provisioner gives the sandbox's claims real volumes: each one is an
// XFS filesystem in a file, mounted through a loop device, so that it has an
// end (ENOSPC) and can grow while it is in use.
//
// XFS rather than ext4, because growing a mounted ext4 needs CAP_SYS_RESOURCE,
// which root lacks in many containers and small virtual machines.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`path` of the kubeconfig")
	dir := flag.String("dir", "", "`directory` that the volumes are kept in")
	name := flag.String("name", "sandbox.quorate.dev/disk", "provisioner `name` that storage classes use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *kubeconfig, *dir, *name); err != nil {
		fmt.Fprintln(os.Stderr, "provisioner:", err)
		os.Exit(1) //nolint:forbidigo // main is the one place that exits
	}
}

// run mounts the volumes that are there already, then provisions, grows and
// deletes volumes until ctx ends.
func run(ctx context.Context, kubeconfig, dir, name string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	disks := disks{dir: dir}
	if err := disks.mountAll(ctx); err != nil {
		return err
	}
	go grower{client: client, disks: disks, provisioner: name}.run(ctx)
	controller.NewProvisionController(ctx, client, name, provisioner{disks: disks},
		controller.LeaderElection(false),
		controller.ResyncPeriod(0),
	).Run(ctx)
	return nil
}
