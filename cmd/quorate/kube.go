package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/daemon"
	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/clouds"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/scheduler"
	"github.com/quorate/quorate/schema"
)

// kubeFlags are the flags that name the Kubernetes cluster and what quorate adds to each
// file.
type kubeFlags struct {
	kubeconfig string
	bandwidth  string
	options    reconciler.Options
}

func (f *kubeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; default $KUBECONFIG, else the pod's own service account")
	f.options.Drivers = clouds.Drivers()
	flags.StringVar(&f.options.BackupURL, "backup-url", "", `template of object URLs for backups of clusters that name none, for example "s3://backups/{{ .Namespace }}/{{ .Name }}/{{ .UID }}.db?region=eu-west-1"`)
	flags.StringArrayVar(&f.options.BackupPlaces, "backup-place", nil, `one more destination that quorate's own credentials may be used for besides that of --backup-url, for example "s3://archive/{{ .Namespace }}/"; a file that names another destination must name a Secret; may be repeated`)
	flags.BoolVar(&f.options.InsecureStores, "insecure-stores", false, "allow object stores over http: backups and credentials can then be read on the network")
	flags.StringVar(&f.options.Render.Repository, "etcd-repository", manifests.DefaultRepository, "image repository for clusters that name none")
	flags.StringVar(&f.options.Render.GuardImage, "guard-image", os.Getenv("QUORATE_IMAGE"), "quorate's own image, which checks each member's volume before etcd starts; default $QUORATE_IMAGE, else the image of quorate's own pod")
	flags.StringVar(&f.options.Owner.Instance, "instance", daemon.DefaultInstance, "instance name; each cluster is owned by one instance")
	flags.IntVar(&f.options.MaxBackups, "max-backups", 2, "how many backups are taken at the same time, of all clusters; the limit applies separately to backups declared in Git, backups before rollouts and backups before repairs")
	cli.ChoiceFlag(cmd, (*string)(&f.options.BackupRunner), "backup-runner", "what takes the backups that are declared in Git: the daemon, or a Job for each", string(scheduler.InDaemon), string(scheduler.InJob))
	flags.IntVar(&f.options.MaxDrills, "max-drills", 1, "how many restore drills run at the same time, of all schedules")
	flags.StringVar(&f.bandwidth, "backup-bandwidth", "", "bytes a second that all backups together may take, for example 20Mi; each Job of --backup-runner=job gets its --max-backups-th part; default no limit")
	flags.DurationVar(&f.options.BackupStallTimeout, "backup-stall-timeout", backup.DefaultStall, "a backup fails after this time without any progress; with progress it may take up to 24 hours")
	flags.IntVar(&f.options.MaxDisrupted, "max-disrupted", 1, "how many clusters may be disrupted at the same time; repairs and rollouts in progress do not wait")
	flags.StringVar(&f.options.Render.ClusterDomain, "cluster-domain", "cluster.local", "DNS domain of the Kubernetes cluster, for the names in certificates")
}

// check rejects values that no cluster could be reconciled with.
func (f *kubeFlags) check() error {
	if problems := validation.IsDNS1123Label(f.options.Owner.Instance); len(problems) > 0 {
		return fmt.Errorf("--instance is %q: give lower-case letters, digits and dashes, at most 63", f.options.Owner.Instance)
	}
	for _, place := range f.options.BackupPlaces {
		if _, err := schema.ObjectURLPlace(place, "any"); err != nil {
			return fmt.Errorf("--backup-place: %w", err)
		}
	}
	if f.options.MaxDisrupted < 1 {
		return fmt.Errorf("--max-disrupted is %d: give at least 1", f.options.MaxDisrupted)
	}
	if f.options.MaxBackups < 1 {
		return fmt.Errorf("--max-backups is %d: give at least 1", f.options.MaxBackups)
	}
	if f.options.MaxDrills < 1 {
		return fmt.Errorf("--max-drills is %d: give at least 1, and set verify.restore to Never where there should be none", f.options.MaxDrills)
	}
	if f.options.BackupStallTimeout < minStall {
		return fmt.Errorf("--backup-stall-timeout is %s: give at least %s, for example 5m", f.options.BackupStallTimeout, minStall)
	}
	return f.readBandwidth()
}

const (
	// minBandwidth lets a backup of a common size complete within its limit of a day.
	minBandwidth = 64 << 10
	// minStall keeps a pause of a network or of a disk from being a failure.
	minStall = 10 * time.Second
)

// readBandwidth parses the limit of all backups together.
func (f *kubeFlags) readBandwidth() error {
	if f.bandwidth == "" {
		return nil
	}
	q, err := resource.ParseQuantity(f.bandwidth)
	if err != nil || q.Value() < minBandwidth {
		return fmt.Errorf("--backup-bandwidth is %q: give bytes a second, at least 64Ki, for example 20Mi", f.bandwidth)
	}
	f.options.BackupBandwidth = q.Value()
	return nil
}

// connect returns a client for the API server. It sends nothing yet.
func (f *kubeFlags) connect() (kubernetes.Interface, error) {
	kube, _, err := cli.Connect(f.kubeconfig, userAgent())
	return kube, err
}

// userAgent is what the API server logs.
func userAgent() string { return "quorate/" + buildVersion() }
