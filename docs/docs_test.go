package docs_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/docs"
	"github.com/quorate/quorate/reconciler/explain"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/jsonschema"
)

// root is the repository.
const root = ".."

// read are the pages that readers are sent to, and linked those whose links are followed as well: what they say
// of flags and fields was so once, or is generated.
const (
	read   = `README|CONTRIBUTING|SECURITY|docs/[\w-]+|(examples|deploy)/.*README`
	linked = read + `|CHANGELOG|(schema|test)/[\w-]+`
)

// pages are those that readers are sent to, by their path in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	return pagesOf(t, read)
}

// pagesOf are those whose path, without .md, is one of a pattern.
func pagesOf(t *testing.T, pattern string) map[string]string {
	t.Helper()
	names := regexp.MustCompile(`^(` + pattern + `)\.md$`)
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		if !names.MatchString(name) {
			return nil
		}
		text, err := os.ReadFile(path)
		found[name] = string(text)
		return err
	})
	if err != nil || len(found) < 30 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	return found
}

// everyPage reports what a check finds in each page, and fails where it looked at less than
// some things in all of them: a check that finds nothing to check checks nothing.
func everyPage(t *testing.T, pages map[string]string, least int, check func(page, text string) (looked int, problems []string)) {
	t.Helper()
	all := 0
	for page, text := range pages {
		looked, problems := check(page, text)
		all += looked
		for _, problem := range problems {
			t.Errorf("%s: %s", page, problem)
		}
	}
	if all < least {
		t.Errorf("%d were checked, and there should be %d", all, least)
	}
}

// Whatever a page links to is there: a file of the repository, and the heading in it.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	open := func(path string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, path))
		if info, errStat := os.Stat(filepath.Join(root, path)); errStat == nil && info.IsDir() {
			return "", nil
		}
		return string(text), err
	}
	everyPage(t, pagesOf(t, linked), 500, func(page, text string) (int, []string) { return deadLinks(page, text, open) })
}

// deadLinks are the relative links of a page that lead nowhere.
func deadLinks(page, text string, read func(path string) (string, error)) (looked int, dead []string) {
	link := regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?:href|src|srcset)="([^"]+)"|(?m:^\[[^\]]+\]:\s+(\S+))`)
	for _, found := range link.FindAllStringSubmatch(prose(text), -1) {
		to := found[1] + found[2] + found[3]
		if regexp.MustCompile(`^([a-z]+:|//)`).MatchString(to) {
			continue
		}
		looked++
		path, anchor, hasAnchor := strings.Cut(to, "#")
		target := page
		if path != "" {
			target = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
		}
		content, err := read(target)
		switch {
		case err != nil || strings.HasPrefix(target, ".."):
			dead = append(dead, "links to "+to+", which is not there")
		case hasAnchor && strings.HasSuffix(target, ".md") && !slices.Contains(anchors(content), anchor):
			dead = append(dead, "links to "+to+", and "+target+" has no such heading")
		}
	}
	return looked, dead
}

func TestALinkIsFollowedAsAReaderDoes(t *testing.T) {
	files := map[string]string{"docs/a.md": "# A\n\n## `b`: c & d\n\n## Two\n\n## Two\n\n<a id=\"own\"></a>\n\n```sh\n## none\n```\n", "README.md": "# R\n"}
	read := func(path string) (string, error) {
		if text, ok := files[path]; ok {
			return text, nil
		}
		return "", fs.ErrNotExist
	}
	for text, dead := range map[string]int{
		"[a](a.md) [b](a.md#b-c--d) [t](#two) [u](#two-1) [o](#own) [r](../README.md#r \"title\")": 0,
		"[a](https://example.com/x#y) ![p](mailto:x@example.com)":                                  0,
		"[a](b.md)": 1, "[a](a.md#none)": 1, "[a](#two-2)": 1, "[a](../../README.md)": 1, "[a][1]\n\n[1]: b.md": 1, `<img src="p.png">`: 1,
		"```text\n[a](b.md)\n```\n`[a](b.md)`": 0,
	} {
		page := "docs/a.md"
		if _, got := deadLinks(page, text, func(path string) (string, error) {
			if path == page {
				content, err := read(path)
				return content + text, err
			}
			return read(path)
		}); len(got) != dead {
			t.Errorf("%q has the dead links %q, want %d", text, got, dead)
		}
	}
}

// anchors are those of the headings of a page, as GitHub makes them, and those that it writes.
func anchors(text string) (found []string) {
	text = fences(text, "")
	count := map[string]int{}
	for _, heading := range regexp.MustCompile(`(?m)^#{1,6} +(.*?) *#*$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading[1], "$1")
		slug := strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(plain), ""), " ", "-")
		count[slug]++
		if n := count[slug]; n > 1 {
			slug += "-" + string(rune('0'+n-1))
		}
		found = append(found, slug)
	}
	for _, written := range regexp.MustCompile(`<a (?:id|name)="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		found = append(found, written[1])
	}
	return found
}

// fences replaces the blocks of code of a page.
func fences(text, by string) string {
	return regexp.MustCompile("(?ms)^ *(```+)[^\n]*\n.*?^ *```+ *$").ReplaceAllString(text, by)
}

// prose is a page without its code.
func prose(text string) string {
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(fences(text, ""), "code")
}

// block is a block of code: its language, and what is in it.
type block struct{ language, text string }

func blocks(text string) (found []block) {
	for _, b := range regexp.MustCompile("(?ms)^( *)```(\\w*)[^\n]*\n(.*?)^ *```").FindAllStringSubmatch(text, -1) {
		found = append(found, block{b[2], strings.ReplaceAll("\n"+b[3], "\n"+b[1], "\n")[1:]})
	}
	return found
}

// spans is the code within the sentences of a page.
func spans(text string) (found []string) {
	for _, s := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(fences(text, ""), -1) {
		found = append(found, s[1])
	}
	return found
}

// otherFlags are flags that pages name without the command that has them, and whose they are.
func otherFlags() map[string]string {
	return map[string]string{
		"--dest": "etcdctl make-mirror", "--etcd-certfile": "kube-apiserver", "--etcd-keyfile": "kube-apiserver", "--etcd-cafile": "kube-apiserver",
		"--bump-revision": "etcdutl snapshot restore", "--client-cert-auth": "etcd",
		"--quota-backend-bytes": "etcd", "--auto-compaction-mode": "etcd", "--auto-compaction-retention": "etcd", "--cert-file": "etcd", "--trusted-ca-file": "etcd",
		"--heartbeat-interval": "etcd", "--peer-": "etcd, for all that begin like this",
	}
}

// commandFlags are the flags of each command of quorate, by docs/cli.md, which is generated.
func commandFlags(t *testing.T) map[string][]string {
	t.Helper()
	flags, command := map[string][]string{}, ""
	for line := range strings.Lines(pages(t)["docs/cli.md"]) {
		if name, ok := strings.CutPrefix(line, "## quorate "); ok {
			command = strings.TrimSpace(name)
			flags[command] = nil
		}
		if row := regexp.MustCompile("^\\| `(?:-\\w, )?(--[a-z0-9-]+)").FindStringSubmatch(line); row != nil {
			flags[command] = append(flags[command], row[1])
		}
	}
	if len(flags) < 10 || len(flags["run"]) < 40 {
		t.Fatalf("docs/cli.md has %d commands, and run has %d flags", len(flags), len(flags["run"]))
	}
	return flags
}

// Every flag that a page names is one: of the command of quorate that it is shown with, of some
// command where it is shown alone, or of another tool.
func TestEveryFlagThatAPageNamesExists(t *testing.T) {
	flags := commandFlags(t)
	everyPage(t, pages(t), 200, func(_, text string) (int, []string) { return unknownFlags(text, flags) })
	used := ""
	for _, text := range pages(t) {
		used += strings.Join(spans(text), "\n") + "\n"
	}
	for flag, tool := range otherFlags() {
		if !strings.Contains(used, flag) {
			t.Errorf("no page names %s of %s any more: take it out of the list", flag, tool)
		}
	}
}

// unknownFlags are the flags that a text names and that nothing has. Those behind another
// command are that command's.
func unknownFlags(text string, flags map[string][]string) (looked int, problems []string) {
	code := spans(text)
	for _, b := range blocks(text) {
		for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
			if line = strings.TrimPrefix(strings.TrimSpace(line), "$ "); strings.HasPrefix(line, "quorate ") {
				code = append(code, line)
			}
		}
	}
	for _, one := range code {
		called := regexp.MustCompile(`(?:^|\bkubectl )quorate ([a-z]+(?: [a-z]+)?)`).FindStringSubmatch(one)
		for _, flag := range regexp.MustCompile(`(?:^|[\s=\[(/])(--[a-z][a-z0-9-]*)`).FindAllStringSubmatchIndex(one, -1) {
			name, before := one[flag[2]:flag[3]], strings.TrimSpace(one[:flag[2]])
			has := slices.Concat([]string{"--help"}, ofAll(flags))
			switch {
			case called != nil:
				command := called[1]
				if _, ok := flags[command]; !ok {
					command, _, _ = strings.Cut(command, " ")
				}
				has = append([]string{"--help"}, flags[command]...)
			case before != "" && !strings.HasPrefix(before, "-"):
				continue // another command's
			case otherFlags()[name] != "":
				continue
			}
			if looked++; !slices.Contains(has, name) {
				problems = append(problems, "names the flag "+name+" in `"+strings.TrimSpace(one)+"`, and there is none")
			}
		}
	}
	return looked, problems
}

func ofAll(flags map[string][]string) (all []string) {
	for _, some := range flags {
		all = append(all, some...)
	}
	return all
}

func TestAFlagBelongsToItsCommand(t *testing.T) {
	flags := map[string][]string{"run": {"--repo", "--interval"}, "snapshot list": {"--ca"}, "snapshot": nil}
	for text, unknown := range map[string]int{
		"`--repo`, `--interval=30s`, `quorate run --repo x`, `kubectl get --watch`": 0, "`--rep`": 1, "`quorate run --ca x`": 1, "`quorate snapshot list --ca f`": 0,
		"`--repo --intervall 3`": 1, "```sh\nquorate run \\\n  --branches x\n```": 1, "```text\n--anything\n```": 0, "`kubectl quorate run --path x`": 1,
	} {
		if _, got := unknownFlags(text, flags); len(got) != unknown {
			t.Errorf("%q has the unknown flags %q, want %d", text, got, unknown)
		}
	}
}

// Every metric of quorate that a page names is in docs/metrics.md, which is generated.
func TestEveryMetricThatAPageNamesExists(t *testing.T) {
	var metrics []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(quorate_\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(pages(t)["docs/metrics.md"], -1) {
		metrics = append(metrics, row[1])
		if row[2] == "histogram" {
			metrics = append(metrics, row[1]+"_bucket", row[1]+"_sum", row[1]+"_count")
		}
	}
	if len(metrics) < 20 {
		t.Fatalf("docs/metrics.md has %d metrics", len(metrics))
	}
	everyPage(t, pages(t), 60, func(_, text string) (int, []string) { return unknownMetrics(text, metrics) })
	if looked, got := unknownMetrics("`quorate_leader`, quorate_leaders, grep '^quorate_lead', `quorate_cluster_*`, `quorate_clutser_*`", append(metrics, "quorate_cluster_x")); looked != 5 || len(got) != 2 {
		t.Errorf("%d were found, unknown are %q", looked, got)
	}
}

func unknownMetrics(text string, metrics []string) (looked int, problems []string) {
	for _, found := range regexp.MustCompile(`\^?\bquorate_[a-z0-9_]+\*?`).FindAllString(text, -1) {
		looked++
		// grep asks for those that begin like this.
		begin := strings.Trim(found, "^*")
		several := begin != found || strings.HasSuffix(found, "_")
		if !slices.ContainsFunc(metrics, func(m string) bool { return m == found || several && strings.HasPrefix(m, begin) }) {
			problems = append(problems, "names the metric "+found+", and there is none")
		}
	}
	return looked, problems
}

// otherFields are fields of other objects that pages name by a path that begins with spec.
func otherFields() map[string]string {
	return map[string]string{
		"spec.template": "Deployment, StatefulSet", "spec.volumeName": "PersistentVolumeClaim", "spec.minAvailable": "PodDisruptionBudget",
		"spec.backup.compression": "Etcd of etcd-druid",
	}
}

// Every field that a page names by its path exists in the files of quorate, by their JSON Schema.
func TestEveryFieldThatAPageNamesExists(t *testing.T) {
	var kinds []map[string]any
	for _, kind := range jsonschema.Kinds() {
		text, err := jsonschema.Read(jsonschema.Path(kind))
		var of map[string]any
		if err := errors.Join(err, json.Unmarshal(text, &of)); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, of)
	}
	everyPage(t, pages(t), 60, func(_, text string) (int, []string) { return unknownFields(text, kinds) })
	sample := "`spec.version`, `spec.upgrade.backup: Skip`, `spec.versions`, `spec.tls.clients[].name`, `spec.tls.clients.nam`, `spec.podTemplate.metadata.labels.mine`"
	if looked, got := unknownFields(sample, kinds); looked != 6 || len(got) != 2 {
		t.Errorf("%d were found, unknown are %q", looked, got)
	}
}

func unknownFields(text string, kinds []map[string]any) (looked int, problems []string) {
	for _, span := range spans(text) {
		path := regexp.MustCompile(`^spec(\.[A-Za-z0-9]+(\[[^\]]*\])?)+`).FindString(span)
		if path == "" {
			continue
		}
		looked++
		steps := strings.Split(regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(path, ""), ".")
		other := slices.ContainsFunc(slices.Collect(maps.Keys(otherFields())), func(field string) bool { return path == field || strings.HasPrefix(path, field+".") })
		if !other && !slices.ContainsFunc(kinds, func(kind map[string]any) bool { return hasField(kind, kind, steps) }) {
			problems = append(problems, "names the field "+path+", and there is none")
		}
	}
	return looked, problems
}

// hasField reports whether a part of a schema allows a path. A list is passed through to its items.
func hasField(whole, part map[string]any, path []string) bool {
	if ref, ok := part["$ref"].(string); ok {
		at := any(whole)
		for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			object, _ := at.(map[string]any)
			at = object[step]
		}
		part, _ = at.(map[string]any)
		return part != nil && hasField(whole, part, path)
	}
	if len(path) == 0 {
		return true
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		some, _ := part[key].([]any)
		for _, one := range some {
			if object, ok := one.(map[string]any); ok && hasField(whole, object, path) {
				return true
			}
		}
	}
	if items, ok := part["items"].(map[string]any); ok {
		return hasField(whole, items, path)
	}
	properties, _ := part["properties"].(map[string]any)
	if next, ok := properties[path[0]].(map[string]any); ok {
		return hasField(whole, next, path[1:])
	}
	switch more := part["additionalProperties"].(type) {
	case map[string]any:
		return hasField(whole, more, path[1:])
	case bool:
		return more
	}
	// An object of Kubernetes' own, which the schema leaves to it.
	return part["properties"] == nil && part["type"] == "object"
}

// Every hold, rule, reason and exit code that a page has explained is explained.
func TestEveryExplanationThatAPageNamesExists(t *testing.T) {
	everyPage(t, pages(t), 5, func(_, text string) (int, []string) { return unexplained(text) })
	if looked, got := unexplained("`quorate explain window`, `quorate explain RULE`, quorate explain Refusal\n    quorate explain HoldRefused"); looked != 3 || len(got) != 1 {
		t.Errorf("%d were found, unknown are %q", looked, got)
	}
}

func unexplained(text string) (looked int, problems []string) {
	for _, found := range regexp.MustCompile(`\bquorate explain ([A-Za-z][\w-]*)`).FindAllStringSubmatch(text, -1) {
		if name := found[1]; name != strings.ToUpper(name) && name != "prints" {
			if looked++; len(explain.Find(name)) == 0 {
				problems = append(problems, "names quorate explain "+name+", and that is not explained")
			}
		}
	}
	return looked, problems
}

// Every file of quorate's that a page shows is valid.
func TestEveryFileThatAPageShowsIsValid(t *testing.T) {
	everyPage(t, pages(t), 6, func(_, text string) (int, []string) { return invalid(text) })
	cluster := "apiVersion: quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: a, namespace: b}\nspec: {version: \"3.6.16\", replicas: 3, storage: {size: 8Gi}}\n"
	for sample, want := range map[string]int{cluster: 0, strings.Replace(cluster, "version:", "vresion:", 1): 1, "apiVersion: v1\nkind: Secret\n": 0} {
		if _, got := invalid("```yaml\n" + sample + "```\n"); len(got) != want {
			t.Errorf("%s has the problems %q", sample, got)
		}
	}
	if _, got := invalid("```yaml\napiVersion: quorate.dev/v1alpha1\nkind: Policy\nrulez: []\n```\n"); len(got) != 1 {
		t.Errorf("a bad policy has the problems %q", got)
	}
}

func invalid(text string) (looked int, problems []string) {
	for _, b := range blocks(text) {
		if b.language != "yaml" || !strings.Contains(b.text, "apiVersion: quorate.dev/") {
			continue
		}
		looked++
		if strings.Contains(b.text, "kind: Policy") {
			if _, err := schema.ParsePolicy("policy.yaml", []byte(b.text)); err != nil {
				problems = append(problems, "shows a policy that is not valid: "+err.Error())
			}
			continue
		}
		set := (&schema.Parser{}).Parse([]schema.File{{Path: "page.yaml", Data: []byte(b.text)}})
		for _, p := range slices.Concat(set.Problems, set.Unreadable) {
			// A page may show one file of several.
			if elsewhere := regexp.MustCompile(`^there is no \w+ \S+ in Git$`).MatchString(p.Message); !p.Warning && !elsewhere {
				problems = append(problems, "shows a file that is not valid: "+p.String()+"\n"+b.text)
			}
		}
	}
	return looked, problems
}

// follower is a test that runs the commands of a page.
type follower struct {
	// file and test are where it is, and names is how its file names the page.
	file, test, names string
	// all says that it runs whatever blocks the page has; else its file names each heading whose commands it runs.
	all bool
}

// followers are the tests that run the blocks of shell commands, by page.
func followers() map[string][]follower {
	const facts, guides, examples = "cmd/quorate/facts_test.go", "cmd/quorate/guides_test.go", "cmd/quorate/pages_test.go"
	migration := []follower{{examples, "TestMigrationPagesRun", `"migrate-from-"+from`, false}}
	newcomer := func(page string) follower {
		return follower{"test/e2e/newcomer_test.go", "TestANewcomersPath", `"` + page + `"`, false}
	}
	policies := func(page string) []follower {
		return []follower{{"test/admission/policies_test.go", "TestTheCommandsOfThePagesRun", `"` + page + `"`, true}}
	}
	return map[string][]follower{
		"README.md":                                  {newcomer("README.md")},
		"docs/install.md":                            {{facts, "TestTheInstallPageHasTheCommandsOfTheREADME", `"docs/install.md"`, true}},
		"docs/admission.md":                          policies("admission.md"),
		"docs/network.md":                            policies("network.md"),
		"docs/alerts.md":                             {{"test/e2e/runbooks_test.go", "TestRunbooks", `"alerts.md"`, true}},
		"docs/running.md":                            {{"test/e2e/self_upgrade_test.go", "TestQuorateItselfIsRolledOut", `"running.md"`, true}},
		"docs/migration.md":                          {{guides, "TestMigrationGuideRuns", `"migration.md"`, false}},
		"docs/upgrade.md":                            {{guides, "TestUpgradeGuideRuns", `"upgrade.md"`, false}},
		"docs/backup.md":                             {{guides, "TestBackupPageRuns", `"backup.md"`, false}, newcomer("docs/backup.md")},
		"examples/quickstart/README.md":              {{guides, "TestQuickstartPageRuns", `"quickstart"`, true}},
		"examples/fleet/README.md":                   {{guides, "TestFleetPageRuns", `"fleet"`, true}},
		"examples/disaster-recovery/README.md":       {{examples, "TestThePageForALostKubernetesClusterRuns", `"disaster-recovery"`, false}, {"test/e2e/disaster_test.go", "TestDisasterRecovery", `disaster-recovery"`, false}},
		"examples/migrate-from-coreos/README.md":     migration,
		"examples/migrate-from-improbable/README.md": migration,
	}
}

// The commands that a page shows are run by a test: a page says nothing that was never tried.
func TestEveryCommandThatAPageShowsIsRun(t *testing.T) {
	for page, text := range pages(t) {
		shown, tests := commandHeadings(text), followers()[page]
		if len(shown) == 0 && len(tests) > 0 {
			t.Errorf("%s shows no commands any more: take it out of followers", page)
		}
		if len(shown) > 0 && len(tests) == 0 {
			t.Errorf("%s shows commands that no test runs: name the test in followers, or show them as text", page)
		}
		if len(shown) == 0 || len(tests) == 0 {
			continue
		}
		sources := make([]string, len(tests))
		for i, by := range tests {
			source, err := os.ReadFile(filepath.Join(root, by.file))
			if err != nil {
				t.Error(err)
			}
			sources[i] = string(source)
		}
		for _, problem := range unfollowed(shown, tests, sources) {
			t.Errorf("%s: %s", page, problem)
		}
	}
}

// What the check above finds.
func TestACommandThatNoTestRunsIsFound(t *testing.T) {
	shown := commandHeadings("## One\n```sh\na\n```\n## Two\n```yaml\nb: c\n```\n### Three\n```sh\nd\n```\n")
	if !slices.Equal(shown, []string{"One", "Three"}) {
		t.Errorf("there are commands under %q", shown)
	}
	source := "func TestA(t *testing.T) {\n\tread(t, \"a.md\")\n\tfollow(\"One\")\n}\n"
	for want, by := range map[string]follower{
		`f has no TestB`:                      {"f", "TestB", `"a.md"`, true},
		`f does not name the page by "b.md"`:  {"f", "TestA", `"b.md"`, true},
		`no test names the commands of Three`: {"f", "TestA", `"a.md"`, false},
	} {
		if got := unfollowed(shown, []follower{by}, []string{source}); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := unfollowed(shown, []follower{{"f", "TestA", `"a.md"`, true}}, []string{source}); len(got) > 0 {
		t.Errorf("%q about a test that runs all", got)
	}
}

// commandHeadings are the headings above blocks of shell commands, in their order.
func commandHeadings(text string) (list []string) {
	heading, fenced := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch language, fence := strings.CutPrefix(line, "```"); {
		case fence && !fenced:
			fenced = true
			if slices.Contains([]string{"sh", "bash", "shell"}, language) && !slices.Contains(list, heading) {
				list = append(list, heading)
			}
		case fence:
			fenced = false
		case !fenced && strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	return list
}

// unfollowed says which of these tests is none of the page, and under which headings are commands that none of
// them runs.
func unfollowed(shown []string, tests []follower, sources []string) (problems []string) {
	for i, by := range tests {
		if !strings.Contains(sources[i], "func "+by.test+"(t *testing.T) {") {
			problems = append(problems, by.file+" has no "+by.test)
		}
		if !strings.Contains(sources[i], by.names) {
			problems = append(problems, by.file+" does not name the page by "+by.names)
		}
	}
	for _, heading := range shown {
		named := false
		for i, by := range tests {
			named = named || by.all || strings.Contains(sources[i], `"`+heading+`"`)
		}
		if !named {
			problems = append(problems, "no test names the commands of "+heading)
		}
	}
	return problems
}

// The index links to every page, and no page is without a sentence that says what it is for.
func TestTheIndexHasEveryPage(t *testing.T) {
	all, err := docs.Pages()
	if err != nil {
		t.Fatal(err)
	}
	index := pages(t)["docs/README.md"]
	for _, p := range all {
		if p.Name != "README" && !strings.Contains(index, "]("+p.Name+".md)") {
			t.Errorf("docs/README.md does not link to %s.md", p.Name)
		}
		if says := p.Says(); len(says) < 20 || strings.ContainsAny(says, "|[") {
			t.Errorf("%s.md does not begin with a sentence that says what it is for: %q", p.Name, says)
		}
	}
	for _, reference := range []string{"../schema/REFERENCE.md", "../CONTRIBUTING.md", "../SECURITY.md", "../CHANGELOG.md"} {
		if !strings.Contains(index, "]("+reference+")") {
			t.Errorf("docs/README.md does not link to %s", reference)
		}
	}
}

func TestTheFirstSentenceOfAPage(t *testing.T) {
	for text, want := range map[string]string{
		"# A\n\nThis page, with `x: y`, is [here](b.md). More.\n": "This page, with x: y, is here.",
		"<!-- made -->\n\n# A\n\nOne\nof two:\n\n- b.\n":          "One of two", "# A\n": "", "none": "",
	} {
		if got := (docs.Page{Text: text}).Says(); got != want {
			t.Errorf("%q says %q, want %q", text, got, want)
		}
	}
}

// The README is read in a minute.
func TestTheReadmeIsShort(t *testing.T) {
	const most = 150
	if lines := strings.Count(pages(t)["README.md"], "\n"); lines > most {
		t.Errorf("README.md has %d lines, and no more than %d are allowed: move what is for fewer readers to docs/", lines, most)
	}
}
