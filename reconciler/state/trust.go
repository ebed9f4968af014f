package state

import (
	"slices"
	"time"
)

// Trust is what members trust of certificates that another program issues. A bundle is named by its
// content, as the Secret that keeps it. The zero value is a cluster whose certificates are not such.
type Trust struct {
	// Wanted is the bundle that the issuer's Secrets have now, "" where they say none.
	Wanted string
	// ChangedAt is when one of these Secrets was changed last.
	ChangedAt time.Time
	// Kept are the bundles that are kept, the oldest first.
	Kept []string
	// Mounted is the one that the StatefulSet's template mounts, "" while members read what they
	// trust from the issuer's Secrets when they start.
	Mounted string
	// Running are those that members trust which run, or which the template starts, each once.
	Running []string
	// Gone are bundles that pods, or the template, mount and that are not kept.
	Gone []string
	// Refused are phrases about certificates that one of these does not trust.
	Refused []string
}

// TrustSettles is how long the content of a Secret may take into the pods that mount it: kubelets
// look once a minute, and what they look at may be a minute old.
const TrustSettles = 3 * time.Minute

// SettlesAt is when the issuer's Secrets have reached every pod.
func (t Trust) SettlesAt() time.Time { return t.ChangedAt.Add(TrustSettles) }

// Changed reports whether a member that runs trusts another bundle than the one that is wanted.
func (t Trust) Changed() bool {
	return t.Wanted != "" && slices.ContainsFunc(t.Running, func(name string) bool { return name != t.Wanted })
}

// Target is the bundle that the template is to mount: what it mounts, until another one is wanted,
// is kept, and has reached every pod, certificates included. A cluster whose bundle has never
// changed mounts none.
func (t Trust) Target(now time.Time) string {
	switch {
	case t.Wanted == "" || t.Mounted == t.Wanted || len(t.Refused) > 0 || now.Before(t.SettlesAt()) || !slices.Contains(t.Kept, t.Wanted):
		return t.Mounted
	case t.Mounted == "" && !t.Changed():
		return ""
	}
	return t.Wanted
}

// Spare are the bundles that are kept and that no member trusts which runs, nor shall.
func (t Trust) Spare() []string {
	return slices.DeleteFunc(slices.Clone(t.Kept), func(name string) bool {
		return name == t.Wanted || name == t.Mounted || slices.Contains(t.Running, name)
	})
}
