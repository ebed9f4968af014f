package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	// File is the path that was given to Parse.
	File string `json:"file"`
	// Line and Column count from 1; 0 is not known.
	Line   int `json:"line"`
	Column int `json:"column,omitempty"`
	// Object is "EtcdCluster namespace/name", as far as it could be read.
	Object string `json:"object,omitempty"`
	// Field is the path of the field, for example "spec.version".
	Field string `json:"field,omitempty"`
	// Message is one sentence: what is wrong and what to do. It never holds a
	// secret.
	Message string `json:"message"`
	// ID is the sort of problem, one of ProblemKinds.
	ID ID `json:"id,omitempty"`
	// Warning marks a problem that does not hold the object.
	Warning bool `json:"warning"`
}

// String is the form that editors and CI systems understand:
// "clusters/orders.yaml:7:3: spec.version: message".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Line > 0 && p.Column > 0 {
		fmt.Fprintf(&b, ":%d", p.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Field != "" {
		b.WriteString(p.Field)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// follows reports whether a known problem says enough: an error of the same field, or of
// what holds it or is in it, or a warning, if this is a second one of the same field.
func (p Problem) follows(known Problem) bool {
	if known.Warning {
		return p.Warning && p.Field == known.Field
	}
	return sameBranch(known.Field, p.Field)
}

// SortProblems orders by place, so that the same files give the same text. Two
// problems of one line are ordered by what they say.
func SortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Message, b.Message),
		)
	})
}
