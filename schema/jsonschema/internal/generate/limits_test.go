package generate

import (
	"strings"
	"testing"
)

// A slip in a tag does not silently drop a limit.
func TestReadLimitsRefusesWhatItDoesNotKnow(t *testing.T) {
	for tag, want := range map[string]string{
		"minimun=1":     "the tag's key \"minimun\" is not known",
		"minimum=one":   "the tag's minimum",
		"form=verision": "the tag's form \"verision\" is not in forms.go",
	} {
		if _, err := readLimits(tag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", tag, err, want)
		}
	}
}

// The doc of a type joins that of a field where it says more.
func TestJoin(t *testing.T) {
	for _, c := range []struct{ name, field, more, want string }{
		{"a title only", "Storage is the volume.", "Storage is the volume claim of each member.", "Storage is the volume."},
		{"the same and more", "Source is the cluster. Default: none.", "Source is the cluster: one of two.", "Source is the cluster: one of two. Default: none."},
		{"the same, then more", "TLS is on. Always.", "TLS is on. It needs Secrets.", "TLS is on. Always. It needs Secrets."},
		{"something else", "Names of Secrets.", "They have keys: tls.crt.", "Names of Secrets. They have keys: tls.crt."},
	} {
		if got := join(c.field, c.more); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A default is found where it is filled in, and where only the doc tells of it.
func TestDefaultOf(t *testing.T) {
	auto := Value{Shape: Text, Choices: []Choice{{Value: "Auto"}, {Value: "Never"}}}
	for _, c := range []struct {
		field Field
		want  string
	}{
		{Field{Required: true, Doc: "Version."}, "required"},
		{Field{Default: "Keep", Doc: "Volumes is Keep (default) or Delete."}, "`Keep`"},
		{Field{Value: auto, Doc: "Mode is Auto (default) or Never."}, "`Auto`"},
		{Field{Doc: "After is how long. Default 5m."}, "5m"},
		{Field{Doc: "QuotaBackendBytes. Default 2Gi, at most 8Gi advised."}, "2Gi"},
		{Field{Doc: "Repository. Default: the daemon's --etcd-repository. The tag is v."}, "the daemon's --etcd-repository"},
		{Field{Doc: "Affinity replaces the default, a preferred anti-affinity by node."}, "a preferred anti-affinity by node"},
		{Field{Doc: "Report tells. Default false: it is no drift."}, "false"},
		{Field{Doc: "Labels to add."}, "none"},
	} {
		if got := defaultOf(&c.field); got != c.want {
			t.Errorf("%s: got %q, want %q", c.field.Doc, got, c.want)
		}
	}
}
