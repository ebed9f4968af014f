package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/reconciler/naming"
)

// The page on installing shows the commands of the README, which the end-to-end tests run, and no
// others.
func TestTheInstallPageHasTheCommandsOfTheREADME(t *testing.T) {
	blocks := func(text string) []string {
		return regexp.MustCompile("(?ms)^```sh\n.*?^```$").FindAllString(text, -1)
	}
	_, install, _ := strings.Cut(textOf(t, "README.md"), "\n## Install\n")
	install, _, _ = strings.Cut(install, "\n## ")
	want, got := blocks(install), blocks(textOf(t, "docs/install.md"))
	if len(want) != 2 || !slices.Equal(want, got) {
		t.Errorf("the README shows %q, and docs/install.md %q", want, got)
	}
}

// Its tables have the rights of deploy/base, in their order.
func TestTheInstallPageHasTheRightsOfTheBase(t *testing.T) {
	var want []string
	readYAML(t, filepath.Join(deployed, "base", "clusterrole.yaml"), func(text []byte) error {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(text, &role); err != nil || role.Kind != "ClusterRole" {
			return err
		}
		for _, rule := range role.Rules {
			if len(rule.Resources) > 0 {
				want = append(want, "| `"+strings.Join(rule.Resources, "`, `")+"` | "+strings.Join(rule.Verbs, ", ")+" |")
			}
		}
		return nil
	})
	got := regexp.MustCompile("(?m)^\\| `.*` \\| (?:get|list|create)(?:, [a-z]+)* \\|$").FindAllString(textOf(t, "docs/install.md"), -1)
	if len(want) < 15 || !slices.Equal(want, got) {
		t.Errorf("deploy/base has\n%s\nand docs/install.md\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// The page on the status names each path of the API.
func TestTheStatusPageHasThePathsOfTheAPI(t *testing.T) {
	var described struct {
		Paths map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(textOf(t, "cmd/quorate/internal/api/openapi.json")), &described); err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(maps.Keys(described.Paths))
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(/api/[^`]*)` \\|").FindAllStringSubmatch(textOf(t, "docs/status.md"), -1) {
		got = append(got, row[1])
	}
	if slices.Sort(got); len(want) == 0 || !slices.Equal(want, got) {
		t.Errorf("the API has %q, and docs/status.md %q", want, got)
	}
}

// Its kubectl command shows the labels that quorate writes for people.
func TestTheStatusPageHasTheLabelsOfTheStatus(t *testing.T) {
	want := "kubectl get sts -A -L " + strings.Join([]string{naming.LabelPhase, naming.LabelReason, naming.LabelWantedVersion, naming.LabelCommit}, ",")
	if !strings.Contains(textOf(t, "docs/status.md"), "\n    "+want+"\n") {
		t.Errorf("docs/status.md does not show %q", want)
	}
}
