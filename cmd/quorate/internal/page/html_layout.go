package page

import (
	"strconv"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// frame is what the layout shows around the content of each page.
type frame struct {
	// Title of the page, and Here the path of its entry in the navigation.
	Title, Here string
	// Watch is which changes have the page asked for again: "all", "git", or the name of
	// a namespace with a slash behind it.
	Watch string
	// Held is whether Git holds a commit, which every page says.
	Held bool
	// Partial is whether some object was not reconciled yet.
	Partial bool
	// Again has a browser without the script ask again after some seconds; 0 for never.
	Again int
}

// layout is a whole page. What has the attribute data-live is replaced by the script when
// it has changed.
func (p *pages) layout(f frame, content Node) Node {
	return Doctype(HTML(
		Lang("en"),
		Head(
			Meta(Charset("utf-8")),
			Meta(Name("viewport"), Content("width=device-width, initial-scale=1")),
			Meta(Name("color-scheme"), Content("light dark")),
			If(f.Again > 0, Meta(Attr("http-equiv", "refresh"), Content(strconv.Itoa(f.Again)))),
			TitleEl(Text(f.Title+" · quorate")),
			Link(Rel("icon"), href(p.address("/static/icon.svg")), Type("image/svg+xml")),
			Link(Rel("stylesheet"), href(p.address("/static/page.css"))),
			Script(Src(p.address("/static/page.js")), Defer()),
		),
		Body(
			Data("watch", f.Watch),
			A(Class("skip"), href("#main"), Text("Skip to content")),
			Header(
				Nav(Aria("label", "Pages"), Ul(
					entry(f, "/", "quorate", Class("brand")),
					entry(f, "/git", "Git"),
					entry(f, "/pulls", "Pull requests"),
					entry(f, "/api/v1/openapi.json", "API"),
				)),
				P(ID("connection"), Role("status")),
			),
			Main(
				ID("main"), TabIndex("-1"),
				Div(
					Data("live", "notices"),
					If(f.Held, notice("stalled", Strong(Text("A commit is held.")), Text(" "), A(href("/git"), Text("Why, and how to approve it")))),
					If(f.Partial, notice("unknown", Text("Some objects were not reconciled yet, since the daemon has started."))),
				),
				H1(Text(f.Title)),
				content,
			),
		),
	))
}

// entry is a link of the navigation, marked on its own page.
func entry(f frame, path, name string, attributes ...Node) Node {
	return Li(A(Group(attributes), href(path), If(f.Here == path, Aria("current", "page")), Text(name)))
}

// notice is a paragraph that people should not miss, in the color of a phase.
func notice(color string, content ...Node) Node {
	return P(Class("notice "+color), Group(content))
}
