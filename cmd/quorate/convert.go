package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/schema/convert"
)

// newConvert turns manifests of earlier operators into quorate's files.
func newConvert() *cobra.Command {
	var dir, output string
	cmd := &cobra.Command{
		Use:   "convert PATH...",
		Short: "Turn manifests of earlier etcd operators into quorate's files",
		Long: `convert reads manifests of etcd.database.coreos.com/v1beta1 and v1beta2 and of
etcd.improbable.io/v1alpha1, YAML or JSON, from files, directories and - for
standard input, and prints quorate's files. What has no equivalent is noted in a
comment where it matters, and on standard error as file:line: message. An object
that cannot be expressed is printed as a comment. Only --dir is written to.

Exit status: 0 when every object was converted, 1 when one was left
out, which every etcd of an operator that quorate does not know is, when something
could not be read, or when there was nothing to convert. Give all files at once: a backup finds its
cluster, and a restore its spec, in the others.`,
		Example: "  quorate convert old/ > clusters/etcd.yaml\n  quorate convert --dir clusters old/\n" +
			"  kubectl get etcdclusters.etcd.database.coreos.com -A -o yaml | quorate convert -",
		RunE: func(cmd *cobra.Command, paths []string) error {
			switch {
			case len(paths) == 0:
				return errors.New("specify files or directories to convert, or - for standard input")
			case output != "yaml":
				return fmt.Errorf("--output is yaml, not %q", output)
			}
			files, err := readOld(cmd.Context(), cmd.InOrStdin(), paths)
			if err != nil {
				return err
			}
			result := convert.Convert(files)
			if err := writeConverted(cmd.OutOrStdout(), dir, result.Documents); err != nil {
				return err
			}
			return printNotes(cmd.ErrOrStderr(), result)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write one file per object into this directory; a file that exists is not overwritten")
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "yaml")
	return cmd
}

// readOld reads what is named, each file once.
func readOld(ctx context.Context, stdin io.Reader, paths []string) ([]schema.File, error) {
	var files []schema.File
	seen := map[string]bool{}
	for _, path := range paths {
		if path == "-" {
			data, err := io.ReadAll(stdin)
			if err != nil {
				return nil, fmt.Errorf("read standard input: %w", err)
			}
			files = append(files, schema.File{Path: "-", Data: data})
			continue
		}
		err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			name = filepath.Clean(name)
			if err = cmp.Or(err, ctx.Err()); err != nil || seen[name] || !isOld(name, entry, name == filepath.Clean(path)) {
				return skipHidden(entry, name, err)
			}
			seen[name] = true
			data, err := os.ReadFile(name)
			files = append(files, schema.File{Path: filepath.ToSlash(name), Data: data})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return files, nil
}

// isOld reports whether a file is read: always if it was named, else by its extension.
func isOld(name string, entry fs.DirEntry, named bool) bool {
	if entry.IsDir() {
		return false
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return named
}

// skipHidden keeps .git and the like from being searched.
func skipHidden(entry fs.DirEntry, name string, err error) error {
	base := filepath.Base(name)
	if err == nil && entry.IsDir() && strings.HasPrefix(base, ".") && base != "." && base != ".." {
		return fs.SkipDir
	}
	return err
}

// writeConverted prints the documents, or writes each to its own file.
func writeConverted(out io.Writer, dir string, documents []convert.Document) error {
	if dir == "" {
		for _, d := range documents {
			if _, err := fmt.Fprintf(out, "---\n%s", d.Text); err != nil {
				return fmt.Errorf("write: %w", err)
			}
		}
		return nil
	}
	names, err := fileNames(dir, documents)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write to %s: %w", dir, err)
	}
	for i, d := range documents {
		if err := writeNew(names[i], d.Text); err != nil {
			return err
		}
	}
	return nil
}

// fileNames returns the files for the documents. It checks all of them before the first is
// written.
func fileNames(dir string, documents []convert.Document) ([]string, error) {
	var names []string
	taken := map[string]bool{}
	for _, d := range documents {
		plain := func(text string) string {
			return strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
					return r
				}
				return '-'
			}, strings.ToLower(text))
		}
		stem := strings.Trim(fmt.Sprintf("%s-%s-%s", plain(d.Namespace), plain(strings.TrimPrefix(d.Kind, "Etcd")), plain(d.Name)), "-")
		name := filepath.Join(dir, stem+".yaml")
		for n := 2; taken[name]; n++ {
			name = filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", stem, n))
		}
		if _, err := os.Lstat(name); err == nil {
			return nil, fmt.Errorf("%s exists and is not overwritten: name an empty directory with --dir", name)
		}
		taken[name] = true
		names = append(names, name)
	}
	return names, nil
}

// writeNew writes a file that must not exist yet.
func writeNew(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = file.WriteString(text)
	if err := cmp.Or(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// printNotes prints the notes and the sum, and returns an exit status of 1 where
// something is missing.
func printNotes(out io.Writer, r convert.Result) error {
	leftOut := 0
	for _, d := range r.Documents {
		if d.LeftOut {
			leftOut++
		}
	}
	for _, n := range append(r.Unreadable, r.Notes...) {
		_, _ = fmt.Fprintln(out, n)
	}
	sum := fmt.Sprintf("%s converted, %s, %d left out", plural(len(r.Documents)-leftOut, "document"), plural(len(r.Notes), "note"), leftOut)
	if r.Ignored > 0 {
		sum += fmt.Sprintf(", %d of other kinds ignored", r.Ignored)
	}
	if len(r.Unreadable) > 0 {
		sum += fmt.Sprintf(", %d unreadable", len(r.Unreadable))
	}
	_, _ = fmt.Fprintln(out, sum)
	switch {
	case leftOut > 0 || len(r.Unreadable) > 0:
		return cli.ExitError(1)
	case len(r.Documents) == 0 && len(r.Notes) == 0:
		return errors.New("nothing to convert: give the manifests of EtcdClusters, EtcdBackups and the like, or the directory that holds them")
	}
	return nil
}
