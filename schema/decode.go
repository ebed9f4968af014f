package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quorate/quorate/schema/release"
)

// decode fills an object from a document and says, for every field at once,
// what does not fit. A field that does not fit stays empty in the object.
//
// The converter itself stops at the first value of a wrong type, knows no lines,
// and does not report a field that it does not know. So the values are compared
// with the type first, and what does not fit is reported and taken out. Besides
// the problems it returns the fields that misspelt ones stand for, and how many bytes
// the object takes.
func decode(root *document, into object) (problems []Problem, meant []string, weight int64) {
	fields, found := root.values()
	f := &fitting{document: root, root: reflect.TypeOf(into).Elem(), problems: found}
	f.weight = 2 * weightOf(f.root) // it is kept, and copied into the Set
	f.object(fields, f.root, "")
	f.explainUnknown()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into); err != nil {
		f.fail("", "%v", err)
	}
	return f.problems, f.meant, f.weight
}

// fitting compares values with a type.
type fitting struct {
	*document
	// root is the type of the whole document.
	root     reflect.Type
	problems []Problem
	// meant are the fields that misspelt ones stand for. That those are missing
	// need not be said.
	meant   []string
	unknown []unknownField
	weight  int64
}

// unknownField is a key that a type does not have.
type unknownField struct {
	parent, key string
	known       map[string]reflect.Type
	// line and column are where it stands.
	line, column int
}

// weightOf is how many bytes a value of a type takes, without what it points at.
func weightOf(t reflect.Type) int64 {
	return int64(t.Size()) //nolint:gosec // No type is so large.
}

// fail notes a problem of a field.
func (f *fitting) fail(field, format string, args ...any) {
	p := Problem{ID: IDType, Field: field, Message: fmt.Sprintf(format, args...)}
	p.Line, p.Column = f.place(field)
	f.problems = append(f.problems, p)
}

// value reports whether a value fits a type. Parts that do not fit and can be left
// out are taken out, so that the rest can be decoded and validated.
func (f *fitting) value(value any, t reflect.Type, field string) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
		f.weight += weightOf(t)
	}
	switch {
	case value == nil:
		return true
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return f.special(value, t, field)
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return f.object(value, t, field)
	case reflect.Slice:
		return f.list(value, t, field)
	case reflect.String:
		return f.text(value, field)
	case reflect.Bool:
		return f.boolean(value, field)
	case reflect.Int32, reflect.Int64, reflect.Int:
		return f.number(value, t, field)
	}
	return true
}

// object compares a mapping with a struct or a map.
func (f *fitting) object(value any, t reflect.Type, field string) bool {
	fields, ok := value.(map[string]any)
	if !ok {
		f.fail(field, "must be an object, not %s", describe(value))
		return false
	}
	var known map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		known = jsonFields(t)
	} else {
		f.weight += int64(len(fields)) * (weightOf(t.Key()) + weightOf(t.Elem()))
	}
	for key := range fields {
		fieldType, ok := known[key]
		switch {
		case known == nil:
			fieldType = t.Elem()
		case !ok:
			u := unknownField{parent: field, key: key, known: known}
			u.line, u.column = f.place(child(field, key))
			f.unknown = append(f.unknown, u)
			delete(fields, key)
			continue
		}
		if !f.value(fields[key], fieldType, child(field, key)) {
			delete(fields, key)
		}
	}
	return true
}

// explainUnknown reports the fields that the types do not have, and what to write
// instead: that is a search, so it is done only for those that are reported.
func (f *fitting) explainUnknown() {
	slices.SortFunc(f.unknown, func(a, b unknownField) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column), cmp.Compare(a.parent, b.parent), cmp.Compare(a.key, b.key))
	})
	for i, u := range f.unknown {
		hint := ""
		if i < maxProblems {
			hint = f.meantBy(u)
		}
		f.fail(child(u.parent, u.key), "is not a known field%s", hint)
		f.problems[len(f.problems)-1].ID = IDUnknownField
	}
}

// meantBy returns what to write in place of an unknown field, or "".
func (f *fitting) meantBy(u unknownField) string {
	names := slices.Sorted(maps.Keys(u.known))
	hint, meant := moved(f.root, u.parent, u.key)
	if hint == "" {
		hint = didYouMean(u.key, names)
	}
	if near := release.Nearest(u.key, names); near != "" {
		f.meant = append(f.meant, child(u.parent, near))
	}
	if meant != "" {
		f.meant = append(f.meant, meant)
	}
	return hint
}

// list compares a sequence with a slice. A list with a bad item is left out.
func (f *fitting) list(value any, t reflect.Type, field string) bool {
	items, ok := value.([]any)
	if !ok {
		f.fail(field, "must be a list, not %s", describe(value))
		return false
	}
	f.weight += int64(len(items)) * weightOf(t.Elem())
	fits := true
	for i, item := range items {
		fits = f.value(item, t.Elem(), fmt.Sprintf("%s[%d]", field, i)) && fits
	}
	return fits
}

// text accepts texts. YAML reads some of what a person means as text as a
// number or a switch, and may change it by that.
func (f *fitting) text(value any, field string) bool {
	switch value.(type) {
	case string:
		return true
	case map[string]any, []any:
		f.fail(field, "must be a string, not %s", describe(value))
		return false
	}
	raw := ""
	if s, ok := f.spots[field]; ok && s.value != nil {
		raw = s.value.Value
	}
	if read := describe(value); !strings.HasSuffix(read, " "+raw) {
		f.fail(field, "YAML reads %s as %s: put it in quotes", raw, read)
		return false
	}
	f.fail(field, "must be a string, not %s: put it in quotes", describe(value))
	return false
}

// boolean accepts true and false. Older YAML took other words for them, which
// now are texts.
func (f *fitting) boolean(value any, field string) bool {
	if _, ok := value.(bool); ok {
		return true
	}
	hint := ""
	text, _ := value.(string) // Another type has no hint.
	switch strings.ToLower(text) {
	case "true", "false":
		hint = ": leave out the quotes"
	case "yes", "on", "y":
		hint = ": write true"
	case "no", "off", "n":
		hint = ": write false"
	}
	f.fail(field, "must be true or false, not %s%s", describe(value), hint)
	return false
}

// number accepts whole numbers that the type can hold.
func (f *fitting) number(value any, t reflect.Type, field string) bool {
	n, ok := int64(0), true
	switch v := value.(type) {
	case int:
		n = int64(v)
	case int64:
		n = v
	default:
		ok = false
	}
	if !ok || (t.Kind() == reflect.Int32 && (n > math.MaxInt32 || n < math.MinInt32)) {
		hint := ""
		if text, isText := value.(string); isText {
			if _, err := strconv.Atoi(text); err == nil {
				hint = ": leave out the quotes"
			}
		}
		f.fail(field, "must be an integer, not %s%s", describe(value), hint)
		return false
	}
	return true
}

// special asks types that decode themselves.
func (f *fitting) special(value any, t reflect.Type, field string) bool {
	data, err := json.Marshal(value)
	into, ok := reflect.New(t).Interface().(json.Unmarshaler)
	if err == nil && ok {
		err = into.UnmarshalJSON(data)
	}
	switch {
	case err == nil:
		return true
	case t == reflect.TypeFor[resource.Quantity]():
		f.fail(field, "must be a quantity such as 8Gi or 500m, not %s", describe(value))
		return false
	case t == reflect.TypeFor[metav1.Duration]():
		f.fail(field, "must be a duration such as \"10s\", not %s", describe(value))
		return false
	case t == reflect.TypeFor[metav1.Time]():
		f.fail(field, "must be a time such as \"2026-11-20T08:00:00Z\", not %s", describe(value))
		return false
	}
	f.fail(field, "cannot be %s", describe(value))
	return false
}

// describe names a value in a message.
func describe(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "the string " + clip(v)
	case bool:
		return "the boolean " + strconv.FormatBool(v)
	case float64:
		return "the number " + strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprintf("the number %v", value)
}

// knownFields are the jsonFields of the types that were asked for before: those
// of a pod are many.
var knownFields sync.Map //nolint:gochecknoglobals // A cache of what reflection says.

// jsonFields are the fields of a struct by their JSON names, with those of
// embedded structs.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	if known, ok := knownFields.Load(t); ok {
		return known.(map[string]reflect.Type) // nothing else is stored
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			maps.Copy(fields, jsonFields(field.Type))
		case name != "" && name != "-" && field.IsExported():
			fields[name] = field.Type
		}
	}
	knownFields.Store(t, fields)
	return fields
}
