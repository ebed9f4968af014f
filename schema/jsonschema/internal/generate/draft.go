package generate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/quorate/quorate/schema"
)

// draft is JSON Schema draft-07, as far as it is used here. Next to a $ref are
// only words that describe: a validator of this draft passes over them, and
// editors show them.
type draft struct {
	Schema      string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Ref         string `json:"$ref,omitempty"`
	Type        any    `json:"type,omitempty"`
	Const       string `json:"const,omitempty"`
	Enum        []any  `json:"enum,omitempty"`
	// Properties are drafts, or false for one that must not be there.
	// EnumDescriptions, PatternMessage and ErrorMessage are words of editors.
	EnumDescriptions     []string       `json:"markdownEnumDescriptions,omitempty"`
	PatternMessage       string         `json:"patternErrorMessage,omitempty"`
	ErrorMessage         string         `json:"errorMessage,omitempty"`
	Pattern              string         `json:"pattern,omitempty"`
	Format               string         `json:"format,omitempty"`
	MaxLength            *int64         `json:"maxLength,omitempty"`
	Minimum              *int64         `json:"minimum,omitempty"`
	ExclusiveMinimum     *int64         `json:"exclusiveMinimum,omitempty"`
	Maximum              *int64         `json:"maximum,omitempty"`
	MaxItems             *int64         `json:"maxItems,omitempty"`
	MinItems             *int64         `json:"minItems,omitempty"`
	UniqueItems          bool           `json:"uniqueItems,omitempty"`
	Default              any            `json:"default,omitempty"`
	Examples             []any          `json:"examples,omitempty"`
	Items                *draft         `json:"items,omitempty"`
	Required             []string       `json:"required,omitempty"`
	Properties           map[string]any `json:"properties,omitempty"`
	AdditionalProperties any            `json:"additionalProperties,omitempty"`
	PropertyNames        *draft         `json:"propertyNames,omitempty"`
	AllOf                []*draft       `json:"allOf,omitempty"`
	Not                  *draft         `json:"not,omitempty"`
	If                   *draft         `json:"if,omitempty"`
	Then                 *draft         `json:"then,omitempty"`
	Else                 *draft         `json:"else,omitempty"`
	// Dependencies are fields that need other fields.
	Dependencies map[string][]string `json:"dependencies,omitempty"`
	Definitions  map[string]*draft   `json:"definitions,omitempty"`
}

const (
	draft07 = "http://json-schema.org/draft-07/schema#"
	refs    = "#/definitions/"
)

// Schemas are the texts of the JSON Schemas: one of each kind by its name, and
// one of all kinds by the empty name.
func (m *Model) Schemas() (map[string][]byte, error) {
	all := map[string][]byte{}
	drafts := map[string]*draft{"": m.anyKind()}
	for _, kind := range m.Kinds {
		drafts[kind.Name] = m.oneKind(kind)
	}
	for name, d := range drafts {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(d); err != nil {
			return nil, fmt.Errorf("write the schema of %q: %w", name, err)
		}
		all[name] = text.Bytes()
	}
	return all, nil
}

// oneKind is the schema of documents of one kind.
func (m *Model) oneKind(kind *Type) *draft {
	d := kind.draft()
	d.Schema, d.Title = draft07, kind.Name
	d.Definitions = map[string]*draft{}
	kind.define(d.Definitions)
	delete(d.Definitions, kind.Name)
	return d
}

// anyKind is the schema of documents of all kinds. It chooses by the kind first,
// so that an editor reports what is wrong with this kind, and not that the
// document is none of four.
func (m *Model) anyKind() *draft {
	choice := &draft{}
	d := &draft{
		Schema: draft07, Title: "quorate", Description: "A document of quorate: one of the kinds of " + schema.APIVersion + ".",
		Type: "object", Required: []string{"apiVersion", "kind"},
		Properties:  map[string]any{"apiVersion": &draft{Enum: []any{schema.APIVersion}}, "kind": choice},
		Definitions: map[string]*draft{},
	}
	for _, kind := range m.Kinds {
		kind.define(d.Definitions)
		choice.Enum = append(choice.Enum, kind.Name)
		choice.EnumDescriptions = append(choice.EnumDescriptions, kind.Doc)
		d.AllOf = append(d.AllOf, &draft{
			If:   &draft{Properties: map[string]any{"kind": &draft{Const: kind.Name}}, Required: []string{"kind"}},
			Then: &draft{Ref: refs + kind.Name},
		})
	}
	return d
}

// define adds the schema of a type, and of all that it holds.
func (t *Type) define(definitions map[string]*draft) {
	if definitions[t.Name] != nil {
		return
	}
	definitions[t.Name] = t.draft()
	for _, f := range t.Fields {
		value := &f.Value
		for value.Item != nil {
			value = value.Item
		}
		if value.Shape == Object {
			value.Type.define(definitions)
		}
	}
}

// draft is the schema of a struct. As the parser does, it takes no field that it
// does not know.
func (t *Type) draft() *draft {
	d := &draft{Description: t.Doc, Type: "object", Properties: map[string]any{}, AdditionalProperties: false, AllOf: rules()[t.Name]}
	for _, f := range t.Fields {
		d.Properties[f.Name] = f.draft()
		if f.Required {
			d.Required = append(d.Required, f.Name)
		}
	}
	if isKind := d.Properties["kind"] != nil && d.Properties["metadata"] != nil; isKind {
		d.Properties["apiVersion"] = &draft{Description: "The version of the file format.", Const: schema.APIVersion}
		d.Properties["kind"] = &draft{Description: "The kind of the document.", Const: t.Name}
		d.Required = append([]string{"apiVersion", "kind"}, d.Required...)
	}
	return d
}

// draft is the schema of a field.
func (f *Field) draft() *draft {
	d := f.Value.draft(f.Limits)
	d.Description, d.Default = f.Doc, f.Default
	if f.Example != nil {
		d.Examples = []any{f.Example}
	}
	return d
}

// draft is the schema of a value within its limits.
func (v *Value) draft(limits Limits) *draft {
	d := &draft{}
	switch v.Shape {
	case Object:
		d.Ref = refs + v.Type.Name
	case Map:
		return v.mapDraft(limits)
	case List:
		d.Type, d.MaxItems, d.UniqueItems = "array", limits.MaxItems, limits.Unique
		d.Items = v.Item.draft(limits)
	case Text:
		v.text(d, limits)
	case Integer, Boolean:
		d.Type, d.Minimum, d.Maximum = string(v.Shape), limits.Minimum, limits.Maximum
	case IntOrString:
		d.Type = []string{"integer", "string"}
	case Quantity:
		v.quantity(d, limits)
	case Duration:
		d.Type = "string"
		d.form(durationForm())
	case Time:
		d.Type, d.Format = "string", "date-time"
	}
	return d
}

// text is the schema of a text.
func (v *Value) text(d *draft, limits Limits) {
	d.Type = "string"
	d.form(forms()[limits.Form])
	if limits.MaxLength != nil {
		d.MaxLength = limits.MaxLength
	}
	for _, choice := range v.Choices {
		d.Enum = append(d.Enum, choice.Value)
		if choice.Doc != "" {
			d.EnumDescriptions = append(d.EnumDescriptions, choice.Doc)
		}
	}
}

// quantity is the schema of an amount, which may be a plain number, too.
func (v *Value) quantity(d *draft, limits Limits) {
	d.Type = []string{"string", "number"}
	d.form(quantityForm())
	zero := int64(0)
	if limits.Positive {
		d.ExclusiveMinimum = &zero
		return
	}
	d.Minimum = &zero
}

// mapDraft is the schema of a mapping whose keys the author chooses.
func (v *Value) mapDraft(limits Limits) *draft {
	f := forms()[limits.Form]
	value := v.Item.draft(Limits{})
	if f.pattern != "" {
		value.form(f)
	}
	d := &draft{Type: "object", AdditionalProperties: value}
	if f.keys != "" {
		d.PropertyNames = &draft{Pattern: f.keys, PatternMessage: f.remedy}
	}
	if f.notKeys != "" {
		d.PropertyNames.Not = &draft{Pattern: f.notKeys}
	}
	return d
}

// form adds how a text is written.
func (d *draft) form(f form) {
	d.Pattern, d.PatternMessage = f.pattern, f.remedy
	if f.longest > 0 {
		d.MaxLength = &f.longest
	}
}
