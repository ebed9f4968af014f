package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/schema"
)

// policyFlag names the policy of the platform, which is not in the repository that it is for.
type policyFlag struct{ path string }

func (f *policyFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.path, "policy", "", "file of the platform team that says what the files of each team may declare: namespaces, registries, stores, values, limits; docs/policy.md; default none")
}

// parser parses files and holds them to the policy. A policy that cannot be read is an error,
// so that nothing is let through for want of one.
func (f *policyFlag) parser() (*schema.Parser, error) {
	policy, err := f.read()
	if err != nil {
		return nil, err
	}
	return &schema.Parser{Policy: policy}, nil
}

// read returns nil where no policy is named.
func (f *policyFlag) read() (policy *schema.Policy, err error) {
	if f.path == "" {
		return policy, err
	}
	data, err := os.ReadFile(f.path)
	if err == nil {
		policy, err = schema.ParsePolicy(f.path, data)
	}
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	return policy, nil
}
