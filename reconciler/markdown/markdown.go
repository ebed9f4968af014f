// Package markdown puts foreign texts, such as file names, values
// of fields and messages of servers, into Markdown for a code host: they stay on one
// line, break no table, and mention no user.
package markdown

import (
	"strconv"
	"strings"
)

// The longest text that is shown of a value and of a message, in runes.
const (
	ValueRunes   = 120
	MessageRunes = 1000
)

// Plain is a text on one line of at most so many runes, without anything that moves a
// cursor or turns the writing direction. It is fit for a terminal, too.
func Plain(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		n++
		if n > most {
			return b.String() + "…"
		}
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			r = ' '
		case !strconv.IsPrint(r):
			r = '\uFFFD'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Code is a text as a code span: nothing in it is read as Markdown, as HTML or as
// the name of a user.
func Code(text string) string {
	text = Plain(text, MessageRunes)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || text == "" {
		text = " " + text + " "
	}
	return fence + text + fence
}

// Cell is a code span in a table, whose columns end at every bar.
func Cell(text string) string { return strings.ReplaceAll(Code(Plain(text, ValueRunes)), "|", `\|`) }

// Tag is a code span where Markdown is not read.
func Tag(text string) string { return "<code>" + HTML(text) + "</code>" }

// HTML is a text in HTML. Not every code host knows that a name in it is no mention,
// so that is cut there, too.
func HTML(text string) string {
	return strings.NewReplacer("@", "@\u200b", "#", "#\u200b", "&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;").Replace(Plain(text, MessageRunes))
}

// Prose is a text as running text, in a table or outside: every character that
// Markdown would read is escaped, and a sign that would name a person, an issue or an
// address is cut off from what it names by a space without width.
func Prose(text string) string {
	const cut = "\u200b"
	return strings.NewReplacer("@", "@"+cut, "#", `\#`+cut, "!", `\!`+cut, "~", `\~`+cut, "$", `\$`+cut, "%", "%"+cut,
		"http://", "http:"+cut+"//", "https://", "https:"+cut+"//", "www.", "www"+cut+".",
		"&", "&amp;", "<", "&lt;", ">", "&gt;",
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`,
	).Replace(Plain(text, MessageRunes))
}
