package dashboards

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

const (
	files = "../../deploy/monitoring/dashboards/*.json"
	sdk   = "github.com/grafana/grafana-foundation-sdk/go"
)

// 250: Grafana takes each dashboard as it stands: no field, panel, query, unit or
// variable that it does not know, and none missing.
func TestGrafanaTakesTheDashboards(t *testing.T) {
	paths, err := filepath.Glob(files)
	if err != nil || len(paths) != 3 {
		t.Fatalf("%q, %v", paths, err)
	}
	for _, file := range paths {
		for _, problem := range check(t, read(t, file)) {
			t.Errorf("%s: %s", filepath.Base(file), problem)
		}
	}
}

// 250: the check finds what breaks a panel, each of these alone.
func TestABrokenPanelIsFound(t *testing.T) {
	good := read(t, strings.Replace(files, "*", "cluster", 1))
	source := regexp.MustCompile(`"refId": "A",\s+"datasource": {\s+"type": "prometheus"`).FindString(good)
	for what, broken := range map[string]struct{ old, with, says string }{
		"a panel of an unknown type": {`"type": "timeseries"`, `"type": "timeline"`, "no panel timeline"},
		"a misspelt option":          {`"graphMode"`, `"graphMod"`, "unexpected field 'graphMod'"},
		"a misspelt field option":    {`"thresholds": {`, `"treshold": {`, "unexpected field 'treshold'"},
		"a misspelt custom option":   {`"fillOpacity"`, `"fill"`, "unexpected field 'fill'"},
		"a missing option":           {`"showLegend": true,`, ``, "showLegend: required field is missing"},
		"an option of another type":  {`"lineWidth": 1`, `"lineWidth": "thin"`, "cannot unmarshal string"},
		"a word that nobody knows":   {`"drawStyle": "line"`, `"drawStyle": "lines"`, `GraphDrawStyle is never "lines"`},
		"another word":               {`"mode": "absolute"`, `"mode": "absolutely"`, `ThresholdsMode is never "absolutely"`},
		"an unknown unit":            {`"unit": "bytes"`, `"unit": "byte"`, "no unit byte"},
		"a misspelt query":           {`"legendFormat": "healthy"`, `"legend": "healthy"`, "unexpected field 'legend'"},
		"another kind of source":     {source, strings.Replace(source, "prometheus", "influx", 1), "not asked of Prometheus"},
		"an unknown variable":        {`etcd_cluster=\"$cluster\"})"`, `etcd_cluster=\"$clusters\"})"`, "no variable clusters"},
		"an unknown transformation":  {`"id": "organize"`, `"id": "organise"`, "no transformation organise"},
		"a panel outside the grid":   {`"w": 12`, `"w": 25`, "must be"},
	} {
		if !strings.Contains(good, broken.old) {
			t.Errorf("%s: %s is not in the dashboard", what, broken.old)
		}
		found := strings.Join(check(t, strings.Replace(good, broken.old, broken.with, 1)), "\n")
		if !strings.Contains(found, broken.says) {
			t.Errorf("%s: want %q, found\n%s", what, broken.says, found)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// check is what is wrong with a dashboard.
func check(t *testing.T, text string) (problems []string) {
	t.Helper()
	registered()
	problems = append(problems, said((&dashboard.Dashboard{}).UnmarshalJSONStrict([]byte(text)))...) //nolint:staticcheck // the sidecar takes this version, and Grafana 11 no other
	// What is read strictly loses its panels; those that are read again have them.
	var d dashboard.Dashboard //nolint:staticcheck // as above
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return append(problems, err.Error())
	}
	problems = append(problems, said(d.Validate())...)
	for _, p := range d.Panels {
		if p.Panel != nil {
			problems = append(problems, checkPanel(t, p.Panel)...)
		}
	}
	problems = append(problems, checkFieldConfigs(t, text)...)
	problems = append(problems, checkVariables(text, d.Templating.List)...)
	return append(problems, checkWords(t, reflect.ValueOf(d))...)
}

// registered tells the schema of panels and queries, once.
var registered = sync.OnceFunc(plugins.RegisterDefaultPlugins)

// said are the problems in an error of the SDK, which is not nil when there is none.
func said(err error) (problems []string) {
	if errs := cog.BuildErrors(nil); errors.As(err, &errs) {
		for _, e := range errs {
			problems = append(problems, e.Error())
		}
		return problems
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

func checkPanel(t *testing.T, p *dashboard.Panel) (problems []string) {
	t.Helper()
	name := fmt.Sprintf("%q", *p.Title)
	if _, known := cog.ConfigForPanelcfgVariant(p.Type); !known {
		problems = append(problems, fmt.Sprintf("%s: no panel %s", name, p.Type))
	}
	for _, target := range p.Targets {
		// The type of the query alone may be the panel's.
		q, ok := target.(*prometheus.Dataquery)
		if !ok || q.Datasource == nil || q.Datasource.Type == nil || *q.Datasource.Type != "prometheus" {
			problems = append(problems, name+": a query is not asked of Prometheus")
		}
	}
	for _, tr := range p.Transformations {
		if tr.Id != "organize" { // the schema does not list them, and this is the only one here
			problems = append(problems, fmt.Sprintf("%s: no transformation %s", name, tr.Id))
		}
	}
	if p.FieldConfig != nil && p.FieldConfig.Defaults.Unit != nil && !slices.Contains(constants(t, sdk+"/units")[""], *p.FieldConfig.Defaults.Unit) {
		problems = append(problems, fmt.Sprintf("%s: no unit %s", name, *p.FieldConfig.Defaults.Unit))
	}
	return problems
}

// checkFieldConfigs looks for fields that nobody knows where the SDK does not.
func checkFieldConfigs(t *testing.T, text string) (problems []string) {
	t.Helper()
	var raw struct {
		Panels []struct {
			FieldConfig json.RawMessage `json:"fieldConfig"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	for _, p := range raw.Panels {
		if p.FieldConfig != nil {
			problems = append(problems, said((&dashboard.FieldConfigSource{}).UnmarshalJSONStrict(p.FieldConfig))...)
		}
	}
	return problems
}

// checkVariables looks for variables that the dashboard does not have; those that begin
// with __ are Grafana's.
func checkVariables(text string, known []dashboard.VariableModel) (problems []string) {
	for _, used := range regexp.MustCompile(`\$\{?([a-zA-Z_]\w*)`).FindAllStringSubmatch(text, -1) {
		name := used[1]
		has := slices.ContainsFunc(known, func(v dashboard.VariableModel) bool { return v.Name == name })
		if !has && !strings.HasPrefix(name, "__") {
			problems = append(problems, "no variable "+name)
		}
	}
	return problems
}

// checkWords wants each value of a type with fixed words to be one of them: the SDK takes
// any.
func checkWords(t *testing.T, v reflect.Value) (problems []string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return checkWords(t, v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			problems = append(problems, checkWords(t, field)...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			problems = append(problems, checkWords(t, v.Index(i))...)
		}
	case reflect.String:
		typ := v.Type()
		if words := wordsOf(t, typ); words != nil && v.String() != "" && !slices.Contains(words, v.String()) {
			problems = append(problems, fmt.Sprintf("%s is never %q", typ.Name(), v.String()))
		}
	default:
	}
	return problems
}

// wordsOf are the constants of a type of the SDK.
func wordsOf(t *testing.T, typ reflect.Type) []string {
	t.Helper()
	if !strings.HasPrefix(typ.PkgPath(), sdk) {
		return nil
	}
	return constants(t, typ.PkgPath())[typ.Name()]
}

// constants are the strings that a package of the SDK names, by their type; read from its
// source, because Go cannot list them.
func constants(t *testing.T, pkg string) map[string][]string {
	t.Helper()
	if known, ok := parsed.Load(pkg); ok {
		return known.(map[string][]string)
	}
	found := map[string][]string{}
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", sdk).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := path.Join(strings.TrimSpace(string(dir)), strings.TrimPrefix(pkg, sdk), "types_gen.go")
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
			word, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			typ := ""
			if name, ok := spec.Type.(*ast.Ident); ok {
				typ = name.Name
			}
			found[typ] = append(found[typ], word)
		}
		return true
	})
	parsed.Store(pkg, found)
	return found
}

// parsed has the constants of packages that were read before.
var parsed sync.Map
