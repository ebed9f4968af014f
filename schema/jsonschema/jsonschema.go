// Package jsonschema holds the JSON Schema of the file format, for editors and
// for tools that check files in CI. The schemas are generated from the Go types:
//
//	go test ./schema/jsonschema -update
//
// They describe what one document may be on its own. What depends on other
// documents, at a clock or at the release catalogue, quorate validate says. On
// the other hand they refuse fields without a value ("tls:" and nothing), which
// the parser takes as left out.
package jsonschema

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/schema"
)

// files cannot be written to.
//
//go:embed quorate.dev quorate.schema.json
var files embed.FS

// AllKinds is the path of the schema for documents of any kind.
const AllKinds = "quorate.schema.json"

// Kinds are the kinds that have a schema, in the order of the reference.
func Kinds() []string {
	return []string{schema.KindCluster, schema.KindBackup, schema.KindBackupSchedule, schema.KindRestore}
}

// Path is where tools for Kubernetes expect the schema of a kind, beneath a
// directory of their choice: "quorate.dev/etcdcluster_v1alpha1.json".
func Path(kind string) string {
	return strings.Replace(schema.APIVersion, "/", "/"+strings.ToLower(kind)+"_", 1) + ".json"
}

// Paths are those of all schemas.
func Paths() []string {
	paths := []string{AllKinds}
	for _, kind := range Kinds() {
		paths = append(paths, Path(kind))
	}
	return paths
}

// Read is the text of the schema at one of the Paths.
func Read(path string) ([]byte, error) {
	if !slices.Contains(Paths(), path) {
		return nil, fmt.Errorf("%s is not the path of a schema", path)
	}
	return files.ReadFile(path)
}
