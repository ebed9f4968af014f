package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/quorate/quorate/cmd/quorate/internal/daemon"
	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/reconciler/preview"
	"github.com/quorate/quorate/sources"
)

// compare plans the way from one revision to another, without any cluster.
func (f *planFlags) compare(ctx context.Context, paths []string) (*preview.Report, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	parser, err := f.bounds.parser() // most files are in both revisions
	if err != nil {
		return nil, err
	}
	base, err := sources.ReadRevision(ctx, paths, f.base, sources.Limits{})
	if err != nil {
		return nil, err
	}
	head, err := f.readHead(ctx, paths)
	if err != nil {
		return nil, err
	}
	before, after := follow.Parse(parser, base), follow.Parse(parser, head)
	return preview.Offline(preview.Revision{Set: before, Commit: base.Commit}, preview.Revision{Set: after, Commit: head.Commit}, daemon.PreviewOptions(f.kube.options))
}

// readHead reads the revision to compare with, or else the files on disk.
func (f *planFlags) readHead(ctx context.Context, paths []string) (sources.Snapshot, error) {
	if f.head == "" {
		return sources.ReadPaths(ctx, paths, sources.Limits{})
	}
	s, err := sources.ReadRevision(ctx, paths, f.head, sources.Limits{})
	if err == nil && s.Tree == "" {
		err = fmt.Errorf("revision %s has no %s: quorate run would change nothing, so nothing is planned; name a path that exists", f.head, strings.Join(paths, ", "))
	}
	return s, err
}
