package state

// Waypoint is one roll until what Git says. Most changes have one stop: what Git
// says.
type Waypoint struct {
	// Version of etcd that every member runs at the stop.
	Version string
	// Flush has every member save its state beside its log at once, so that what
	// an old release wrote into the log is never read again.
	Flush bool
	// Template is the hash of the pod template at the stop. Stops leaves it
	// empty: only rendering tells.
	Template string
}

// TemplateOf is the template at a stop, or "" where it was not rendered.
func (d Desired) TemplateOf(stop Waypoint) string {
	for _, known := range d.Waypoints {
		if known.Version == stop.Version && known.Flush == stop.Flush {
			return known.Template
		}
	}
	if stop.Version == d.Spec.Version && !stop.Flush {
		return d.Template
	}
	return ""
}
