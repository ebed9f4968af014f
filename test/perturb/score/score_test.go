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
	for _, how := range table.Columns {
		table.Add("create", how, Same)
	}
	table.Add("roll", "refused", Same)
	table.Add("roll", "refused", Failed)
	table.Add("roll", "killed", Unmet)
	want := `2 scenarios with 5 requests, 4 disturbances: 3 end as undisturbed, 1 do not.

| scenario | requests | refused | killed |
|---|---:|---:|---:|
| create | 2 | 1 | 1 |
| roll | 3 | **1 of 2** | – |
| together | 5 | **2 of 3** | 1 |
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
		if err := WriteTable(path, "Writes", table); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	want := preamble + `
## Writes

2 scenarios with 6 requests, 4 disturbances: 2 end as undisturbed, 2 do not.

| scenario | requests | refused | killed | late |
|---|---:|---:|---:|---:|
| create | 3 | 1 | **0 of 1** | – |
| roll | 3 | 1 | **0 of 1** | – |
| together | 6 | 2 | **0 of 2** | – |
`
	if err != nil || string(got) != want {
		t.Errorf("%v; it is\n%s", err, got)
	}
}
