// Package page serves what quorate knows as pages for people: the fleet, one object, and
// Git. It only reads, and needs no build step: a style sheet and a small script are embedded.
// Every page is whole without the script, which only asks for it again when something has
// changed.
//
// The HTML of each page is a Go function in html_*.go, of elements by gomponents, which escapes
// all texts and attributes. html/template is not used: as it calls methods by names that the
// linker cannot know, the linker would keep every exported method of the program, a third of
// the binary (TestLinkerDropsUnusedMethods).
package page
