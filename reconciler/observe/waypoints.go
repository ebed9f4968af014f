package observe

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/quorate/quorate/reconciler/clock"
	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/issuers"
	"github.com/quorate/quorate/reconciler/plan/situation"
	"github.com/quorate/quorate/reconciler/plan/transport"
	"github.com/quorate/quorate/reconciler/plan/trust"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// snapshotCountFlag sets after how many entries a member saves its state beside
// its log; everyEntry is what has it do so at once.
const (
	snapshotCountFlag = "snapshot-count"
	everyEntry        = "1"
)

// aim finds out at which stop the cluster is, and
// renders the state at that stop. Most changes have one stop.
func (o *Observer) aim(v *View) error {
	v.waypoints = nil
	// A wait that a wrong clock has begun is as long here as it is for the planner.
	settled, _ := clock.Settle(v.Observed, o.Now())
	v.Trust = trust.Of(v.modes.Git, settled, o.Now())
	v.Transport = transport.Of(v.asked(), settled, o.Now())
	v.mounts = cmp.Or(v.Trust.Trust, settled.Certificates.Trust.Target(o.Now()))
	if v.Issuers = issuers.Of(v.modes.Git, settled, o.Now()); v.Issuers.Changing {
		v.mounts = v.Issuers.Trust
	}
	if len(v.Cluster.Problems) == 0 {
		v.waypoints = situation.Waypoints(v.Cluster.Spec, v.Observed)
	}
	if err := o.render(v); err != nil {
		return err
	}
	if len(v.waypoints) > 1 {
		for i := range v.waypoints {
			_, hash, err := manifests.RenderTemplate(v.clusterAt(v.waypoints[i]), v.optionsAt(v.waypoints[i], o.withTrust(v)))
			if err != nil {
				return fmt.Errorf("render %s at %s: %w", v.Cluster.Key(), v.waypoints[i].Version, err)
			}
			v.waypoints[i].Template = hash
		}
	}
	v.Desired = o.describeDesired(v)
	return nil
}

// asked is as much of what Git says as decides over what members are reached.
func (v *View) asked() state.Desired {
	d := state.Desired{Namespace: v.Cluster.Metadata.Namespace, Name: v.Cluster.Metadata.Name, Spec: v.Cluster.Spec}
	d.Spec.TLS = v.modes.Git
	return d
}

// due is the stop that is due: what Git says where there is only that.
func (v *View) due() state.Waypoint {
	if len(v.waypoints) == 0 {
		return state.Waypoint{Version: v.Cluster.Spec.Version}
	}
	return v.waypoints[0]
}

// clusterAt is the cluster's file at a stop.
func (v *View) clusterAt(stop state.Waypoint) schema.EtcdCluster {
	c := v.Cluster.EtcdCluster
	if c.Spec.TLS.Mode = v.Transport.Template.Own; c.Spec.TLS.Mode == "" {
		c.Spec.TLS.Mode = v.modes.Git.Mode
	}
	if stop.Version != c.Spec.Version {
		// The file's digest is that of its own version's image.
		c.Spec.Image.Digest = digestAt(v.Set, stop.Version)
		c.Spec.Version = stop.Version
	}
	if stop.Flush {
		options := maps.Clone(c.Spec.Etcd.Options)
		if options == nil {
			options = map[string]string{}
		}
		options[snapshotCountFlag] = everyEntry
		c.Spec.Etcd.Options = options
	}
	return c
}

// optionsAt are the options to render a stop with. What the file asks of its own
// release, another one in between may not know: there it is left out.
func (v *View) optionsAt(stop state.Waypoint, o manifests.Options) manifests.Options {
	o.Passing = stop.Version != v.Cluster.Spec.Version
	o.ClaimPrefix = v.Record.Claims()
	return o
}

// digestAt is the digest that the live StatefulSet's image of a version is pinned
// to, or "".
func digestAt(set *appsv1.StatefulSet, version string) string {
	if set == nil || set.Spec.Template.Annotations[naming.AnnotationVersion] != version {
		return ""
	}
	for _, c := range set.Spec.Template.Spec.Containers {
		if _, digest, _ := strings.Cut(c.Image, "@"); c.Name == naming.ContainerEtcd {
			return digest
		}
	}
	return ""
}
