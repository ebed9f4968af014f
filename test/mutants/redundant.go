package main

import (
	"fmt"
	"os"
	"strings"
)

// listPath is the list of mutants that nothing can notice.
const listPath = "test/mutants/redundant.txt"

// readRedundant reads the list of mutants that nothing can notice: their names, a line
// each, and below them, indented, the reason of all of these.
func readRedundant(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reasons, names := map[string]string{}, []string(nil)
	for n, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			if len(names) == 0 {
				return nil, fmt.Errorf("%s:%d: a reason of nothing", path, n+1)
			}
			for _, name := range names {
				reasons[name] = strings.TrimSpace(reasons[name] + " " + strings.TrimSpace(line))
			}
		default:
			if reasons[last(names)] != "" {
				names = nil
			}
			if _, twice := reasons[line]; twice {
				return nil, fmt.Errorf("%s:%d: %s is in the list twice", path, n+1, line)
			}
			names = append(names, line)
			reasons[line] = ""
		}
	}
	for name, why := range reasons {
		if why == "" {
			return nil, fmt.Errorf("%s: %s has no reason", path, name)
		}
	}
	return reasons, nil
}

func last(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}
