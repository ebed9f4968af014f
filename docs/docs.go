// Package docs has the pages of this directory, for quorate docs: a binary has the pages of its
// own release, and needs no network to show them.
package docs

import (
	"embed"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed *.md
var files embed.FS

// Page is one page of the documentation.
type Page struct {
	// Name is that of the file, without .md; README is the index.
	Name string
	// Text is the page, in Markdown.
	Text string
}

// Pages are all pages, by name. An error would be one of the build.
func Pages() ([]Page, error) {
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		return nil, err
	}
	var pages []Page
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		pages = append(pages, Page{strings.TrimSuffix(name, ".md"), string(text)})
	}
	return pages, nil
}

// Says is the first sentence of the page after its title, as plain text: what the page is for.
func (p Page) Says() string {
	_, text, _ := strings.Cut("\n"+p.Text, "\n# ")
	_, text, _ = strings.Cut(text, "\n")
	paragraph, _, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	sentence := regexp.MustCompile(`^.*?\.(\s|$)`).FindString(strings.Join(strings.Fields(paragraph), " "))
	if sentence == "" {
		sentence = strings.Join(strings.Fields(paragraph), " ")
	}
	plain := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(sentence, "$1")
	return strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(plain, "`", "")), ":")
}
