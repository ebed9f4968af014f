package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// licences are what a licence says, by its name.
var licences = map[string]string{
	"Apache-2.0": "Apache License Version 2.0",
	"MIT":        "Permission is hereby granted, free of charge, to any person obtaining a copy",
	"BSD":        "Redistribution and use in source and binary forms, with or without modification, are permitted",
	"ISC":        "Permission to use, copy, modify, and/or distribute this software for any purpose",
	"MPL-2.0":    "Mozilla Public License, version 2.0",
}

// licenceOf is the licence of a module, by the text in its directory; "" for none that is known.
func licenceOf(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		if name := strings.ToUpper(filepath.Base(file)); !strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		words := strings.ToLower(strings.Join(strings.Fields(string(text)), " "))
		for name, says := range licences {
			if strings.Contains(words, strings.ToLower(says)) {
				return name
			}
		}
	}
	return ""
}

// What is linked into quorate is under a licence that lets everybody run and pass on the binary: a
// module without one, or under another one, is found before it is released.
func TestEveryModuleHasALicenceThatIsKnown(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", ".", "../quorate-guard").Output()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, dir, found := strings.Cut(strings.TrimSpace(line), " "); found && of[path] == "" {
			if of[path] = licenceOf(dir); of[path] == "" {
				t.Errorf("%s has no licence that is known: look at what is in %s", path, dir)
				of[path] = "unknown"
			}
		}
	}
	if len(of) < 50 {
		t.Errorf("%d modules were found", len(of))
	}
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "LICENSE"), []byte("GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3"), 0o600); err != nil || licenceOf(empty) != "" {
		t.Errorf("the Affero licence passes for %s (%v)", licenceOf(empty), err)
	}
}
