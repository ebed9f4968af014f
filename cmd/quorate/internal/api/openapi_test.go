package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quorate/quorate/schema"
)

var update = flag.Bool("update", false, "write openapi.json")

// object is a mapping of JSON.
type object = map[string]any

// The description is what the types, their comments and the routes say.
func TestDescriptionIsGenerated(t *testing.T) {
	text, err := json.MarshalIndent(description(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, openapi) {
		t.Error("openapi.json is not what the types say: go test ./cmd/quorate/internal/api -update")
	}
}

// Every route is described, and nothing else is.
func TestEveryRouteIsDescribed(t *testing.T) {
	var routes []string
	for _, r := range (handler{}).routes() {
		if !strings.HasSuffix(r.pattern, "/") { // what there is not
			routes = append(routes, r.pattern)
		}
	}
	var described []string
	for path := range paths() {
		described = append(described, path)
	}
	slices.Sort(routes)
	slices.Sort(described)
	if !slices.Equal(routes, described) {
		t.Errorf("the routes are %v, described are %v", routes, described)
	}
}

// description is the OpenAPI document.
func description(t *testing.T) object {
	t.Helper()
	b := builder{T: t, docs: map[string]string{}, made: object{}}
	b.read(".")
	b.read(filepath.Join("..", "..", "..", "..", "schema"))
	b.read(filepath.Join("..", "..", "..", "..", "reconciler", "preview"))
	for _, typ := range []reflect.Type{
		reflect.TypeFor[StatusList](), reflect.TypeFor[schema.Measured](), reflect.TypeFor[Happened](), reflect.TypeFor[PullList](), reflect.TypeFor[BranchList](), reflect.TypeFor[Git](), reflect.TypeFor[Change](), reflect.TypeFor[Error](),
	} {
		b.value(typ)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "quorate", "version": "v1",
			"description": "What quorate knows of the objects that Git declares, read-only. Served at --page-listen of quorate run.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"paths":      paths(),
		"components": object{"schemas": b.made, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "A token of Kubernetes, where quorate runs with --page-auth=token. The same token is taken as the password of HTTP Basic, whatever the user name is."}}},
		"security":   []any{object{}, object{"token": []any{}}},
	}
}

// paths describes the routes.
func paths() object {
	answer := func(name, text string) object {
		return object{"description": text, "content": object{"application/json": object{"schema": ref(name)}}}
	}
	failures := object{
		"401": answer("Error", "No valid token was given, where one is asked for."), "403": answer("Error", "The token's account may not read."),
		"405": answer("Error", "Only GET and HEAD are allowed."), "503": answer("Error", "This daemon does not reconcile yet, the API server cannot be asked or is asked for too much, or there are too many clients."),
	}
	get := func(id, summary string, good object, parameters []any, more ...string) object {
		responses := object{"200": good}
		for code, failure := range failures {
			responses[code] = failure
		}
		for _, code := range append(more, "400") {
			responses[code] = answer("Error", map[string]string{"400": "A parameter is unknown or wrong.", "404": "No such object, or no such status branch, is known."}[code])
		}
		operation := object{"operationId": id, "summary": summary, "responses": responses}
		if parameters != nil {
			operation["parameters"] = parameters
		}
		return object{"get": operation}
	}
	query := func(name, text string, s object) object {
		return object{"name": name, "in": "query", "description": text, "schema": s}
	}
	inPath := func(name string) object {
		return object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}}
	}
	word := func(choices ...string) object {
		s := object{"type": "string"}
		if choices != nil {
			s["enum"] = append([]string{""}, choices...)
		}
		return s
	}
	sorts := []string{}
	for _, order := range Orders() {
		sorts = append(sorts, order, "-"+order)
	}
	phases := []string{}
	for _, phase := range schema.Phases() {
		phases = append(phases, string(phase))
	}
	branch := query("branch", "Only objects on this status branch of another Kubernetes cluster, as /branches lists them; default what this daemon reconciles.", word())
	return object{
		Prefix + "/statuses": get("listStatuses", "The statuses of objects", answer("StatusList", "Those that are asked for."), []any{
			query("kind", "Only objects of this kind.", word(schema.Kinds()...)), query("namespace", "Only objects in this namespace.", word()), query("name", "Only objects of this name.", word()),
			query("phase", "Only objects in this phase.", word(phases...)),
			query("q", "Only objects with this text in name, version, reason or message, whatever the case; at most 256 bytes.", object{"type": "string", "maxLength": maxText}),
			query("sort", "By what they are sorted, with a - before it in reverse; then by kind, namespace and name. What is sorted by something that changes may move between two answers.", word(sorts...)),
			query("limit", "How many one answer has at most.", object{"type": "integer", "minimum": 1, "maximum": maxLimit, "default": defaultLimit}),
			query("continue", "The token of the answer before, to the same query.", word()), branch,
		}, "404"),
		Prefix + "/statuses/{kind}/{namespace}/{name}":               get("getStatus", "The status of one object", answer("Status", "The status."), []any{inPath("kind"), inPath("namespace"), inPath("name"), branch}, "404"),
		Prefix + "/statuses/EtcdCluster/{namespace}/{name}/measured": get("getMeasured", "What the last pass has measured of one cluster", answer("Measured", "What was measured."), []any{inPath("namespace"), inPath("name")}, "404"),
		Prefix + "/statuses/EtcdCluster/{namespace}/{name}/events":   get("listEvents", "What Kubernetes still knows of what has happened to one cluster", answer("Happened", "The Events that quorate and others wrote."), []any{inPath("namespace"), inPath("name")}, "404"),
		Prefix + "/git":      get("getGit", "What is followed in Git", answer("Git", "What is known of the repository."), nil),
		Prefix + "/pulls":    get("listPulls", "What open pull requests would do", answer("PullList", "Those that were planned."), nil),
		Prefix + "/branches": get("listBranches", "The status branches of other Kubernetes clusters", answer("BranchList", "Those that are known."), nil),
		Prefix + "/events": get("followEvents", "Changes as they happen", object{
			"description": "Server-sent events, until the client ends them or an hour has passed: \"status\" with a Change, \"git\" when what is known of the repository, of its pull requests or of its status branches has changed, and \"reset\" when the client was too slow to be told of each change; the data of the latter two is {}. Ask again for what you show. A comment comes at least every 15 seconds.",
			"content":     object{"text/event-stream": object{"schema": ref("Change")}},
		}, nil),
		Prefix + "/openapi.json": get("getDescription", "This description", object{
			"description": "OpenAPI 3.1.", "content": object{"application/json": object{"schema": object{"type": "object"}}},
		}, nil),
	}
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// builder makes schemas of Go types.
type builder struct {
	*testing.T
	// docs are the comments of types, "Type", and of fields, "Type.Field".
	docs map[string]string
	made object
}

// read reads the comments of a package.
func (b builder) read(dir string) {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		b.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			b.Fatal(err)
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok && !strings.HasSuffix(name, "_test.go") {
						b.note(d, typ)
					}
				}
			}
		}
	}
}

// note notes the comments of one type. A field without one is told of by that above it.
func (b builder) note(d *ast.GenDecl, typ *ast.TypeSpec) {
	line := func(groups ...*ast.CommentGroup) string {
		for _, g := range groups {
			if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
				return text
			}
		}
		return ""
	}
	b.docs[typ.Name.Name] = line(typ.Doc, d.Doc)
	if s, ok := typ.Type.(*ast.StructType); ok {
		last := ""
		for _, field := range s.Fields.List {
			if text := line(field.Doc, field.Comment); text != "" {
				last = text
			}
			for _, name := range field.Names {
				b.docs[typ.Name.Name+"."+name.Name] = last
			}
		}
	}
}

// value is the schema of a type.
func (b builder) value(t reflect.Type) object {
	b.Helper()
	switch {
	case t == reflect.TypeFor[schema.Phase]():
		return object{"type": "string", "enum": append([]schema.Phase{""}, schema.Phases()...)}
	case t.Kind() == reflect.Pointer:
		return b.value(t.Elem())
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": b.value(t.Elem())}
	case t.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": b.value(t.Elem())}
	case t.Kind() == reflect.String:
		return object{"type": "string"}
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int32, t.Kind() == reflect.Int64:
		return object{"type": "integer"}
	case t.Kind() != reflect.Struct:
		b.Fatalf("%s has no form in JSON", t)
	}
	if _, there := b.made[t.Name()]; !there {
		b.made[t.Name()] = b.structure(t)
	}
	return ref(t.Name())
}

// structure is the schema of a struct.
func (b builder) structure(t reflect.Type) object {
	b.Helper()
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		property := b.value(field.Type)
		if text := b.docs[t.Name()+"."+field.Name]; text != "" {
			property["description"] = text
		}
		properties[name] = property
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	made := object{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
	if text := b.docs[t.Name()]; text != "" {
		made["description"] = text
	}
	return made
}

// judge returns what says whether an answer is what the description says.
func judge(t *testing.T) func(path string, code int, contentType string, body []byte) {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	return func(path string, code int, contentType string, body []byte) {
		t.Helper()
		pointer := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path)
		kind, _, _ := strings.Cut(contentType, ";")
		s, err := compiler.Compile("openapi.json#/paths/" + pointer + "/get/responses/" + statusText(code) + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema")
		if err != nil {
			t.Errorf("%s is not described to answer with %d and %s: %v", path, code, contentType, err)
			return
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err == nil {
			err = s.Validate(value)
		}
		if err != nil {
			t.Errorf("%s: %v in\n%s", path, err, body)
		}
	}
}

func statusText(code int) string {
	return map[int]string{
		http.StatusOK: "200", http.StatusBadRequest: "400", http.StatusUnauthorized: "401", http.StatusForbidden: "403",
		http.StatusNotFound: "404", http.StatusMethodNotAllowed: "405", http.StatusServiceUnavailable: "503",
	}[code]
}
