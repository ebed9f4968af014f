package schema

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A field that the comparison lets through and the converter does not know would be
// dropped without a word.
func TestConverterKnowsEveryField(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			into := newObject(kind)
			typ := reflect.TypeOf(into).Elem()
			fields, _ := everyField(t, typ).(map[string]any) // a kind is a struct
			compared := &fitting{document: &document{}, root: typ}
			if !compared.object(fields, typ, "") || len(compared.problems) > 0 {
				t.Fatal(compared.problems)
			}
			want, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, into, true); err != nil {
				t.Error(err)
			}
			var back map[string]any
			if data, err := json.Marshal(into); err != nil || json.Unmarshal(data, &back) != nil {
				t.Fatal(string(data), err)
			}
			if got, _ := json.Marshal(back); string(got) != string(want) {
				t.Errorf("the object says\n%s\nand the fields said\n%s", got, want)
			}
		})
	}
}

// everyField is a value of a type in which each field is set.
func everyField(t *testing.T, typ reflect.Type) any {
	t.Helper()
	switch typ {
	case reflect.TypeFor[resource.Quantity]():
		return "1Gi"
	case reflect.TypeFor[metav1.Duration]():
		return "1s"
	case reflect.TypeFor[metav1.Time]():
		return "2026-11-20T08:00:00Z"
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return everyField(t, typ.Elem())
	case reflect.Struct:
		fields := map[string]any{}
		for name, field := range jsonFields(typ) {
			fields[name] = everyField(t, field)
		}
		return fields
	case reflect.Map:
		return map[string]any{"key": everyField(t, typ.Elem())}
	case reflect.Slice:
		return []any{everyField(t, typ.Elem())}
	case reflect.String:
		return "text"
	case reflect.Bool:
		return true
	case reflect.Int, reflect.Int32, reflect.Int64:
		return 1
	}
	t.Fatalf("no value for a %s", typ)
	return nil
}
