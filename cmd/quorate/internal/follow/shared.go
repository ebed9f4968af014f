package follow

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/reconciler/contain"
	"github.com/quorate/quorate/sources"
)

// follow applies the commit that another process has accepted, and logs each reason once why
// it does not. What was applied before stays in force.
func (p *Poller) follow(ctx context.Context, target Target) {
	p.loaded = false // another may accept one from now on
	err := contain.Run(func() error { return p.followStored(ctx, target) })
	switch {
	case ctx.Err() != nil:
	case err == nil:
		p.said.Forget("stored")
	case p.said.Changed("stored", "error", err.Error()):
		p.log.ErrorContext(ctx, "accepted commit not applied", "error", err.Error())
	}
}

// followStored applies the stored commit, if it is another one than before.
func (p *Poller) followStored(ctx context.Context, target Target) error {
	found, err := p.store.load(ctx)
	if err != nil || found == nil {
		return err
	}
	s := found.snapshot
	if p.inForce.Load() && s.Commit == p.commit() && s.Tag == p.tag() {
		return nil
	}
	if s.Tree == "" {
		if s, err = p.fetchStored(ctx, s.Commit); err != nil {
			return err
		}
		s.Signer, s.Tag = found.snapshot.Signer, found.snapshot.Tag
	}
	p.accepted = found
	again, set := p.parse(s, Approval{})
	p.apply(again, set, target, newsFollowed)
	p.accepted = &again
	return nil
}

// fetchStored reads the files of a commit that are too large to be stored with it.
func (p *Poller) fetchStored(ctx context.Context, commit string) (sources.Snapshot, error) {
	s, err := p.repository.FetchAfter(ctx, sources.Trust{Applied: commit, Approved: commit})
	if err == nil && s.Commit != commit {
		err = fmt.Errorf("the repository has %s by now", s.Commit)
	}
	if err != nil {
		return s, fmt.Errorf("read the files of the accepted commit %s, which are too large to be stored: %w; what was applied before stays in force until one is accepted that is the head", commit, err)
	}
	return s, nil
}
