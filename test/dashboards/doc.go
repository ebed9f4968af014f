// Package dashboards checks deploy/monitoring/dashboards against the schema that Grafana
// publishes as code. A real Grafana is not to be had as a package of a kind that this
// repository's tests install, and Grafana itself says of a panel that it does not know
// only when somebody looks at it.
//
// It is a module of its own, so that the product's go.mod does not know Grafana.
package dashboards
