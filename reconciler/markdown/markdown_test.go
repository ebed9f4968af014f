package markdown

import (
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	for name, tc := range map[string]struct {
		as         func(string) string
		text, want string
	}{
		"a value":                          {Code, "3.6.16", "`3.6.16`"},
		"nothing":                          {Code, "", "`  `"},
		"a fence inside":                   {Code, "a `b` c", "``a `b` c``"},
		"a fence at the edge":              {Code, "`rm`", "`` `rm` ``"},
		"two lines":                        {Code, "a\n# b\r\n\tc", "`a # b   c`"},
		"the end of a line in another way": {Code, "a\u2028b\x1b[2J\u202ec", "`a\uFFFDb\uFFFD[2J\uFFFDc`"},
		"a column":                         {Cell, "a|b", "`a\\|b`"},
		"a tag in code":                    {Code, "<b>", "`<b>`"},
		"code where only HTML is read":     {Tag, "a<b>&\"", "<code>a&lt;b&gt;&amp;&#34;</code>"},
		"somebody":                         {Prose, "@ada", "@\u200bada"},
		"somebody in HTML":                 {HTML, "@ada #1", "@\u200bada #\u200b1"},
		"an issue, a request, a snippet":   {Prose, "#1 !2 $3 ~a %b", "\\#\u200b1 \\!\u200b2 \\$\u200b3 \\~\u200ba %\u200bb"},
		"an address":                       {Prose, "https://e http://e www.e", "https:\u200b//e http:\u200b//e www\u200b.e"},
		"a link":                           {Prose, "[a](b) ![c](d)", "\\[a\\](b) \\!\u200b\\[c\\](d)"},
		"marks":                            {Prose, "**a** _b_ `c` \\d", "\\*\\*a\\*\\* \\_b\\_ \\`c\\` \\\\d"},
		"a column in prose":                {Prose, "a|b", "a\\|b"},
		"HTML in prose":                    {Prose, "<img src=x> &amp;", "&lt;img src=x&gt; &amp;amp;"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.as(tc.text); got != tc.want {
				t.Errorf("%q became %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("ä", 2*MessageRunes)
	for name, tc := range map[string]struct {
		got  string
		most int
	}{
		"message": {Prose(long), MessageRunes},
		"code":    {Code(long), MessageRunes},
		"HTML":    {HTML(long), MessageRunes},
		"cell":    {Cell(long), ValueRunes},
	} {
		if n := strings.Count(tc.got, "ä"); n != tc.most || !strings.Contains(tc.got, "…") {
			t.Errorf("%s: %d of %d runes", name, n, tc.most)
		}
	}
	if got := Plain("äöü", 3); got != "äöü" {
		t.Errorf("a text that fits became %q", got)
	}
}
