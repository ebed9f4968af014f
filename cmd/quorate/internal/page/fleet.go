package page

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quorate/quorate/cmd/quorate/internal/api"
	"github.com/quorate/quorate/schema"
)

// perPage is how many rows a page has.
const perPage = 100

// fleetView is the page of all objects of one kind.
type fleetView struct {
	Query api.Query
	// Tabs lead to the kinds, Counts to the phases of the kind that is shown.
	Tabs, Counts []link
	// Phases are the choices of the filter.
	Phases  []schema.Phase
	Columns []column
	Rows    []row
	// First and Last are the numbers of the rows, from 1 on, of Total.
	First, Last, Total int
	// Previous and Next lead to the other rows; "" where there are none.
	Previous, Next string
	// Order is the parameter sort, which the filter keeps.
	Order string
	// Filtered is whether something is left out, and All leads to everything.
	Filtered bool
	All      string
}

// link leads to another choice of rows.
type link struct {
	Text, To string
	Count    int
	Phase    schema.Phase
	Here     bool
}

// column is a head of the table. To sorts by it, "" where nothing does; Sorted is
// "ascending", "descending" or "".
type column struct{ Text, To, Sorted string }

// row is one object.
type row struct {
	schema.Status
	To    string
	Phase schema.Phase
	Why   schema.Condition
	// Reported is the version of the members, Backup when the last good backup was taken.
	Reported, Backup string
	// Cluster is whose backup, schedule or restore it is, Next when the next backup is due.
	Cluster, Next string
}

// fleet shows the objects of one kind, those that want a person first.
func (p *pages) fleet(w http.ResponseWriter, r *http.Request) {
	parameters := r.URL.Query()
	q, err := api.ParseQuery(parameters)
	if err != nil {
		p.problem(w, http.StatusBadRequest, "The filter is wrong", err)
		return
	}
	look, err := p.feed.Look()
	if err != nil {
		p.problem(w, http.StatusServiceUnavailable, "Not ready", err)
		return
	}
	q.Kind = cmp.Or(q.Kind, schema.KindCluster)
	sorting := q
	if sorting.Sort == "" {
		sorting.Sort = "phase"
	}
	number, _ := strconv.Atoi(parameters.Get("page")) // whatever is no number is the first page
	first := (max(1, min(number, 1_000_000)) - 1) * perPage
	list, total := sorting.Choose(look.List, first, perPage)
	v := fleetView{
		Query: q, Phases: schema.Phases(), Total: total, First: first + 1, Last: first + len(list), Order: parameters.Get("sort"),
		Filtered: q.Phase != "" || q.Text != "" || q.Namespace != "" || q.Name != "", All: address(api.Query{Kind: q.Kind}, 1),
		Columns: columns(q, sorting), Tabs: tabs(look.List, q), Counts: counts(look.List, q),
	}
	if first > 0 {
		v.Previous = address(q, first/perPage)
	}
	if v.Last < total && len(list) > 0 {
		v.Next = address(q, first/perPage+2)
	}
	for _, s := range list {
		v.Rows = append(v.Rows, rowOf(s))
	}
	p.show(w, http.StatusOK, "fleet", frame{Title: title(q.Kind), Here: "/", Watch: "all", Partial: !look.Whole, Data: v})
}

func rowOf(s schema.Status) row {
	phase, why := s.Phase()
	r := row{Status: s, To: pathOfStatus(s), Phase: phase, Why: why, Backup: s.LastBackup().Time}
	switch o := s.Status; {
	case o.Cluster != nil:
		r.Reported = reported(o.Cluster.Version)
	case o.Schedule != nil:
		r.Cluster, r.Next = o.Schedule.Cluster, o.Schedule.Next
	case o.Backup != nil:
		r.Cluster = o.Backup.Cluster
	case o.Restore != nil:
		r.Cluster, r.Next = o.Restore.Cluster, o.Restore.Time
	}
	return r
}

// address is where the rows of a query are, from a page on.
func address(q api.Query, page int) string {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Kind != schema.KindCluster {
		set("kind", q.Kind)
	}
	set("namespace", q.Namespace)
	set("name", q.Name)
	set("phase", string(q.Phase))
	set("q", q.Text)
	if q.Descending {
		set("sort", "-"+q.Sort)
	} else {
		set("sort", q.Sort)
	}
	if page > 1 {
		v.Set("page", strconv.Itoa(page))
	}
	return (&url.URL{Path: "/", RawQuery: v.Encode()}).String()
}

// tabs lead to all objects of each kind.
func tabs(list []schema.Status, q api.Query) []link {
	count := map[string]int{}
	for _, s := range list {
		count[s.Kind]++
	}
	var links []link
	for _, kind := range schema.Kinds() {
		links = append(links, link{Text: title(kind), To: address(api.Query{Kind: kind}, 1), Count: count[kind], Here: kind == q.Kind})
	}
	return links
}

// counts lead to the objects of the kind in each phase.
func counts(list []schema.Status, q api.Query) []link {
	count := map[schema.Phase]int{}
	for _, s := range list {
		if s.Kind == q.Kind {
			phase, _ := s.Phase()
			count[phase]++
		}
	}
	var links []link
	for _, phase := range schema.Phases() {
		links = append(links, link{Text: string(phase), Phase: phase, To: address(api.Query{Kind: q.Kind, Phase: phase}, 1), Count: count[phase], Here: phase == q.Phase})
	}
	return links
}

// columns are the heads of the table of a kind. A head that is sorted by already turns the
// order round.
func columns(q, sorting api.Query) []column {
	heads := []struct{ text, sort string }{{"State", "phase"}, {"Name", "name"}}
	switch q.Kind {
	case schema.KindCluster:
		heads = append(heads, []struct{ text, sort string }{
			{"Version", "version"}, {"Members", "missing"}, {"Drift", "drift"}, {"What quorate says", ""}, {"Next step", ""}, {"Last verified backup", "backup"}, {"Window", ""},
		}...)
	case schema.KindBackupSchedule:
		heads = append(heads, []struct{ text, sort string }{{"Cluster", ""}, {"Last backup", "backup"}, {"Next", ""}, {"What quorate says", ""}}...)
	case schema.KindBackup:
		heads = append(heads, []struct{ text, sort string }{{"Cluster", ""}, {"Taken", "backup"}, {"What quorate says", ""}}...)
	default:
		heads = append(heads, []struct{ text, sort string }{{"Cluster", ""}, {"Done", ""}, {"What quorate says", ""}}...)
	}
	var made []column
	for _, head := range heads {
		c := column{Text: head.text}
		if head.sort != "" {
			by := q
			by.Sort, by.Descending = head.sort, false
			if sorting.Sort == head.sort {
				c.Sorted = "ascending"
				if by.Descending = !sorting.Descending; sorting.Descending {
					c.Sorted = "descending"
				}
			}
			c.To = address(by, 1)
		}
		made = append(made, c)
	}
	return made
}
