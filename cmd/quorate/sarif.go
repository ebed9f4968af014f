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
		HelpURI          string    `json:"helpUri"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
		// Suppressions say that the result is accepted, and why.
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
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

// problemsPage lists all IDs.
const problemsPage = "https://github.com/quorate/quorate/blob/main/docs/problems.md"

// printSARIF prints problems as one SARIF run, with those that an ignore file accepts.
func printSARIF(out io.Writer, problems []schema.Problem, accepted []acceptedProblem) error {
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{
			Name: "quorate", Version: buildVersion(), InformationURI: "https://github.com/quorate/quorate",
			Rules: sarifRules(),
		}},
		ColumnKind: "unicodeCodePoints",
		Results:    []sarifResult{},
	}
	for _, p := range problems {
		run.Results = append(run.Results, sarifOf(p))
	}
	for _, a := range accepted {
		result := sarifOf(relative([]schema.Problem{a.Problem})[0])
		result.Suppressions = []sarifSuppression{{"external", a.reason}}
		run.Results = append(run.Results, result)
	}
	return cli.PrintJSON(out, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

// sarifRules are all sorts of problems.
func sarifRules() []sarifRule {
	var rules []sarifRule
	for _, k := range schema.ProblemKinds() {
		rules = append(rules, sarifRule{string(k.ID), sarifText{k.Meaning}, problemsPage})
	}
	return rules
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
		RuleID: string(p.ID), Level: level, Message: sarifText{message(p)},
		Locations: []sarifLocation{{at}},
	}
}
