package main

import (
	"io"
	"net/url"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/schema"
)

// The part of SARIF 2.1.0 that code scanning systems read.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

// printSARIF prints problems as one SARIF run.
func printSARIF(out io.Writer, problems []schema.Problem) error {
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{
			Name: "quorate", Version: buildVersion(), InformationURI: "https://github.com/quorate/quorate",
			Rules: []sarifRule{
				{"quorate/error", sarifText{"The object is held until this is fixed."}},
				{"quorate/warning", sarifText{"The object is applied all the same."}},
			},
		}},
		ColumnKind: "unicodeCodePoints",
		Results:    []sarifResult{},
	}
	for _, p := range problems {
		run.Results = append(run.Results, sarifOf(p))
	}
	return cli.PrintJSON(out, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

// sarifOf is one problem as a result. A problem of a whole file is at its
// first line, because code hosts refuse results without one.
func sarifOf(p schema.Problem) sarifResult {
	level := "error"
	if p.Warning {
		level = "warning"
	}
	at := sarifPhysical{
		ArtifactLocation: sarifArtifact{URI: (&url.URL{Path: p.File}).String()},
		Region:           sarifRegion{StartLine: max(p.Line, 1), StartColumn: p.Column},
	}
	return sarifResult{
		RuleID: "quorate/" + level, Level: level, Message: sarifText{message(p)},
		Locations: []sarifLocation{{at}},
	}
}
