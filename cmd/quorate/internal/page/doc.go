// Package page serves what quorate knows as pages for people: the fleet, one object, and
// Git. It only reads, and needs no build step: templates, a style sheet and a small script
// are embedded. Every page is whole without the script, which only asks for it again when
// something has changed.
package page
