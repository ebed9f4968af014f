// Package preview shows what a change would do, for its reviewers: as text,
// JSON or Markdown, of live clusters or of two commits without asking any cluster. It
// asks the planner that the daemon asks, and changes nothing.
package preview
