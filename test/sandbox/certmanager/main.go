// Command cert-manager is the controllers of cert-manager that issue certificates in one
// namespace, by its SelfSigned and its CA issuers. Its webhook only checks and defaults, and its
// cainjector only serves the webhook: neither is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/logs"

	// Each controller, and each kind of issuer, registers itself.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of a user that may read and write what cert-manager does")
	namespace := flag.String("namespace", "", "the namespace in which it issues")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

// run runs the controllers until the context ends.
func run(ctx context.Context, kubeconfig, namespace string) error {
	if kubeconfig == "" || namespace == "" {
		return errors.New("set --kubeconfig and --namespace")
	}
	logs.InitLogs()
	defer logs.FlushLogs()
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: kubeconfig, Namespace: namespace, KubernetesAPIQPS: 20, KubernetesAPIBurst: 50,
	})
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	var all []controller.Interface
	for name, make := range controller.Known() {
		one, err := make(factory)
		if err != nil {
			return fmt.Errorf("make the controller %s: %w", name, err)
		}
		all = append(all, one)
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return runAll(ctx, all)
}

// runAll runs controllers until the context ends, or one of them does.
func runAll(ctx context.Context, all []controller.Interface) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	errs := make([]error, len(all))
	for i, one := range all {
		group.Go(func() {
			defer cancel()
			errs[i] = one.Run(2, ctx)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
