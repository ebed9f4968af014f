package report

import (
	"github.com/quorate/quorate/schema"
)

// PlacedLabels adds a label to every object.
func PlacedLabels(c *schema.EtcdCluster) { c.Metadata.Labels = map[string]string{"team": "checkout"} }
