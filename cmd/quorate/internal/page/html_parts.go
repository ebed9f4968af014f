package page

import (
	"net/url"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/quorate/quorate/schema"
)

// href refers to an address of this server. Any other address, such as one that begins with
// javascript:, is replaced by one that leads nowhere. Every link is made by it: gomponents
// escapes the text of an attribute, but lets every address pass.
func href(address string) Node {
	local := strings.HasPrefix(address, "#") || strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//")
	u, err := url.Parse(address)
	if !local || err != nil {
		return Href("#") //nolint:forbidigo // constant
	}
	return Href(u.String()) //nolint:forbidigo // checked above
}

// section is a region of a page under a heading, by which screen readers name it.
func section(id string, heading Node, content ...Node) Node {
	return Section(Aria("labelledby", id), H2(ID(id), heading), Group(content))
}

// fact is a term with its value in a Dl.
func fact(term string, value ...Node) Node {
	return Div(Dt(Text(term)), Dd(value...))
}

// acceptance are the facts why a commit was accepted, where they are known.
func acceptance(a schema.Acceptance) Node {
	return Group{
		If(a.Signer != "", fact("Signed with", Text(a.Signer))),
		If(a.Tag != "", fact("Tag", Code(Text(a.Tag)), optional(", signed with ", a.TagSigner))),
		If(a.Approval != "", fact("Approved", Code(Text(a.Approval)), Text(", "+a.ApprovedBy))),
	}
}

// optional is a text after its prefix, or nothing where the text is empty.
func optional(prefix, text string) Node {
	return If(text != "", Text(prefix+text))
}

// muted is a text of less weight.
func muted(content ...Node) Node {
	return Span(Class("sum"), Group(content))
}

// bullets is a list of texts.
func bullets(texts []string) Node {
	return Ul(Map(texts, func(text string) Node { return Li(Text(text)) }))
}

// step is a step of a plan in an Ol.
func step(action, reason, undo string) Node {
	return Li(Strong(Text(action)), Text(": "+reason), If(undo != "", Group{Br(), muted(Text("Undo: " + undo))}))
}

// phase is the phase of an object in its color.
func phase(p schema.Phase) Node {
	return Span(Class("phase "+strings.ToLower(string(p))), Text(string(p)))
}

// timestamp is a time of RFC 3339 for machines and for people; any other text stands as it is.
func timestamp(text string) Node {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Text(text)
	}
	at = at.UTC()
	return Time(DateTime(at.Format(time.RFC3339)), Text(at.Format("2006-01-02 15:04 UTC")))
}

// timestampOr is a time, or another text where there is no time.
func timestampOr(text, otherwise string) Node {
	if text == "" {
		return Text(otherwise)
	}
	return timestamp(text)
}

// table is a table. The roles say what the elements are even where the style sheet makes
// blocks of them, on a phone.
func table(caption Node, columns []column, rows Group) Node {
	return Table(
		Role("table"),
		Caption(caption),
		THead(Role("rowgroup"), Tr(Role("row"), Map(columns, columnHeader))),
		TBody(Role("rowgroup"), rows),
	)
}

// column is the header of a column. To sorts by it, "" where nothing does; Sorted is
// "ascending", "descending" or "".
type column struct{ Text, To, Sorted string }

// plain are columns that are not sorted by.
func plain(names ...string) []column {
	columns := make([]column, len(names))
	for i, name := range names {
		columns[i].Text = name
	}
	return columns
}

func columnHeader(c column) Node {
	name := Text(c.Text)
	if c.To != "" {
		name = A(href(c.To), name)
	}
	return Th(Role("columnheader"), Scope("col"), If(c.Sorted != "", Aria("sort", c.Sorted)), name)
}

// rowHeader is the cell that names a row.
func rowHeader(content ...Node) Node {
	return Th(Role("rowheader"), Scope("row"), Group(content))
}

// cell is a cell. A phone shows the name of its column beside it.
func cell(column string, content ...Node) Node {
	return Td(Role("cell"), Data("label", column), Group(content))
}
