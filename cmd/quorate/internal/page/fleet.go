package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
	// Places are this Kubernetes cluster and those whose status branches are read; nil where
	// none are. Doubted counts those of which nobody knows how they are now.
	Places  []place
	Doubted int
	// Read is when the branches were last read, Problem why they were not since; "" for neither.
	Read, Problem string
}

// place is a Kubernetes cluster, in the form of what is known of its objects.
type place struct {
	// Branch is the value by which its objects are chosen, and To where they are.
	Branch, Name, To string
	Here             bool
	Objects          int
	// Written is when its daemon last wrote; "" of this daemon.
	Written string
	// Doubt says why nothing is known of how it is now, Unread which files were not understood.
	Doubt, Unread string
}

// link leads to another choice of rows.
type link struct {
	Text, To string
	Count    int
	Phase    schema.Phase
	Here     bool
}

// row is one object.
type row struct {
	api.Found
	To string
	// Doubted is whether nobody knows how it is now.
	Doubted bool
	Phase   schema.Phase
	Why     schema.Condition
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
	look, err := p.feed.LookAround()
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
	if q.Branch != "" && q.Branch != api.Here {
		if _, err := look.OnBranch(q.Branch); err != nil {
			p.problem(w, http.StatusNotFound, "No such Kubernetes cluster", err)
			return
		}
	}
	list, total := sorting.Choose(look, first, perPage)
	v := fleetView{
		Query: q, Phases: schema.Phases(), Total: total, First: first + 1, Last: first + len(list), Order: parameters.Get("sort"),
		Filtered: q.Phase != "" || q.Text != "" || q.Namespace != "" || q.Name != "" || q.Branch != "", All: address(api.Query{Kind: q.Kind}, 1),
		Columns: columns(q, sorting), Tabs: tabs(look, q), Counts: counts(look, q),
	}
	again := v.place(look)
	if first > 0 {
		v.Previous = address(q, first/perPage)
	}
	if v.Last < total && len(list) > 0 {
		v.Next = address(q, first/perPage+2)
	}
	for _, s := range list {
		r := rowOf(s)
		r.Doubted = slices.ContainsFunc(v.Places, func(p place) bool { return p.Branch == s.Branch && p.Doubt != "" })
		v.Rows = append(v.Rows, r)
	}
	f := frame{Title: title(q.Kind), Here: "/", Watch: "all", Partial: !look.Whole, Again: again}
	p.show(w, http.StatusOK, f, fleetPage(&v))
}

// place shows what is known of other Kubernetes clusters. It returns after how many seconds a
// browser should ask again; 0 for never.
func (v *fleetView) place(look api.Look) (again int) {
	if look.Branches == nil {
		return 0
	}
	if look.Branches.Read.IsZero() {
		again = 5
	}
	v.Read, v.Problem = schema.TimeText(look.Branches.Read), look.Branches.Problem
	v.Places = []place{{Branch: api.Here, Name: "this one", To: address(api.Query{Branch: api.Here}, 1), Here: true, Objects: len(look.List)}}
	for _, b := range look.Branches.Branches {
		one := place{Branch: b.Name, Name: b.Name, To: address(api.Query{Branch: b.Name}, 1), Objects: len(b.Statuses), Written: schema.TimeText(b.Written), Doubt: b.Doubt}
		if n := len(b.Unread); n > 0 {
			one.Unread = fmt.Sprintf("files that hold no status that is understood: %d, first %s", n, b.Unread[0])
		}
		if b.Doubt != "" {
			v.Doubted++
		}
		v.Places = append(v.Places, one)
	}
	return again
}

func rowOf(s api.Found) row {
	phase, why := s.Phase()
	r := row{Found: s, To: pathOfStatus(s), Phase: phase, Why: why, Backup: s.LastBackup().Time}
	switch o := s.Status.Status; {
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
	set("branch", q.Branch)
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
func tabs(look api.Look, q api.Query) []link {
	count := map[string]int{}
	for s := range look.Of(q.Branch) {
		count[s.Kind]++
	}
	var links []link
	for _, kind := range schema.Kinds() {
		links = append(links, link{Text: title(kind), To: address(api.Query{Kind: kind, Branch: q.Branch}, 1), Count: count[kind], Here: kind == q.Kind})
	}
	return links
}

// counts lead to the objects of the kind in each phase.
func counts(look api.Look, q api.Query) []link {
	count := map[schema.Phase]int{}
	for s := range look.Of(q.Branch) {
		if s.Kind == q.Kind {
			phase, _ := s.Phase()
			count[phase]++
		}
	}
	var links []link
	for _, phase := range schema.Phases() {
		links = append(links, link{Text: string(phase), Phase: phase, To: address(api.Query{Kind: q.Kind, Branch: q.Branch, Phase: phase}, 1), Count: count[phase], Here: phase == q.Phase})
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
