package score

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTable(t *testing.T) {
	table := Table{Columns: []string{"refused", "killed"}}
	table.Row("roll", 3)
	table.Row("create", 2)
	table.Add("roll", "refused", Held)
	for _, how := range table.Columns {
		table.Add("create", how, Same)
	}
	table.Add("roll", "refused", Same)
	table.Add("roll", "refused", Failed)
	table.Add("roll", "killed", Unmet)
	want := `2 scenarios with 5 requests, 5 disturbances: 3 end as undisturbed, 1 held with a way on, 1 in any other way.

| scenario | requests | refused | killed | held, with a way on |
|---|---:|---:|---:|---:|
| create | 2 | 1 | 1 | 0 |
| roll | 3 | **1 of 3, 1 held** | – | 1 |
| together | 5 | **2 of 4, 1 held** | 1 | 1 |
`
	if got := table.String(); got != want {
		t.Errorf("it is\n%s", got)
	}
}

func TestWriteReplacesOneSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	for _, s := range [][2]string{{"Writes", "old"}, {"Calls", "these"}, {"Writes", "new\n"}} {
		if err := Write(path, s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if want := preamble + "\n## Calls\n\nthese\n\n## Writes\n\nnew\n"; err != nil || string(got) != want {
		t.Errorf("%v; it is\n%s", err, got)
	}
}

func TestWriteTableKeepsTheLinesOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	for _, scenario := range []string{"roll", "create"} {
		table := &Table{Columns: []string{"refused", "killed", "late"}}
		table.Row(scenario, 3)
		table.Add(scenario, "refused", Same)
		table.Add(scenario, "killed", Failed)
		table.Add(scenario, "killed", Held)
		if err := WriteTable(path, "Writes", table); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	want := preamble + `
## Writes

2 scenarios with 6 requests, 6 disturbances: 2 end as undisturbed, 2 held with a way on, 2 in any other way.

| scenario | requests | refused | killed | late | held, with a way on |
|---|---:|---:|---:|---:|---:|
| create | 3 | 1 | **0 of 2, 1 held** | – | 1 |
| roll | 3 | 1 | **0 of 2, 1 held** | – | 1 |
| together | 6 | 2 | **0 of 4, 2 held** | – | 2 |
`
	if err != nil || string(got) != want {
		t.Errorf("%v; it is\n%s", err, got)
	}
}
