package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// document is a software bill of materials in SPDX 2.3.
type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []pkg          `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type pkg struct {
	ID        string     `json:"SPDXID"`
	Name      string     `json:"name"`
	Version   string     `json:"versionInfo"`
	Location  string     `json:"downloadLocation"`
	Analyzed  bool       `json:"filesAnalyzed"`
	Concluded string     `json:"licenseConcluded"`
	Declared  string     `json:"licenseDeclared"`
	Copyright string     `json:"copyrightText"`
	Comment   string     `json:"comment,omitempty"`
	Refs      []external `json:"externalRefs"`
}

type external struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const (
	noAssertion = "NOASSERTION"
	// product is the module of both binaries.
	product = "github.com/quorate/quorate"
	// roots is the module of the certificate authorities.
	roots = "golang.org/x/crypto/x509roots/fallback"
)

// sbom lists what is in the image of that digest: the modules of the binaries, Go's standard library,
// and where the certificate authorities come from.
func (f *facts) sbom(digest v1.Hash) ([]byte, error) {
	image := newPackage("image", repository, digest.String(), "pkg:oci/quorate@"+strings.Replace(digest.String(), ":", "%3A", 1)+"?repository_url="+repository)
	main := goPackage(debug.Module{Path: product, Version: f.version})
	main.Declared = "Apache-2.0"
	standard := newPackage("go-stdlib", "stdlib", f.goVersion, "pkg:golang/stdlib@"+strings.TrimPrefix(f.goVersion, "go"))
	trust, err := rootsModule()
	if err != nil {
		return nil, err
	}
	anchors := goPackage(trust)
	anchors.ID = "SPDXRef-authorities"
	anchors.Comment = "the certificate authorities of /" + authorities + ", of Mozilla's list"
	d := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: repository + " " + f.version,
		Namespace: "https://github.com/quorate/quorate/spdx/" + digest.Hex,
		Creation:  creation{f.at.Format(time.RFC3339), []string{"Tool: github.com/quorate/quorate/deploy/image"}},
		Packages:  []pkg{image, main, standard, anchors},
		Relationships: []relationship{
			{"SPDXRef-DOCUMENT", "DESCRIBES", image.ID}, {image.ID, "CONTAINS", main.ID}, {image.ID, "CONTAINS", anchors.ID}, {main.ID, "DEPENDS_ON", standard.ID},
		},
	}
	for _, path := range slices.Sorted(maps.Keys(f.modules)) {
		p := goPackage(f.modules[path])
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, relationship{main.ID, "DEPENDS_ON", p.ID})
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("list what the image contains: %w", err)
	}
	return append(text, '\n'), nil
}

// rootsModule is the module of the certificate authorities, as this program was built with it.
func rootsModule() (debug.Module, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == roots {
				return *m, nil
			}
		}
	}
	return debug.Module{}, fmt.Errorf("list what the image contains: this program does not know the version of %s: build it with go build", roots)
}

func goPackage(m debug.Module) pkg {
	p := newPackage("go-"+m.Path, m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
	p.Comment = m.Sum
	return p
}

// newPackage has an ID of letters, digits, dots and dashes, as SPDX wants it.
func newPackage(id, name, version, locator string) pkg {
	return pkg{
		ID:   "SPDXRef-" + regexp.MustCompile(`[^a-zA-Z0-9.-]`).ReplaceAllString(id, "-"),
		Name: name, Version: version, Location: noAssertion, Concluded: noAssertion, Declared: noAssertion, Copyright: noAssertion,
		Refs: []external{{"PACKAGE-MANAGER", "purl", locator}},
	}
}
