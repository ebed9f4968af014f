package generate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// source is what only the source code says: comments, and the values that a
// named text may have.
type source struct {
	types   map[string]string            // type → doc
	fields  map[string]map[string]string // type → Go field → doc
	allowed map[string][]Choice          // type → its constants
}

// readSource parses the Go files of a directory, tests left out.
func readSource(dir string) (*source, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	s := &source{types: map[string]string{}, fields: map[string]map[string]string{}, allowed: map[string][]Choice{}}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		for _, declaration := range file.Decls {
			if general, ok := declaration.(*ast.GenDecl); ok {
				s.declaration(general)
			}
		}
	}
	return s, nil
}

// declaration notes types and constants.
func (s *source) declaration(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.typeSpec(d, spec)
		case *ast.ValueSpec:
			if named, ok := spec.Type.(*ast.Ident); ok && d.Tok == token.CONST {
				s.constant(named.Name, spec)
			}
		}
	}
}

// typeSpec notes the doc of a type and of its fields.
func (s *source) typeSpec(d *ast.GenDecl, spec *ast.TypeSpec) {
	s.types[spec.Name.Name] = oneLine(d.Doc.Text())
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	docs := map[string]string{}
	for _, field := range structure.Fields.List {
		for _, name := range field.Names {
			docs[name.Name] = oneLine(field.Doc.Text())
		}
	}
	s.fields[spec.Name.Name] = docs
}

// constant notes a value of a named text.
func (s *source) constant(typeName string, spec *ast.ValueSpec) {
	for i, value := range spec.Values {
		literal, ok := value.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			continue // The parser has accepted the literal.
		}
		// "ModeObserve plans and reports." becomes "Observe plans and reports."
		doc := strings.Replace(oneLine(spec.Doc.Text()), spec.Names[i].Name, text, 1)
		s.allowed[typeName] = append(s.allowed[typeName], Choice{Value: text, Doc: doc})
	}
}

// choices are the values of a named text of the file format.
func (s *source) choices(t reflect.Type) []Choice {
	if t.PkgPath() == "" {
		return nil
	}
	return s.allowed[t.Name()]
}

// swaggerDocs are the docs that the types of Kubernetes carry along, by JSON
// name; that of the type itself is "".
func swaggerDocs(t reflect.Type) map[string]string {
	documented, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string })
	if !ok || !strings.HasPrefix(t.PkgPath(), "k8s.io/") {
		return nil // A kind has the method of the TypeMeta that it embeds.
	}
	return documented.SwaggerDoc()
}

// typeDoc is the doc comment of a type.
func (s *source) typeDoc(t reflect.Type) string {
	if docs := swaggerDocs(t); docs != nil {
		return oneLine(docs[""])
	}
	return s.named(t.Name(), s.types[t.Name()])
}

// fieldDoc is the doc comment of a field.
func (s *source) fieldDoc(t reflect.Type, goName, name string) string {
	if docs := swaggerDocs(t); docs != nil {
		return oneLine(docs[name])
	}
	return s.named(t.Name(), s.fields[t.Name()][goName])
}

// named writes sister fields as a file does: KeepHourly becomes keepHourly. A
// name of one word could be a plain one and stays, as does the first one.
func (s *source) named(typeName, doc string) string {
	return regexp.MustCompile(`[^.] [A-Z][a-z]+[A-Z]\w+`).ReplaceAllStringFunc(doc, func(match string) string {
		if _, ok := s.fields[typeName][match[2:]]; !ok {
			return match
		}
		return match[:2] + strings.ToLower(match[2:3]) + match[3:]
	})
}

// oneLine joins the lines of a comment.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
