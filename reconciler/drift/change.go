package drift

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Change is how one field differs.
type Change struct {
	// Path of the field, as in Drift.Fields.
	Path string
	// Live and Want are its values, "" for none, for people: short ones only, and none from
	// where a secret may be.
	Live, Want string
	// Manager is the one that took the field from quorate or added it last, "" if none
	// holds it. Time is when.
	Manager string
	Time    time.Time
}

// Texts are changes for people, in their order.
func Texts(changes []Change) []string {
	texts := make([]string, len(changes))
	for i, c := range changes {
		texts[i] = c.String()
	}
	return texts
}

// String is the change for people, such as ".spec.type (NodePort, wanted ClusterIP)".
func (c Change) String() string {
	switch {
	case c.Live == "" && c.Want == "":
		return c.Path
	case c.Live == notShown || c.Want == notShown:
		return c.Path
	case c.Want == "":
		return fmt.Sprintf("%s (%s, wanted none)", c.Path, c.Live)
	case c.Live == "":
		return fmt.Sprintf("%s (none, wanted %s)", c.Path, c.Want)
	}
	return fmt.Sprintf("%s (%s, wanted %s)", c.Path, c.Live, c.Want)
}

const (
	// notShown stands for a value that is long, or may hold a secret.
	notShown = "(not shown)"
	// maxShown is the length up to which a value is shown, in bytes.
	maxShown = 80
)

// change is how one of the fields differs.
func (f fieldComparison) change(p fieldpath.Path) Change {
	c := Change{Path: p.String(), Live: shown(f.live, p), Want: shown(f.want, p)}
	if f.taken(p) {
		c.Manager, c.Time = LastHolder(f.others, fieldpath.NewSet(p))
	}
	return c
}

// taken reports whether another writer holds a field instead of quorate.
func (f fieldComparison) taken(p fieldpath.Path) bool {
	return f.lost.Has(p) || f.Foreign.Has(p) || f.left.Has(p)
}

// shown is the value of a field for people.
func shown(in *typed.TypedValue, p fieldpath.Path) string {
	value := plainValue(in.ExtractItems(fieldpath.NewSet(p)))
	for _, e := range p {
		switch v := value.(type) {
		case map[string]any:
			if e.FieldName == nil {
				return ""
			}
			value = v[*e.FieldName]
		case []any:
			if len(v) != 1 {
				return notShown
			}
			value = v[0]
		default:
			return ""
		}
	}
	switch {
	case value == nil:
		return ""
	case mayBeSecret(p) || !isFlat(value):
		return notShown
	}
	text, isText := value.(string)
	if !isText {
		data, err := json.Marshal(value)
		if err != nil {
			return notShown
		}
		text = string(data)
	}
	if len(text) > maxShown || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return notShown
	}
	return text
}

// mayBeSecret reports whether people put secrets into such a field.
func mayBeSecret(p fieldpath.Path) bool {
	for _, e := range p {
		if e.FieldName == nil {
			continue
		}
		switch *e.FieldName {
		case "env", "envFrom", "args", "command", "annotations", "httpHeaders":
			return true
		}
	}
	return false
}

// isFlat reports whether a value is one, or a list or map of such: what is in deeper ones
// is not known here.
func isFlat(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return allStrings(v)
	case []any:
		for _, inner := range v {
			if _, text := inner.(string); !text {
				return false
			}
		}
	}
	return true
}
