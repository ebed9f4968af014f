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
		"somebody":                         {Prose, "@ada", "`@ada`"},
		"somebody in a sentence":           {Prose, "ask (@ada), ada@example.com; now.", "ask (`@ada`), `ada@example.com`; now."},
		"somebody in HTML":                 {HTML, "@ada #1", "@<b></b>ada #<b></b>1"},
		"somebody in code in HTML":         {Tag, "@ada", "<code>@<b></b>ada</code>"},
		"an issue, a request, a snippet":   {Prose, "#1 !2 $3 ~a %b", "`#1` `!2` `$3` `~a` `%b`"},
		"signs that name nothing":          {Prose, "85% @ # ! a ~ $ x!", `85% @ \# \! a \~ \$ x\!`},
		"an address":                       {Prose, "see https://e/x_y?a=b, HTTP://e www.e.", "see `https://e/x_y?a=b`, `HTTP://e` `www.e`."},
		"an image":                         {Prose, "etcd:v3.6@sha256:0a_b is", "`etcd:v3.6@sha256:0a_b` is"},
		"a command":                        {Prose, "run `etcdctl alarm disarm --x=a_b`; then", "run `etcdctl alarm disarm --x=a_b`; then"},
		"a command with a column":          {Prose, "`a | b_c`", "`a `\\|` b_c`"},
		"a column in a name":               {Prose, "@a|@b", "`@a`\\|`@b`"},
		"two spans that touch":             {Prose, "`a`@b", "`a` `@b`"},
		"a backtick alone":                 {Prose, "a ` b_c", "a \\` b\\_c"},
		"backticks around nothing":         {Prose, "`` a_b ``", "\\`\\` a\\_b \\`\\`"},
		"a backtick in a name":             {Prose, "@a`b", "``@a`b``"},
		"a link":                           {Prose, "[a](b) ![c](d)", "\\[a\\](b) \\!\\[c\\](d)"},
		"marks":                            {Prose, "**a** _b_ `c` \\d", "\\*\\*a\\*\\* \\_b\\_ `c` \\\\d"},
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

// 237: whatever the text, nothing in it is invisible, and no column ends in it.
func TestNothingInvisibleIsCopied(t *testing.T) {
	parts := []string{"@ada", "`", "|", "https://e", "#1", " ", "a_b", "\\", "(", ")", ",", "``", "x", "!", "<b>"}
	for i := range 20000 {
		text := ""
		for n := i; n > 0; n /= len(parts) {
			text += parts[n%len(parts)]
		}
		got := Prose(text)
		if strings.ContainsAny(got, "\u200b\u200c\u200d\ufeff") {
			t.Fatalf("%q became %q, with an invisible character", text, got)
		}
		if bars := strings.Count(got, "|"); bars != strings.Count(got, `\|`) || bars != strings.Count(text, "|") {
			t.Fatalf("%q became %q, with another number of columns", text, got)
		}
	}
}
