// Package api serves what quorate knows as JSON, under /api/v1: the status of each object,
// what is followed in Git, and events when something has changed. It only reads, decides
// nothing, and its answers hold no secret. The page for people stands on it, as does
// quorate status. What it answers is described in openapi.json, which is one of its
// answers and is generated:
//
//	go test ./cmd/quorate/internal/api -update
package api
