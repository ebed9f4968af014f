package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quorate/quorate/schema"
)

// boundsFlags say what files may declare beside what the format allows. Neither is in the
// repository that it is for.
type boundsFlags struct {
	policy     string
	namespaces []string
	checkHosts []string
}

func (f *boundsFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.policy, "policy", "", "file of the platform team that says what the files of each team may declare: namespaces, registries, stores, values, limits; docs/policy.md; default none")
	cmd.Flags().StringSliceVar(&f.namespaces, "namespaces", nil, "the only namespaces that quorate works in, for example team-a,team-b: it then needs no right beyond them, and what a file declares elsewhere is an error; default all")
	cmd.Flags().StringSliceVar(&f.checkHosts, "check-hosts", nil, "the only hosts, each with its port, that checks of spec.upgrade.checks may ask, for example shop.example.com:443,prometheus.monitoring.svc:9090 (docs/scale.md): a check of another host is an error; default none for run, which asks, and any for validate and plan")
}

// parser parses files and holds them to the bounds.
func (f *boundsFlags) parser() (*schema.Parser, error) {
	bounds, err := f.read()
	if err != nil {
		return nil, err
	}
	return &schema.Parser{Bounds: bounds}, nil
}

// read returns the bounds. A policy that cannot be read is an error, so that nothing is let
// through for want of one.
func (f *boundsFlags) read() (bounds schema.Bounds, err error) {
	for _, namespace := range f.namespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return bounds, fmt.Errorf("--namespaces names %q, which is no namespace: give names with commas between them, for example team-a,team-b", namespace)
		}
	}
	for _, host := range f.checkHosts {
		canonical, err := schema.CheckHost("", host)
		if err != nil {
			return bounds, fmt.Errorf("--check-hosts: %w", err)
		}
		bounds.CheckHosts = append(bounds.CheckHosts, canonical)
	}
	bounds.Namespaces = slices.Compact(slices.Sorted(slices.Values(f.namespaces)))
	if f.policy == "" {
		return bounds, nil
	}
	data, err := os.ReadFile(f.policy)
	if err == nil {
		bounds.Policy, err = schema.ParsePolicy(f.policy, data)
	}
	if err != nil {
		return bounds, fmt.Errorf("--policy: %w", err)
	}
	return bounds, nil
}
