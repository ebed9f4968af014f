// Package schema is quorate's file format: the kinds that a user writes into
// Git, how they are parsed, defaulted and validated.
//
// It is a pure leaf: it reads no clock, no file and no network, and imports
// none of quorate's other packages but its own release catalogue. The three
// stages are three functions, in this order:
//
//	Parse     bytes → objects, strict: an unknown field is an error
//	Default   fills what the author left out, with the safe choice
//	Validate  says everything that is wrong, at once
//
// A Parser does all three for one commit after another, and reads only what changed.
//
// Every problem carries its file, line and field path, so that a person, a CI
// annotation and an editor can all point at the same place.
package schema
