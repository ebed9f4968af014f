// Package publish is Git out: the status branch, commit statuses, and comments on pull
// requests. Here belongs what is written for people about what is known. It decides
// nothing about clusters, and nothing waits for it: whatever fails here is tried again.
// How a push or a forge's API works is in package sources, what a change would do in
// package preview.
package publish
