// Package sources reads what is wished for: the YAML files under one path of
// one branch of a Git repository, or of local files for a check without Git.
//
// It is the only package that knows Git. Its answer is a Snapshot, a value with
// no ties to the repository it came from, so that everything behind it can be
// tested and replayed without one.
//
// Three promises hold for every read:
//
//   - Absence is never emptiness. A repository, branch or path that is not
//     there, or may not be read, is an error. Only a path that exists and holds
//     no YAML gives a Snapshot without files.
//   - A repository cannot exhaust the process. Every size is checked before the
//     bytes it announces are read, and the context bounds every call.
//   - No secret leaves. Credentials come from files, are read for each fetch so
//     that a rotated one is picked up, and appear in no error.
//
// Nothing is written to disk and there is no checkout: the files are read from
// Git's objects, so a symbolic link in the repository has nothing to point at.
package sources
