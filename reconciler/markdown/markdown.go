// Package markdown puts foreign texts, such as file names, values
// of fields and messages of servers, into Markdown for a code host: they stay on one
// line, break no table, mention no user, and are copied as they are.
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

// HTML is a text in HTML. Not every code host knows that a name in it is no mention: an
// empty element cuts the sign off from what it names, and is not copied with them.
func HTML(text string) string {
	return strings.NewReplacer("@", "@<b></b>", "#", "#<b></b>", "&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;").Replace(Plain(text, MessageRunes))
}

// Prose is a text as running text, in a table or outside: every character that
// Markdown would read is escaped. What stands between backticks, and a word with a sign
// that would name a person, an issue or an address, is a code span: what people copy
// from it has no invisible character in it.
func Prose(text string) string {
	var b strings.Builder
	span := func(text string) {
		// A bar would end a column, and within code nothing escapes it everywhere.
		for i, part := range strings.Split(text, "|") {
			if i > 0 {
				b.WriteString(`\|`)
			}
			if part == "" {
				continue
			}
			if strings.HasSuffix(b.String(), "`") {
				b.WriteString(" ") // else two fences would be one
			}
			b.WriteString(Code(part))
		}
	}
	for i, part := range quoted(Plain(text, MessageRunes)) {
		if i%2 == 1 {
			span(part)
			continue
		}
		eachWord(part, func(word string, code bool) {
			switch {
			case code:
				span(word)
			case strings.HasPrefix(word, "`") && strings.HasSuffix(b.String(), "`"):
				b.WriteString(" " + escape(word))
			default:
				b.WriteString(escape(word))
			}
		})
	}
	return b.String()
}

func escape(text string) string {
	return strings.NewReplacer("#", `\#`, "!", `\!`, "~", `\~`, "$", `\$`, "&", "&amp;", "<", "&lt;", ">", "&gt;",
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`,
	).Replace(text)
}

// quoted are the parts of a text outside and, at each odd index, between single
// backticks. A backtick that is alone, or beside another one, is a character.
func quoted(text string) []string {
	parts := strings.Split(text, "`")
	if len(parts)%2 == 0 || len(parts) == 1 {
		return []string{text}
	}
	for i, part := range parts {
		if i > 0 && i < len(parts)-1 && strings.TrimSpace(part) == "" {
			return []string{text}
		}
	}
	return parts
}

// eachWord calls do for each part of a text, in order: with code for what a code host
// would take for a reference, without what surrounds it.
func eachWord(text string, do func(part string, code bool)) {
	for text != "" {
		word, space := text, ""
		if end := strings.IndexByte(text, ' '); end >= 0 {
			word, space = text[:end], " "
		}
		text = text[len(word)+len(space):]
		core := strings.TrimRight(strings.TrimLeft(word, "(\"'"), ",;:.!?)\"'")
		if !refers(core) {
			do(word+space, false)
			continue
		}
		before, after, _ := strings.Cut(word, core)
		if before != "" {
			do(before, false)
		}
		do(core, true)
		if after+space != "" {
			do(after+space, false)
		}
	}
}

// refers reports whether a code host may make a person, an issue, a merge request, a
// label, a snippet, a milestone or an address of a word.
func refers(word string) bool {
	lower := strings.ToLower(word)
	if strings.Contains(lower, "http://") || strings.Contains(lower, "https://") || strings.Contains(lower, "www.") {
		return true
	}
	for i, r := range word {
		if strings.ContainsRune("@#!~$%", r) && i+1 < len(word) && isName(word[i+1]) {
			return true
		}
	}
	return false
}

// isName reports whether a name, a number or a quoted name may begin with a byte.
func isName(c byte) bool {
	return c >= 0x80 || c == '_' || c == '-' || c == '"' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
