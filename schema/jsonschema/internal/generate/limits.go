package generate

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits are what a struct tag says about a value beyond its type:
//
//	jsonschema:"minimum=1,maximum=7"
//
//	form       one of the forms in forms.go; that of a list is its items'
//	enum       the only values, with | between them; those of a list are its items'
//	minimum    of a number
//	maximum    of a number
//	positive   a number or quantity above 0, without a value
//	maxLength  of a text, in characters
//	maxItems   of a list
//	unique     no item of a list occurs twice, without a value
//	change     what a live cluster does not take of a change, for the reference
type Limits struct {
	Form                string
	Choices             []Choice
	Minimum, Maximum    *int64
	MaxLength, MaxItems *int64
	Positive, Unique    bool
	Change              string
}

// readLimits parses a tag.
func readLimits(tag string) (Limits, error) {
	var limits Limits
	numbers := map[string]**int64{
		"minimum": &limits.Minimum, "maximum": &limits.Maximum,
		"maxLength": &limits.MaxLength, "maxItems": &limits.MaxItems,
	}
	for part := range strings.SplitSeq(tag, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch number, ok := numbers[key]; {
		case ok:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return limits, fmt.Errorf("the tag's %s: %w", key, err)
			}
			*number = &n
		case key == "positive":
			limits.Positive = true
		case key == "change":
			limits.Change = value
		case key == "unique":
			limits.Unique = true
		case key == "enum":
			for choice := range strings.SplitSeq(value, "|") {
				limits.Choices = append(limits.Choices, Choice{Value: choice})
			}
		case key == "form":
			if _, ok := forms()[value]; !ok {
				return limits, fmt.Errorf("the tag's form %q is not in forms.go", value)
			}
			limits.Form = value
		case key != "":
			return limits, fmt.Errorf("the tag's key %q is not known", key)
		}
	}
	return limits, nil
}
