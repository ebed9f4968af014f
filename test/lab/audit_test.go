package lab

import (
	"slices"
	"testing"
)

func TestVerbsThatARequestNeeds(t *testing.T) {
	for _, c := range []struct {
		event auditEvent
		want  []string
	}{
		{auditEvent{Verb: "get"}, []string{"get"}},
		{auditEvent{Verb: "watch"}, []string{"watch", "list"}},
		{auditEvent{Verb: "patch", ResponseStatus: struct{ Code int }{200}}, []string{"patch"}},
		{auditEvent{Verb: "patch", ResponseStatus: struct{ Code int }{201}}, []string{"patch", "create"}},
	} {
		if got := c.event.verbs(); !slices.Equal(got, c.want) {
			t.Errorf("%+v needs %q", c.event, got)
		}
	}
}

func TestRightsOfDeployAreFound(t *testing.T) {
	all, err := granted()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Right{{"delete", "apps", "statefulsets"}, {"list", "", "nodes"}, {"update", "coordination.k8s.io", "leases"}} {
		if !slices.Contains(all, want) {
			t.Errorf("%s is not among %v", want, all)
		}
	}
}
