package observe

import (
	"sync"

	"github.com/quorate/quorate/reconciler/manifests"
	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/plan/surge"
	"github.com/quorate/quorate/reconciler/state"
)

// render renders the cluster with the guard's image and the startup probe that the live
// StatefulSet has: a newer quorate restarts nothing. Only when the pods change anyway, they
// get what it renders now, too.
func (o *Observer) render(v *View) error {
	if len(v.Cluster.Problems) > 0 {
		return nil
	}
	with := o.withTrust(v)
	with.Partition = v.Cluster.Spec.Replicas
	if v.Set != nil {
		with.Partition, with.Claims = Partition(v.Set), ClaimTemplateOf(v.Set)
		if image := GuardImage(v.Set); image != "" {
			with.GuardImage = image
		}
		with.StartupProbe = manifests.HasStartupProbe(v.Set.Spec.Template)
	}
	with.ClaimPrefix = v.Record.Claims()
	if v.Record != nil {
		with.Replicas = new(podCount(*v.Record, v.Cluster.EtcdCluster, v.Set))
		with.Disruptions = new(o.disruptions(v))
		with.Serves = surge.Serves(v.Cluster.Spec, v.Observed.Record)
		with.Evictable = surge.Evictable(v.Cluster.Metadata.Name, v.Cluster.Spec, v.Observed)
	}
	if err := o.renderWith(v, with); err != nil {
		return err
	}
	if v.Set != nil && v.TemplateHash != v.Set.Spec.Template.Annotations[naming.AnnotationTemplateHash] {
		with.GuardImage, with.StartupProbe = o.Options.Render.GuardImage, false
		return o.renderWith(v, with)
	}
	return nil
}

// rendering is of what was rendered last for a cluster, of type wanted, and the template's hash. The objects
// are not kept: each cluster has them in its caches, and drift.Cache has what they were compared to.
type rendering struct {
	wanted       any
	templateHash string
}

// wanted is all that a rendering depends on besides the daemon's options.
type wanted struct {
	transport                                               state.Transport
	digest, guardImage, version, claimPrefix, trust, serves string
	evictable                                               string
	// claimSize and claimClass are those of the live StatefulSet's claims; no class is
	// another one than the empty class.
	claimSize, claimClass string
	hasClass, flush       bool
	// mixed: members trust both issuers.
	mixed, startupProbe bool
	partition, pods     int32
	// disruptions is -1 where the record says nothing about them.
	disruptions int32
}

func wantedOf(v *View, with manifests.Options) wanted {
	due := v.due()
	w := wanted{
		transport: v.Transport.Template,
		digest:    v.Cluster.Digest, guardImage: with.GuardImage, version: due.Version, claimPrefix: with.ClaimPrefix, trust: with.Trust, serves: with.Serves, evictable: with.Evictable, mixed: with.Mixed, startupProbe: with.StartupProbe, flush: due.Flush,
		partition: with.Partition, pods: with.PodCount(v.Cluster.EtcdCluster), disruptions: -1,
	}
	if with.Disruptions != nil {
		w.disruptions = *with.Disruptions
	}
	if c := with.Claims; c != nil {
		w.claimSize, w.hasClass = c.Size.String(), c.StorageClassName != nil
		if w.hasClass {
			w.claimClass = *c.StorageClassName
		}
	}
	return w
}

// renderWith renders, unless the same was rendered last: then the objects are made when they are asked for.
func (o *Observer) renderWith(v *View, with manifests.Options) error {
	stop := v.due()
	v.render = sync.OnceValues(func() (manifests.Manifests, error) {
		return manifests.Render(v.clusterAt(stop), v.optionsAt(stop, with))
	})
	key, wanted := v.Cluster.Key(), any(wantedOf(v, with))
	if kept := o.rendered.Get(key); kept.wanted == wanted {
		v.wanted, v.TemplateHash = kept.wanted, kept.templateHash
		return nil
	}
	m, err := v.render()
	if err != nil {
		return err
	}
	v.wanted, v.TemplateHash = wanted, m.TemplateHash
	o.rendered.Put(key, rendering{wanted, m.TemplateHash})
	return nil
}
