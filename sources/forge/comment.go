package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/quorate/quorate/sources"
)

// Comment makes text the one comment with a marker that the token's owner, or its
// GitHub App, has on a pull request: it changes it where it is there, and writes it
// where it is not. The text begins with the marker. What others wrote is left
// alone, whatever marker it bears.
func (c *Client) Comment(ctx context.Context, pull int, marker, text string) error {
	return c.comment(ctx, pull, marker, text, true)
}

// Amend is Comment where there is such a comment, and does nothing where there is none.
func (c *Client) Amend(ctx context.Context, pull int, marker, text string) error {
	return c.comment(ctx, pull, marker, text, false)
}

func (c *Client) comment(ctx context.Context, pull int, marker, text string, create bool) error {
	c.mu.Lock()
	last, known := c.comments[pull]
	c.mu.Unlock()
	if known && last.text == text {
		return nil
	}
	if known {
		err := c.write(ctx, pull, last.id, text)
		if !errors.Is(err, sources.ErrRepositoryNotFound) {
			return err
		}
	}
	mine, err := c.find(ctx, pull, marker)
	switch {
	case err != nil:
		return err
	case mine.id != 0 && sameText(mine.text, text):
		c.remember(pull, written{mine.id, text})
		return nil
	case mine.id == 0 && !create:
		return nil
	}
	return c.write(ctx, pull, mine.id, text)
}

// write writes a comment, or changes the one with the ID.
func (c *Client) write(ctx context.Context, pull int, id int64, text string) error {
	during := fmt.Sprintf("comment on pull request %d", pull)
	answer, err := c.api.Call(ctx, during, c.forge.write(pull, id, text))
	if err != nil {
		return err
	}
	if id == 0 {
		if id, err = readID(answer.Body); err != nil {
			return garbage(during)
		}
	}
	c.remember(pull, written{id, text})
	return nil
}

func (c *Client) remember(pull int, w written) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.comments[pull] = w
}

// find is the comment with the marker that we wrote first; its ID is 0 where there
// is none.
func (c *Client) find(ctx context.Context, pull int, marker string) (comment, error) {
	during := fmt.Sprintf("read the comments on pull request %d", pull)
	ours, err := c.authorship(ctx)
	if err != nil {
		return comment{}, err
	}
	for page := 1; page <= maxPages; page++ {
		answer, err := c.api.Call(ctx, during, sources.Request{Method: http.MethodGet, Path: c.forge.comments(pull, page)})
		if err != nil {
			return comment{}, err
		}
		found, err := c.forge.readComments(answer.Body)
		if err != nil {
			return comment{}, garbage(during)
		}
		for _, one := range found {
			if strings.HasPrefix(one.text, marker) && ours(one) {
				return one, nil
			}
		}
		if !hasNext(answer.Header) {
			break
		}
	}
	return comment{}, nil
}

// authorship tells which comments are ours: those of the token's owner, or of the
// app, whose token has no owner.
func (c *Client) authorship(ctx context.Context) (func(comment) bool, error) {
	app, err := c.api.App(ctx)
	if err != nil {
		return nil, err
	}
	if app != "" {
		return func(one comment) bool { return slices.Contains(one.apps, app) }, nil
	}
	const during = "find the token's owner"
	answer, err := c.api.Call(ctx, during, sources.Request{Method: http.MethodGet, Path: c.forge.self()})
	if err != nil {
		return nil, err
	}
	id, err := readID(answer.Body)
	if err != nil {
		return nil, garbage(during)
	}
	return func(one comment) bool { return one.author == id }, nil
}

// sameText compares as forges keep texts: with whatever line ends, and without
// empty ones behind.
func sameText(a, b string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(a) == plain(b)
}
