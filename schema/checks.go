package schema

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// UpgradeCheck is a question that quorate asks about a cluster that has become what its file
// says. While the answer is not the one that is wanted, or there is none, clusters of higher
// waves wait. It has one of http, prometheus and cronJob.
type UpgradeCheck struct {
	// Name of the check, such as smoke: the clusters that wait tell it.
	Name string `json:"name" jsonschema:"form=label"`
	// HTTP holds when a URL answers.
	HTTP *HTTPCheck `json:"http,omitempty"`
	// Prometheus holds when a query is true.
	Prometheus *PrometheusCheck `json:"prometheus,omitempty"`
	// CronJob holds when its newest run has succeeded.
	CronJob *CronJobCheck `json:"cronJob,omitempty"`
	// Timeout is how long one answer may take, 1s to 30s. Default 5s.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// For is how long every answer must have been the one that is wanted, 0s to 1h. Default
	// 0s: one answer is enough. A restart of quorate begins it anew.
	For *metav1.Duration `json:"for,omitempty"`
}

// HTTPCheck is a GET request, without credentials and without a proxy. Redirects are not
// followed: one is an answer like any other.
type HTTPCheck struct {
	// URL to get, such as https://orders.example.com/healthz. Its host and port must be among
	// quorate's --check-hosts. Clusters that wait tell it without what follows a question mark.
	URL string `json:"url" jsonschema:"form=checkURL"`
	// Status of the answer that is wanted, 200 to 599. Default 200.
	Status int32 `json:"status,omitempty" jsonschema:"minimum=200,maximum=599"`
}

// PrometheusCheck is an instant query of PromQL. It holds when the result is 1: a scalar, or
// one or more series of which each is 1. An empty result does not hold, and neither does
// any other number: compare with bool, as in sum(rate(errors_total[5m])) < bool 0.1.
type PrometheusCheck struct {
	// URL of a Prometheus, or of what answers as one, to which /api/v1/query is added. Its
	// host and port must be among quorate's --check-hosts.
	URL string `json:"url" jsonschema:"form=prometheusURL"`
	// Query in PromQL, at most 4096 characters.
	Query string `json:"query" jsonschema:"maxLength=4096"`
}

// CronJobCheck holds when the newest run of a CronJob that has ended has succeeded. A run counts
// if it began after the last change of the clusters of all lower waves. quorate starts none: the
// schedule does, or kubectl create job --from=cronjob/NAME.
type CronJobCheck struct {
	// Name of the CronJob, in the namespace of the cluster, at most 52 characters.
	Name string `json:"name" jsonschema:"form=subdomain,maxLength=52"`
}

// Limits of checks.
const (
	maxChecks       = 8
	maxCheckURL     = 2048
	maxQuery        = 4096
	maxCronJob      = 52 // of Kubernetes
	minCheckTimeout = time.Second
	maxCheckTimeout = 30 * time.Second
	// maxCheckFor is no longer than a wait of other clusters is before a person should look.
	maxCheckFor = time.Hour
)

// The defaults of checks.
const (
	DefaultCheckTimeout = 5 * time.Second
	DefaultCheckStatus  = 200
)

// Target is the URL that the check asks, "" where it asks the API server.
func (c UpgradeCheck) Target() string {
	switch {
	case c.HTTP != nil:
		return c.HTTP.URL
	case c.Prometheus != nil:
		return c.Prometheus.URL
	}
	return ""
}

// targetField is the field that has it.
func (c UpgradeCheck) targetField() string {
	if c.Prometheus != nil {
		return "prometheus.url"
	}
	return "http.url"
}

// kinds is how many things the check asks.
func (c UpgradeCheck) kinds() (n int) {
	for _, asks := range []bool{c.HTTP != nil, c.Prometheus != nil, c.CronJob != nil} {
		if asks {
			n++
		}
	}
	return n
}

// Stable is how long the check must hold.
func (c UpgradeCheck) Stable() time.Duration { return orDefault(c.For, 0) }

// Patience is how long one answer may take.
func (c UpgradeCheck) Patience() time.Duration { return orDefault(c.Timeout, DefaultCheckTimeout) }

func orDefault(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

// checks checks what is asked before a higher wave begins.
func (v *validator) checks(checks []UpgradeCheck) {
	const list = "upgrade.checks"
	if n := len(checks); n > maxChecks {
		v.fail(list, "has %d checks and at most %d are allowed", n, maxChecks)
	}
	for i, c := range checks {
		field := fmt.Sprintf("%s[%d]", list, i)
		v.name(field+".name", c.Name, 63)
		if slices.ContainsFunc(checks[:i], func(o UpgradeCheck) bool { return o.Name == c.Name }) {
			v.fail(field+".name", "%s is listed twice: keep one of them, or give it another name", clip(c.Name))
		}
		if c.kinds() != 1 {
			v.fail(field, "must have one of http, prometheus and cronJob")
			continue
		}
		if problem := checkURLProblem(c); c.CronJob == nil && problem != "" {
			v.fail(field+"."+c.targetField(), "%s", problem)
		}
		if c.HTTP != nil && c.HTTP.Status != 0 && (c.HTTP.Status < 200 || c.HTTP.Status > 599) {
			v.fail(field+".http.status", "is %d and must be 200 to 599", c.HTTP.Status)
		}
		if c.Prometheus != nil && (strings.TrimSpace(c.Prometheus.Query) == "" || len(c.Prometheus.Query) > maxQuery) {
			v.fail(field+".prometheus.query", "must have 1 to %d characters of PromQL, such as min(up{job=\"orders\"})", maxQuery)
		}
		if c.CronJob != nil && (len(c.CronJob.Name) > maxCronJob || len(validation.IsDNS1123Subdomain(c.CronJob.Name)) > 0) {
			v.fail(field+".cronJob.name", "%s is not the name of a CronJob: write lower-case letters, digits, dashes and dots, at most %d", clip(c.CronJob.Name), maxCronJob)
		}
		if c.Timeout != nil && (c.Timeout.Duration < minCheckTimeout || c.Timeout.Duration > maxCheckTimeout) {
			v.fail(field+".timeout", "is %s and must be 1s to 30s", c.Timeout.Duration)
		}
		if c.For != nil && (c.For.Duration < 0 || c.For.Duration > maxCheckFor) {
			v.fail(field+".for", "is %s and must be 0s to 1h", c.For.Duration)
		}
	}
}

// checkURLProblem is what is wrong with the URL of a check, or "". The URL is not repeated: it
// may hold a password.
func checkURLProblem(c UpgradeCheck) string {
	u, err := url.Parse(c.Target())
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", len(c.Target()) > maxCheckURL,
		strings.ContainsFunc(c.Target(), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return fmt.Sprintf("is not a URL that can be asked: write http:// or https://, a host and a path, at most %d characters", maxCheckURL)
	case u.User != nil:
		return "has a user or a password, and everyone who reads the file could see it: quorate asks without credentials, leave it out"
	case u.Fragment != "" || strings.HasSuffix(c.Target(), "#"):
		return "has a part behind #, which no server sees: leave it out"
	case c.Prometheus != nil && (u.RawQuery != "" || u.ForceQuery):
		return "has a part behind ?: write the URL of the Prometheus alone, and the query in query"
	}
	if _, err := CheckHost(u.Scheme, u.Host); err != nil {
		return err.Error()
	}
	return ""
}

// CheckHost is the host and port of a check in the form in which they are compared, such as
// "orders.example.com:443" or "[2001:db8::1]:9090". The scheme gives the port where there is none.
func CheckHost(scheme, host string) (string, error) {
	u, err := url.Parse("//" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || strings.HasSuffix(host, ":") {
		return "", fmt.Errorf("%s is not a host with a port, such as orders.example.com:443", clip(host))
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[scheme])
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("%s has no port between 1 and 65535", clip(host))
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if address, err := netip.ParseAddr(name); err == nil && address.Zone() == "" {
		return net.JoinHostPort(address.Unmap().String(), port), nil
	}
	if !isHostname(name) {
		return "", fmt.Errorf("%s is not a name or an address of a host", clip(host))
	}
	return net.JoinHostPort(name, port), nil
}

// isHostname reports whether a text is a name that DNS has, as far as its characters tell. One
// that ends with a number is none: what looks like an address would be read in several ways.
func isHostname(name string) bool {
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	return len(name) <= 253 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-._") == "" && !slices.Contains(labels, "") && (last[0] < '0' || last[0] > '9')
}

// confineChecks notes checks that ask other hosts than those that quorate may ask.
func (g *gathering) confineChecks(hosts []string) {
	for i := range g.declared {
		d := &g.declared[i]
		var checks []UpgradeCheck
		before := "spec."
		switch o := d.object.(type) {
		case *EtcdCluster:
			checks = o.Spec.Upgrade.Checks
		case *EtcdRestore:
			checks, before = o.Spec.ClusterTemplate.Upgrade.Checks, "spec.clusterTemplate."
		}
		for j, c := range checks {
			u, err := url.Parse(c.Target())
			if err != nil || c.CronJob != nil {
				continue // validated before, or it asks no host
			}
			host, err := CheckHost(u.Scheme, u.Host)
			if err == nil && slices.Contains(hosts, host) {
				continue
			}
			g.note(d, d.origin.Problem(IDCheckHost, fmt.Sprintf("%supgrade.checks[%d].%s", before, j, c.targetField()),
				"quorate may not ask %s: --check-hosts names %s; ask the platform team to add it there, or take the check out", cmp.Or(host, "this host"), listed(hosts)))
		}
	}
}
