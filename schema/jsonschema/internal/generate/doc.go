// Package generate turns the Go types of the file format into JSON Schema and
// into the reference page. It runs in tests only: the program carries what it
// wrote.
//
//	types, tags, doc comments ─┐
//	Default, on small objects ─┼→ Model ─┬→ Schemas   JSON Schema, draft-07
//	the corpus, for examples  ─┘         └→ Reference Markdown
//
// A library would reflect the types as well, but the known one writes a later
// draft than editors and CI tools understand best, cuts patterns at commas, and
// does not know defaults that a function fills.
package generate
