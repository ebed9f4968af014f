package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/release"
)

const (
	// defaultLimit is how many statuses one answer has, maxLimit the most that a client
	// may ask for.
	defaultLimit, maxLimit = 500, 5000
	// maxText bounds the text that is searched for, in bytes.
	maxText = 256
)

// Query is which statuses are asked for, and in which order. An empty field chooses all.
type Query struct {
	Kind, Namespace, Name string
	// Branch is a status branch, whose objects alone are chosen; Here is what this daemon
	// reconciles.
	Branch string
	Phase  schema.Phase
	// Text is searched for in names, versions, reasons and messages, without regard to
	// case.
	Text string
	// Sort is one of Orders; "" is the order of kind, namespace and name. Descending
	// turns it round.
	Sort       string
	Descending bool
}

// Here is the Branch of a Query for what this daemon reconciles. No branch can have this name.
const Here = "."

// Found is a status, and the status branch that it is from; "" for what this daemon reconciles.
type Found struct {
	Branch string
	schema.Status
}

// orders are what statuses can be sorted by: each gives a text by whose order they are.
func orders() map[string]func(s schema.Status) string {
	return map[string]func(s schema.Status) string{
		"kind":      func(s schema.Status) string { return strconv.Itoa(slices.Index(schema.Kinds(), s.Kind)) },
		"namespace": func(s schema.Status) string { return s.Metadata.Namespace },
		"name":      func(s schema.Status) string { return s.Metadata.Name },
		"phase":     phaseOrder,
		"version":   ofCluster(func(c *schema.ClusterStatus) string { return versionOrder(cmp.Or(c.Version.Lowest, c.Version.Wanted)) }),
		"wanted":    ofCluster(func(c *schema.ClusterStatus) string { return versionOrder(c.Version.Wanted) }),
		"missing":   ofCluster(func(c *schema.ClusterStatus) string { return number(int(c.Replicas.Wanted - c.Replicas.Healthy)) }),
		"drift":     ofCluster(func(c *schema.ClusterStatus) string { return number(len(c.Drift)) }),
		"backup":    func(s schema.Status) string { return s.LastBackup().Time },
	}
}

// Orders are the words that Query.Sort may have.
func Orders() []string { return slices.Sorted(maps.Keys(orders())) }

func ofCluster(of func(c *schema.ClusterStatus) string) func(s schema.Status) string {
	return func(s schema.Status) string {
		if s.Status.Cluster == nil {
			return ""
		}
		return of(s.Status.Cluster)
	}
}

// phaseOrder is by how soon an object wants a person.
func phaseOrder(s schema.Status) string {
	phase, _ := s.Phase()
	return strconv.Itoa(slices.Index(schema.Phases(), phase))
}

func versionOrder(text string) string {
	v, err := release.Parse(text)
	if err != nil {
		return ""
	}
	return number(v.Major) + number(v.Minor) + number(v.Patch)
}

// number is a number whose text is in the order of its value, from -500,000 on.
func number(n int) string { return fmt.Sprintf("%07d", n+500_000) }

// ParseQuery reads a query from the parameters of a request. Others than those of a query
// are left to the caller.
func ParseQuery(from url.Values) (Query, error) {
	q := Query{
		Kind: from.Get("kind"), Namespace: from.Get("namespace"), Name: from.Get("name"),
		Branch: from.Get("branch"), Phase: schema.Phase(from.Get("phase")), Text: strings.TrimSpace(from.Get("q")),
	}
	q.Sort, q.Descending = strings.CutPrefix(from.Get("sort"), "-")
	switch {
	case q.Kind != "" && !slices.Contains(schema.Kinds(), q.Kind):
		return q, fmt.Errorf("kind is %q: give one of %s", q.Kind, strings.Join(schema.Kinds(), ", "))
	case q.Phase != "" && !slices.Contains(schema.Phases(), q.Phase):
		return q, fmt.Errorf("phase is %q: give one of %v", q.Phase, schema.Phases())
	case q.Sort != "" && !slices.Contains(Orders(), q.Sort):
		return q, fmt.Errorf("sort is %q: give one of %s, with a - before it for the reverse order", q.Sort, strings.Join(Orders(), ", "))
	case len(q.Text) > maxText:
		return q, fmt.Errorf("q has %d bytes: give at most %d", len(q.Text), maxText)
	}
	return q, nil
}

// matches reports whether a status is asked for. text is Text in lower case.
func (q Query) matches(s schema.Status, text string) bool {
	m := s.Metadata
	if q.Kind != "" && s.Kind != q.Kind || q.Namespace != "" && m.Namespace != q.Namespace || q.Name != "" && m.Name != q.Name {
		return false
	}
	if q.Phase == "" && text == "" {
		return true
	}
	phase, why := s.Phase()
	if q.Phase != "" && phase != q.Phase {
		return false
	}
	if text == "" {
		return true
	}
	words := []string{m.Namespace + "/" + m.Name, why.Reason, why.Message}
	if c := s.Status.Cluster; c != nil {
		words = append(words, c.Version.Wanted, c.Version.Lowest, c.Version.Highest)
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(word), text) })
}

// sorted is a status, and what it is sorted by.
type sorted struct {
	place
	Found
}

// place is where a status stands in an order. Two statuses never have the same.
type place struct {
	// Key is what the order is by; then come kind, namespace, name and branch.
	Key       string `json:"key"`
	Kind      int    `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Branch    string `json:"branch,omitempty"`
}

// compare compares two places. Those with the same key are never turned round.
func (q Query) compare(a, b place) int {
	byKey := strings.Compare(a.Key, b.Key)
	if q.Descending {
		byKey = -byKey
	}
	return cmp.Or(byKey, cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Branch, b.Branch))
}

// choose returns the statuses that are asked for, in order.
func (q Query) choose(look Look) []sorted {
	key := orders()[q.Sort]
	if key == nil {
		key = func(schema.Status) string { return "" }
	}
	text := strings.ToLower(q.Text)
	var found []sorted
	for branch, list := range look.lists() {
		if !isOf(branch, q.Branch) {
			continue
		}
		for _, s := range list {
			if q.matches(s, text) {
				at := place{key(s), slices.Index(schema.Kinds(), s.Kind), s.Metadata.Namespace, s.Metadata.Name, branch}
				found = append(found, sorted{at, Found{branch, s}})
			}
		}
	}
	slices.SortFunc(found, func(a, b sorted) int { return q.compare(a.place, b.place) })
	return found
}

// lists are the statuses by the branch that they are from, "" for what this daemon reconciles.
func (l Look) lists() iter.Seq2[string, []schema.Status] {
	return func(yield func(string, []schema.Status) bool) {
		if !yield(l.branch, l.List) || l.Branches == nil {
			return
		}
		for _, b := range l.Branches.Branches {
			if !yield(b.Name, b.Statuses) {
				return
			}
		}
	}
}

// isOf reports whether what is from a branch, "" for this daemon, is chosen by Query.Branch.
func isOf(branch, chosen string) bool { return chosen == "" || chosen == cmp.Or(branch, Here) }

// Of are the statuses that Query.Branch chooses.
func (l Look) Of(chosen string) iter.Seq[schema.Status] {
	return func(yield func(schema.Status) bool) {
		for branch, list := range l.lists() {
			for _, s := range list {
				if isOf(branch, chosen) && !yield(s) {
					return
				}
			}
		}
	}
}

// Choose returns the statuses that are asked for from the first-th on, at most so many,
// and how many there are in total.
func (q Query) Choose(look Look, first, most int) (page []Found, total int) {
	found := q.choose(look)
	for _, s := range found[min(first, len(found)):min(first+most, len(found))] {
		page = append(page, s.Found)
	}
	return page, len(found)
}

// After returns the statuses that are asked for behind the one that a token of the answer
// before names, at most so many, and the token for the next answer; "" at the end. An
// object that comes, goes or is changed meanwhile moves no other one from its answer.
func (q Query) After(look Look, token string, most int) (page []schema.Status, next string, total int, err error) {
	found, first := q.choose(look), 0
	if token != "" {
		last, err := q.readToken(token)
		if err != nil {
			return nil, "", 0, err
		}
		var there bool
		first, there = slices.BinarySearchFunc(found, last, func(a sorted, b place) int { return q.compare(a.place, b) })
		if there {
			first++
		}
	}
	page = make([]schema.Status, min(most, len(found)-first))
	for i := range page {
		page[i] = found[first+i].Status
	}
	if end := first + len(page); end < len(found) && len(page) > 0 {
		next = q.token(found[end-1].place)
	}
	return page, next, len(found), nil
}

// continuing is what a token holds: the last place of an answer, and the query.
type continuing struct {
	Query Query `json:"query"`
	Last  place `json:"last"`
}

func (q Query) token(last place) string {
	text, _ := json.Marshal(continuing{q, last}) // texts and numbers can be marshaled
	return base64.RawURLEncoding.EncodeToString(text)
}

func (q Query) readToken(token string) (place, error) {
	var c continuing
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil || c.Query != q {
		return place{}, fmt.Errorf("continue is not the token of an answer to this query: leave it out to begin again")
	}
	return c.Last, nil
}

// limitOf reads how many statuses an answer may have.
func limitOf(text string) (int, error) {
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, fmt.Errorf("limit is %q: give a number from 1 to %d", text, maxLimit)
	}
	return n, nil
}
