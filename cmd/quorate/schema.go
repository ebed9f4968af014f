package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/schema/jsonschema"
	"github.com/quorate/quorate/schema/release"
)

// newSchema prints the JSON Schema of the file format.
func newSchema() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of the files, for editors and CI",
		Long: `schema prints the JSON Schema (draft-07) of one kind, or of all kinds, for editors
that complete and check as you type, and for tools in CI. With --dir it writes
them all into a directory, over those of an earlier version:

  ` + strings.Join(jsonschema.Paths(), "\n  ") + `

An editor with yaml-language-server (VS Code, Neovim, Emacs, Helix …) takes a
comment at the top of each document

  # yaml-language-server: $schema=../schemas/quorate.schema.json

or, once for all files, a setting such as this one of VS Code:

  "yaml.schemas": {"./schemas/quorate.schema.json": ["clusters/**/*.yaml"]}

The schemas describe one document on its own. quorate validate also looks
at other documents and knows which releases of etcd there are.`,
		Example: `  quorate schema EtcdCluster
  quorate schema --dir schemas
  kubeconform -strict -schema-location default \
    -schema-location 'schemas/{{ .Group }}/{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json' clusters/`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: jsonschema.Kinds(),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := schemaPath(args)
			switch {
			case err != nil:
				return err
			case dir == "":
				return printSchema(cmd.OutOrStdout(), path)
			case len(args) > 0:
				return fmt.Errorf("--dir writes the schemas of all kinds: leave out %s, or leave out --dir to print it", args[0])
			}
			return writeSchemas(cmd.OutOrStdout(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write all schemas into this directory, which is made if need be")
	return cmd
}

// schemaPath is the path of the schema that the arguments ask for. Kinds are
// found in any case.
func schemaPath(args []string) (string, error) {
	if len(args) == 0 {
		return jsonschema.AllKinds, nil
	}
	kinds := jsonschema.Kinds()
	i := slices.IndexFunc(kinds, func(kind string) bool { return strings.EqualFold(kind, args[0]) })
	if i >= 0 {
		return jsonschema.Path(kinds[i]), nil
	}
	if near := release.Nearest(args[0], kinds); near != "" {
		return "", fmt.Errorf("%q is not a kind of quorate, did you mean %s?", args[0], near)
	}
	return "", fmt.Errorf("%q is not a kind of quorate: must be one of %s", args[0], strings.Join(kinds, ", "))
}

// printSchema prints one schema.
func printSchema(out io.Writer, path string) error {
	data, err := jsonschema.Read(path)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// writeSchemas writes all schemas and prints their paths.
func writeSchemas(out io.Writer, dir string) error {
	for _, path := range jsonschema.Paths() {
		data, err := jsonschema.Read(path)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("write the schemas: %w", err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return fmt.Errorf("write the schemas: %w", err)
		}
		_, _ = fmt.Fprintln(out, file)
	}
	return nil
}
