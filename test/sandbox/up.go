package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// up brings up whatever of the sandbox is not up, and builds more before that. The
// nodes get the image of every etcd release that is built.
func (s *sandbox) up(ctx context.Context, more ...artifact) error {
	if err := s.mustBeOfRelease(); err != nil {
		return err
	}
	if err := s.preflight(ctx); err != nil {
		return err
	}
	if err := s.installPackages(ctx); err != nil {
		return err
	}
	if err := s.build(ctx, append(s.core(), more...)); err != nil {
		return err
	}
	for _, image := range s.images() {
		if _, err := s.imageArchive(image); err != nil {
			return err
		}
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"setting up certificates, settings and network", s.foundationUp},
		{"starting the control plane", s.controlPlaneUp},
		{"starting the nodes", s.nodesUp},
		{"awaiting DNS, volumes and a first pod", s.awaitWorking},
	} {
		if err := s.progress.step(step.what, func() error { return step.do(ctx) }); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.out, "export KUBECONFIG=%s\n", s.kubeconfig("admin"))
	return nil
}

func (s *sandbox) foundationUp(ctx context.Context) error {
	if err := s.makeCertificates(); err != nil {
		return err
	}
	if err := s.saveSettings(); err != nil {
		return err
	}
	return s.networkUp(ctx)
}

func (s *sandbox) nodesUp(ctx context.Context) error {
	var all errgroup.Group
	for _, n := range s.nodes() {
		all.Go(func() error {
			if err := n.up(ctx); err != nil {
				return err
			}
			return n.awaitReady(ctx)
		})
	}
	return all.Wait()
}
