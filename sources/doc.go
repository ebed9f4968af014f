// Package sources reads the desired state: the YAML files under one path of
// one branch, tag or commit of a Git repository, or of local files for a check
// without Git.
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
//   - No secret leaves. Credentials come from files or a Secret, are read for each
//     fetch so that a rotated one is picked up, are sent over https and ssh only,
//     and appear in no error.
//
// There is no checkout, and nothing of the repository is written to disk: the
// files are read from Git's objects, so a symbolic link in the repository has
// nothing to point at.
//
// Servers are asked in Git's protocol 2, in which they name only the
// reference that is asked for, and in protocol 0 where they know no other, as Azure
// DevOps does. A poll of a branch that has not moved is one request over HTTP. A
// redirect is followed for one fetch: the next one asks the configured URL again.
//
// A Publisher writes: files as one commit, onto its own branch, which carries its
// mark, and onto no other. A push names the commit that it replaces, so that
// no other writer's commit is overwritten.
package sources
