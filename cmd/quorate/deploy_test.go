package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

const deployed = "../../deploy/"

// The daemon of deploy/base as it stands, without a repository, says in one line what to set and
// where.
func TestTheBaseWithoutARepositorySaysWhatToSet(t *testing.T) {
	var k struct {
		ConfigMapGenerator []struct {
			Literals []string `json:"literals"`
		} `json:"configMapGenerator"`
	}
	readYAML(t, filepath.Join(deployed, "base", "kustomization.yaml"), func(text []byte) error { return yaml.Unmarshal(text, &k) })
	var settings []string
	for _, literal := range k.ConfigMapGenerator[0].Literals {
		name, value, _ := strings.Cut(literal, "=")
		settings = append(settings, "$("+name+")", value)
	}
	var d appsv1.Deployment
	readYAML(t, filepath.Join(deployed, "base", "deployment.yaml"), func(text []byte) error { return yaml.UnmarshalStrict(text, &d) })
	args := d.Spec.Template.Spec.Containers[0].Args
	for i := range args {
		args[i] = strings.NewReplacer(settings...).Replace(args[i])
	}
	var out, problems bytes.Buffer
	status := execute(t.Context(), args, &out, &problems)
	if text := problems.String(); status != 1 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "REPO of the ConfigMap quorate-settings") {
		t.Errorf("%q: status %d, %s", args, status, text)
	}
}

// What the quickstart runs from a machine has the namespace that its lease is in.
func TestTheQuickstartMakesTheNamespaceOfTheLease(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	page, err := os.ReadFile("../../examples/quickstart/README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(page), "bin/quorate run")
	namespace := newRun().Flags().Lookup("lease-namespace").DefValue
	if !found || !strings.Contains(before, "\n    kubectl create namespace "+namespace+"\n") {
		t.Errorf("it does not make %s before it runs quorate", namespace)
	}
}
