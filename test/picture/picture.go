// Package picture draws an upgrade as it was: the commit, each step with its reason, when each member
// was away, and what clients saw meanwhile. `make picture` draws the one of the README.
package picture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"
)

// Upgrade is what was seen of one upgrade. Times are counted from its commit.
type Upgrade struct {
	// Cluster is NAMESPACE/NAME, From and To the versions of etcd.
	Cluster, From, To string
	// Commit is the short hash of the commit, Subject its first line.
	Commit, Subject string
	Took            time.Duration
	Steps           []Step
	Members         []Member
	// Writes is how many a client made meanwhile, Failed how many of them got an error, and Pause the longest time
	// between two that were acknowledged. None that was acknowledged may be lost.
	Writes, Failed int
	Pause          time.Duration
	// Status is the first line of quorate status at the end.
	Status string
}

// Step is one step of the plan, as it began.
type Step struct {
	At             time.Duration
	Action, Reason string
}

// Member is one member, and the only time that it was away.
type Member struct {
	Name     string
	Away, At time.Duration
}

// Sizes in pixels, and how many letters of a reason fit into a line.
const (
	width    = 900
	margin   = 24
	line     = 21
	bars     = 110
	reasonAt = 372
	letters  = 69
)

// Colours have enough contrast on white, and the card is white in a dark page, too.
const (
	ink, faint      = "#1f2328", "#59636e"
	before, away    = "#8c959f", "#d1242f"
	after, added    = "#1a7f37", "#1a7f37"
	card, removed   = "#ffffff", "#d1242f"
	border, heading = "#d1d9e0", "#0969da"
)

// canvas is a drawing that grows downwards.
type canvas struct {
	body strings.Builder
	y    int
}

func (c *canvas) text(x int, colour, style, text string) {
	fmt.Fprintf(&c.body, `<text x="%d" y="%d" fill="%s"%s>%s</text>`+"\n", x, c.y, colour, style, html.EscapeString(text))
}

func (c *canvas) bar(from, to int, colour string) {
	fmt.Fprintf(&c.body, `<rect x="%d" y="%d" width="%d" height="12" rx="2" fill="%s"/>`+"\n", from, c.y-10, max(to-from, 1), colour)
}

func (c *canvas) head(text string) {
	c.y += 34
	c.text(margin, heading, bold, text)
	c.y += 4
}

const bold = ` font-weight="600"`

// Draw is the upgrade as SVG. It holds what it was drawn from, for Read.
func Draw(u Upgrade) ([]byte, error) {
	data, err := json.Marshal(u)
	if err != nil {
		return nil, err
	}
	c := &canvas{y: 10}
	c.head("A commit")
	for _, l := range []struct{ colour, text string }{
		{ink, "git commit " + u.Commit + " " + u.Subject}, {removed, `-  version: "` + u.From + `"`}, {added, `+  version: "` + u.To + `"`},
	} {
		c.y += line
		c.text(margin, l.colour, "", l.text)
	}
	c.head("is planned, and applied step by step, each with its reason")
	for _, s := range u.Steps {
		c.y += line
		c.text(margin+52, faint, ` text-anchor="end"`, fmt.Sprintf("%.1f s", s.At.Seconds()))
		c.text(margin+70, ink, bold, s.Action)
		c.text(reasonAt, faint, "", cut(s.Reason, letters))
	}
	c.head("one member at a time, while clients write")
	scale := func(at time.Duration) int {
		return bars + int(float64(width-margin-bars)*at.Seconds()/u.Took.Seconds())
	}
	for _, m := range u.Members {
		c.y += line
		c.text(margin, ink, "", m.Name)
		c.bar(bars, scale(m.At), before)
		c.bar(scale(m.At), scale(m.At+m.Away), away)
		c.bar(scale(m.At+m.Away), width-margin, after)
	}
	c.y += line
	c.text(bars, before, "", "■ "+u.From)
	c.text(bars+90, away, "", "■ restarts")
	c.text(bars+190, after, "", "■ "+u.To)
	c.text(bars+272, faint, "", fmt.Sprintf("%.0f s, %d writes, %d of them failed, none lost, longest pause %d ms", u.Took.Seconds(), u.Writes, u.Failed, u.Pause.Milliseconds()))
	c.head("and what quorate status says")
	c.y += line
	c.text(margin, added, bold, u.Status)
	height := c.y + margin
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="12">
<title>%s</title>
<metadata>%s</metadata>
<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>
%s</svg>
`, width, height, width, height, html.EscapeString("A commit upgrades "+u.Cluster+" from etcd "+u.From+" to "+u.To), html.EscapeString(string(data)), width-1, height-1, card, border, c.body.String()), nil
}

// cut is the beginning of a text, with … where it is longer.
func cut(text string, letters int) string {
	if r := []rune(text); len(r) > letters {
		return strings.TrimSpace(string(r[:letters-1])) + "…"
	}
	return text
}

// Read is what a picture was drawn from.
func Read(svg []byte) (u Upgrade, err error) {
	_, rest, _ := bytes.Cut(svg, []byte("<metadata>"))
	data, _, found := bytes.Cut(rest, []byte("</metadata>"))
	if !found {
		return u, fmt.Errorf("read a picture of an upgrade: it has no metadata")
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(string(data))), &u); err != nil {
		return u, fmt.Errorf("read a picture of an upgrade: %w", err)
	}
	return u, nil
}
