// Command kubernetes is every Kubernetes program that the sandbox runs, in one
// binary: the name it is called by says which one it is. One link step instead
// of five saves minutes on a small machine.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	// JSON logs and client and version metrics register themselves.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() {
	command, err := commandNamed(filepath.Base(os.Args[0]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2) //nolint:forbidigo // main is the one place that exits
	}
	os.Exit(cli.Run(command)) //nolint:forbidigo // main is the one place that exits
}

// commandNamed returns the program that a binary of this name is.
func commandNamed(name string) (*cobra.Command, error) {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand(), nil
	case "kube-controller-manager":
		return controllermanager.NewControllerManagerCommand(), nil
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand(), nil
	case "kube-proxy":
		return proxy.NewProxyCommand(), nil
	case "kubelet":
		return kubeletCommand(kubelet.NewKubeletCommand), nil
	default:
		return nil, fmt.Errorf("called as %q; make a link to this binary named after the Kubernetes program to run", name)
	}
}

// kubeletCommand calls the kubelet's constructor, which takes no context in Kubernetes 1.30:
// this file is of all releases.
func kubeletCommand(constructor any) *cobra.Command {
	if old, ok := constructor.(func() *cobra.Command); ok {
		return old()
	}
	return constructor.(func(context.Context) *cobra.Command)(context.Background())
}
