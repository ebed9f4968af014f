package release

import (
	"fmt"
	"strings"
)

// Nearest is the candidate that word was probably meant to be, or "" when none
// is close. Case and dashes do not count; of two equally close ones the first is
// taken. A long word is never matched, so that the work stays small.
func Nearest(word string, candidates []string) string {
	const longest = 64
	plain := plainWord(word)
	if plain == "" || len(plain) > longest {
		return ""
	}
	// One slip in three letters is a typing error; more is another word.
	best, bestDistance := "", len(plain)/3+1
	for _, candidate := range candidates {
		if d := distance(plain, plainWord(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// didYouMean is a half-sentence with the nearest candidate, or "".
func didYouMean(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return ""
}

// plainWord drops what does not tell words apart.
func plainWord(word string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(word))
}

// distance counts the insertions, deletions and changes of one byte that turn a
// into b. It keeps one row of the usual table.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
