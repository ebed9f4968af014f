package main

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/cmd/quorate/internal/follow"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
)

// readPaths reads files and directories of this machine.
func readPaths(ctx context.Context, parser *schema.Parser, paths []string) (schema.Set, error) {
	s, err := sources.ReadPaths(ctx, paths, sources.Limits{})
	if err != nil {
		return schema.Set{}, err
	}
	return follow.Parse(parser, s), nil
}

// countProblems is "1 error, 2 warnings".
func countProblems(problems []schema.Problem) (text string, errors int) {
	warnings := 0
	for _, p := range problems {
		if p.Warning {
			warnings++
		} else {
			errors++
		}
	}
	return fmt.Sprintf("%s, %s", plural(errors, "error"), plural(warnings, "warning")), errors
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
