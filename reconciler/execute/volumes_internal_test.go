package execute

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quorate/quorate/schema"
)

// SetSize asks for a size.
func SetSize(size string) func(*schema.EtcdCluster) {
	return func(c *schema.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse(size) }
}
