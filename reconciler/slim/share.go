package slim

import (
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// Sharing lets the objects of many clusters have in common what is the same in them: the keys of labels, images, flags,
// and which fields each writer has set. Each of them has come from the API server with a copy of its own. The zero value
// is ready, for several goroutines.
type Sharing struct {
	mu sync.Mutex
	// texts and fields are what is known, by its text, of bytes altogether.
	texts  map[string]string
	fields map[string]*metav1.FieldsV1
	bytes  int
}

// maxKnown is the size from which on all that is known is forgotten, in bytes: most texts are of one cluster alone and
// are known in vain, and what many have is soon known again.
const maxKnown = 1 << 20

// After returns a transform that does what another does, nil for nothing, and then shares.
func (s *Sharing) After(transform toolscache.TransformFunc) toolscache.TransformFunc {
	return func(o any) (any, error) {
		if transform != nil {
			var err error
			if o, err = transform(o); err != nil {
				return o, err
			}
		}
		if object, ok := o.(metav1.Object); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.texts == nil || s.bytes > maxKnown {
				s.texts, s.fields, s.bytes = map[string]string{}, map[string]*metav1.FieldsV1{}, 0
			}
			s.share(reflect.ValueOf(object))
		}
		return o, nil
	}
}

// share goes through all that can be reached and set. The data of Secrets is bytes, and stays as it is.
func (s *Sharing) share(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		fields, ok := v.Interface().(*metav1.FieldsV1)
		if !ok {
			s.share(v.Elem())
		} else if text := fields.GetRawString(); text != "" { // no fields are nil or empty
			v.Set(reflect.ValueOf(known(s, s.fields, text, fields)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				s.share(field)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				s.share(v.Index(i))
			}
		}
	case reflect.Map:
		if texts, ok := v.Interface().(map[string]string); ok && len(texts) > 0 {
			again := make(map[string]string, len(texts))
			for key, value := range texts {
				again[known(s, s.texts, key, key)] = known(s, s.texts, value, value)
			}
			v.Set(reflect.ValueOf(again))
		}
	case reflect.String:
		v.SetString(known(s, s.texts, v.String(), v.String()))
	}
}

// known returns the value that is known by a text; value, from now on, if there is none.
func known[T any](s *Sharing, values map[string]T, text string, value T) T {
	if before, ok := values[text]; ok {
		return before
	}
	values[text] = value
	s.bytes += len(text)
	return value
}
