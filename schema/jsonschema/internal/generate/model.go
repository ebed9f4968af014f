package generate

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/quorate/quorate/schema"
)

// Model is the file format, as the Go types tell it.
type Model struct {
	// Kinds are the types of whole documents, in the order of the reference.
	Kinds []*Type
	// Types are all struct types, the kinds included, in the order in which the
	// kinds name them.
	Types []*Type
}

// Type is a struct.
type Type struct {
	// Name is the one in Go. No two types of a model share it.
	Name string
	// Doc is the doc comment in one line.
	Doc string
	// Kubernetes marks a type of Kubernetes' own API.
	Kubernetes bool
	// Fields are in the order of the struct, those of embedded structs included.
	Fields []*Field
}

// Field is a field of a struct.
type Field struct {
	// Name is the one in a file, GoName the one in Go.
	Name, GoName string
	// Doc is the doc comment in one line.
	Doc string
	// Required fields must be in the file.
	Required bool
	// Value is what the field holds.
	Value Value
	// Limits are those of the struct tag.
	Limits Limits
	// Default is the value where a file leaves the field out, or nil.
	Default any
	// Example is a value of the corpus, or nil.
	Example any
}

// Value is what a field, an item of a list or a value of a map holds.
type Value struct {
	// Shape decides which of the other fields are used.
	Shape Shape
	// Type is that of an Object.
	Type *Type
	// Item is that of a List or a Map.
	Item *Value
	// Choices are the only values of a Text, or nil when it is free.
	Choices []Choice
}

// Choice is one of the values of a string.
type Choice struct{ Value, Doc string }

// Shape is the form of a value in YAML.
type Shape string

// The shapes.
const (
	Object      Shape = "object"
	Map         Shape = "map"
	List        Shape = "list"
	Text        Shape = "string"
	Integer     Shape = "integer"
	Boolean     Shape = "boolean"
	Quantity    Shape = "quantity"
	Duration    Shape = "duration"
	Time        Shape = "time"
	IntOrString Shape = "integer or string"
)

// builder walks the types.
type builder struct {
	source *source
	model  *Model
	known  map[string]*knownType
}

// knownType finds two types of one name.
type knownType struct {
	*Type
	reflected reflect.Type
}

// New builds the model from the types and from their source, which is in
// dir. The corpus are good documents of all kinds, from which examples are taken.
func New(dir string, corpus []schema.File) (*Model, error) {
	source, err := readSource(dir)
	if err != nil {
		return nil, err
	}
	b := &builder{source: source, model: &Model{}, known: map[string]*knownType{}}
	for _, t := range []reflect.Type{
		reflect.TypeFor[schema.EtcdCluster](), reflect.TypeFor[schema.EtcdBackup](),
		reflect.TypeFor[schema.EtcdBackupSchedule](), reflect.TypeFor[schema.EtcdRestore](),
	} {
		kind, err := b.object(t)
		if err != nil {
			return nil, err
		}
		b.model.Kinds = append(b.model.Kinds, kind)
	}
	if err := b.model.fillDefaults(); err != nil {
		return nil, err
	}
	return b.model, b.model.fillExamples(corpus)
}

// object is the Type of a struct, and of all that it holds.
func (b *builder) object(t reflect.Type) (*Type, error) {
	if known, ok := b.known[t.Name()]; ok {
		if known.reflected != t {
			return nil, fmt.Errorf("two types have the name %s: %s and %s", t.Name(), known.reflected.PkgPath(), t.PkgPath())
		}
		return known.Type, nil
	}
	own := t.PkgPath() == reflect.TypeFor[schema.EtcdCluster]().PkgPath()
	made := &Type{Name: t.Name(), Kubernetes: !own, Doc: b.source.typeDoc(t)}
	b.known[t.Name()] = &knownType{made, t}
	b.model.Types = append(b.model.Types, made)
	err := b.fields(made, t)
	return made, err
}

// fields adds the fields of a struct.
func (b *builder) fields(to *Type, t reflect.Type) error {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			if err := b.fields(to, field.Type); err != nil {
				return err
			}
			continue
		case name == "" || name == "-":
			continue
		}
		tag := field.Tag.Get("jsonschema")
		if to.Kubernetes {
			tag = kubernetesTag(to.Name, name)
		}
		if tag == refused {
			continue
		}
		limits, err := readLimits(tag)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t.Name(), field.Name, err)
		}
		value, err := b.value(field.Type, limits.Choices)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t.Name(), field.Name, err)
		}
		to.Fields = append(to.Fields, &Field{
			Name: name, GoName: field.Name, Doc: b.source.fieldDoc(t, field.Name, name),
			Required: !strings.Contains(options, "omit"), Value: value, Limits: limits,
		})
	}
	return nil
}

// value is what a Go type holds in YAML. The choices are those of the tag, which
// types of Kubernetes and plain texts need.
func (b *builder) value(t reflect.Type, choices []Choice) (Value, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if shape, ok := special(t); ok {
		return Value{Shape: shape}, nil
	}
	switch t.Kind() {
	case reflect.String:
		if choices == nil {
			choices = b.source.choices(t)
		}
		return Value{Shape: Text, Choices: choices}, nil
	case reflect.Bool:
		return Value{Shape: Boolean}, nil
	case reflect.Int32, reflect.Int64:
		return Value{Shape: Integer}, nil
	case reflect.Struct:
		made, err := b.object(t)
		return Value{Shape: Object, Type: made}, err
	case reflect.Slice, reflect.Map:
		item, err := b.value(t.Elem(), choices)
		shape := List
		if t.Kind() == reflect.Map {
			shape = Map
		}
		return Value{Shape: shape, Item: &item}, err
	}
	return Value{}, fmt.Errorf("the type %s has no form in a file", t)
}

// special are the types that decode themselves.
func special(t reflect.Type) (Shape, bool) {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return Quantity, true
	case reflect.TypeFor[metav1.Duration]():
		return Duration, true
	case reflect.TypeFor[metav1.Time]():
		return Time, true
	case reflect.TypeFor[intstr.IntOrString]():
		return IntOrString, true
	}
	return "", false
}
