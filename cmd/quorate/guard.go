package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/reconciler"
)

// newGuard is the init step of each member's pod. It is hidden: no person calls
// it.
func newGuard() *cobra.Command {
	var record, volume, member string
	cmd := &cobra.Command{
		Use: "guard", Short: "Decide in a member's pod whether etcd may start on its volume",
		Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return reconciler.Guard(record, volume, member) },
	}
	cmd.Flags().StringVar(&record, "record", "", "file with the cluster's record")
	cmd.Flags().StringVar(&volume, "volume", "", "directory of the member's volume")
	cmd.Flags().StringVar(&member, "member", "", "name of the member")
	return cmd
}
