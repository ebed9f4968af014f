package page

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/schema"
)

// gitPage shows what is followed in Git.
func gitPage(g api.Git) Node {
	return Div(
		Data("live", "git"),
		heldCommit(g.Held),
		section("accepted", Text("Followed"), Dl(
			fact("Source", Code(Text(g.Source))),
			fact("Follows", Text(g.Reference)),
			acceptedCommit(g.Accepted),
			fact("Last read", timestampOr(g.LastSuccess, "not yet"),
				If(g.Failures > 0, Textf("; %d reads have failed since", g.Failures))),
		)),
		section("problems", Text("Problems in files"), fileProblems(g.Problems)),
	)
}

// heldCommit says why no newer commit is accepted; nothing where none is held.
func heldCommit(held *api.Held) Node {
	if held == nil {
		return nil
	}
	heading := "Git cannot be followed"
	if held.Reason != "" {
		heading = "Held: a commit waits for approval"
	}
	return section("held", Text(heading), Class("card stalled"),
		P(Text(held.Message)),
		If(held.Commit != "", Group{
			P(Text("The accepted commit stays in force meanwhile.")),
			Dl(
				fact("Held commit", Code(Text(held.Commit))),
				If(held.Author != "", fact("By its own words", Text(held.Subject+", by "+held.Author),
					If(held.Time != "", Group{Text(", "), timestamp(held.Time)}))),
			),
		}),
		If(held.Approve != "", Group{
			P(Text("If it is what you want, approve it:")),
			Pre(Code(Text(held.Approve))),
			P(Text("If it is not, revert it in Git.")),
		}),
	)
}

// acceptedCommit are the facts of the commit in force.
func acceptedCommit(c *api.Commit) Node {
	if c == nil {
		return fact("Accepted commit", Text("none yet"))
	}
	return Group{
		fact("Accepted commit", Code(Text(c.Hash))),
		If(c.Subject != "", fact("Subject", Text(c.Subject))),
		If(c.Author != "", fact("Author", Text(c.Author))),
		If(c.Time != "", fact("Committed", timestamp(c.Time))),
		acceptance(schema.Acceptance{
			Signer: c.Signer, Tag: c.Tag, TagSigner: c.TagSigner, Approval: c.Approval, ApprovedBy: c.ApprovedBy,
		}),
	}
}

// fileProblems are the problems of files, each in one line.
func fileProblems(problems []string) Node {
	if len(problems) == 0 {
		return P(Text("There are none."))
	}
	return Ul(Class("problems"), Map(problems, func(problem string) Node { return Li(Code(Text(problem))) }))
}
