package sources

import (
	"context"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
)

// reference is which commit of a repository is followed.
type reference struct {
	branch, tag string
	versions    *semver.Constraints // of tags
	text        string              // of versions
	commit      plumbing.Hash
}

const tagPrefix = "refs/tags/"

// newReference wants exactly one of the ways to name a commit.
func newReference(cfg Config) (reference, error) {
	var given []string
	for _, text := range []string{cfg.Branch, cfg.Tag, cfg.Semver, cfg.Commit} {
		if text != "" {
			given = append(given, text)
		}
	}
	switch {
	case len(given) > 1:
		return reference{}, fmt.Errorf("what to follow: %s are given; give one branch, tag, range of versions or commit", strings.Join(given, " and "))
	case cfg.Commit != "":
		if !IsHash(cfg.Commit) {
			return reference{}, fmt.Errorf("commit %q: it is not a full hash; give all 40 digits", cfg.Commit)
		}
		return reference{commit: plumbing.NewHash(cfg.Commit)}, nil
	case cfg.Semver != "":
		versions, err := semver.NewConstraint(cfg.Semver)
		if err != nil {
			return reference{}, fmt.Errorf("range of versions %q: it cannot be parsed; give one such as \">=1.2.0 <2.0.0\" or \"1.x\"", cfg.Semver)
		}
		return reference{versions: versions, text: cfg.Semver}, nil
	case cfg.Tag != "":
		return reference{tag: cfg.Tag}, validName("tag", cfg.Tag, plumbing.NewTagReferenceName(cfg.Tag), "v1.0.0")
	}
	return reference{branch: cfg.Branch}, validName("branch", cfg.Branch, plumbing.NewBranchReferenceName(cfg.Branch), "main")
}

func validName(kind, name string, full plumbing.ReferenceName, such string) error {
	if full.Validate() != nil {
		return fmt.Errorf("%s %q: it is not a valid name; give a name such as %s", kind, name, such)
	}
	return nil
}

// String is the form for errors and logs.
func (r reference) String() string {
	switch {
	case !r.commit.IsZero():
		return "commit " + r.commit.String()
	case r.versions != nil:
		return "tags " + r.text
	case r.tag != "":
		return "tag " + r.tag
	}
	return "branch " + r.branch
}

// source names the reference for Source. What should change from release to
// release is not part of the name: a cluster keeps its owner over it.
func (r reference) source() string {
	switch {
	case !r.commit.IsZero():
		return "(commit)"
	case r.versions != nil:
		return "(versions)"
	case r.tag != "":
		return "(tag)"
	}
	return r.branch
}

// isFixed reports whether a person has named the commit itself.
func (r reference) isFixed() bool { return !r.commit.IsZero() }

// named is what a reference means now.
type named struct {
	target
	tag string // without refs/tags/; "" of a branch or a commit
}

// head is what the reference means now.
func (r reference) head(ctx context.Context, s session) (named, error) {
	switch {
	case r.isFixed():
		return named{target: target{r.commit, r.commit}}, nil
	case r.versions != nil:
		return r.highest(ctx, s)
	}
	name := plumbing.NewBranchReferenceName(r.branch).String()
	if r.tag != "" {
		name = tagPrefix + r.tag
	}
	refs, err := s.refs(ctx, name)
	if err != nil {
		return named{}, err
	}
	if found, there := refs[name]; there {
		return named{found, r.tag}, nil
	}
	return named{}, r.gone(ctx, s)
}

// highest is the tag with the highest version in the range. Of two ways to write
// one version, v1.0.0 and 1.0.0, the first by name counts. It is the highest whether its
// signature is good or not: where it is not, the head is held. To go to the next one below
// would let whoever can spoil the newest tag keep an older version in force unnoticed.
func (r reference) highest(ctx context.Context, s session) (named, error) {
	refs, err := s.refs(ctx, tagPrefix)
	if err != nil {
		return named{}, err
	}
	var best *semver.Version
	for name := range refs {
		v, err := semver.NewVersion(strings.TrimPrefix(name, tagPrefix))
		if err != nil || !r.versions.Check(v) {
			continue
		}
		if best == nil || v.GreaterThan(best) || v.Equal(best) && v.Original() < best.Original() {
			best = v
		}
	}
	if best == nil {
		return named{}, r.gone(ctx, s)
	}
	return named{refs[tagPrefix+best.Original()], best.Original()}, nil
}

func (r reference) gone(ctx context.Context, s session) error {
	if s.isEmpty(ctx) {
		return emptyRepository()
	}
	switch {
	case r.versions != nil:
		return refGone("no tag with a version in "+r.text, "push such a tag or follow another range")
	case r.tag != "":
		return refGone("no tag "+r.tag, "push the tag again or follow another one")
	}
	return refGone("no branch "+r.branch, "push the branch again or watch another one")
}

func refGone(what, next string) *failure {
	return &failure{why: "the repository has " + what, next: next, kinds: []error{ErrBranchGone}}
}

// IsHash reports whether a text is the full hash of a commit.
func IsHash(text string) bool { return plumbing.IsHash(text) }
