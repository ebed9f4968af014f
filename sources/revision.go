package sources

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// ReadRevision reads what a revision of a local Git repository says at the given
// files and directories, by the rules of ReadPaths: the files have the same
// names as those on disk, so that the two can be compared. revision is a branch,
// a remote branch such as origin/main, a tag or a commit, with ~N or ^ behind it
// for an earlier one.
//
// A path that the revision does not have is no error: there was nothing yet, and
// where that is so of all paths, the snapshot's Tree is empty. The paths must lie
// in one repository; they need not exist on disk. A revision that cannot be found
// is an ErrBranchGone, a path outside a repository an ErrRepositoryNotFound.
func ReadRevision(ctx context.Context, paths []string, revision string, limits Limits) (Snapshot, error) {
	r := &revisionReader{
		collector: collector{limits: limits.withDefaults()},
		revision:  revision,
		seen:      map[string]bool{},
	}
	for _, given := range paths {
		if err := r.read(ctx, given); err != nil {
			return Snapshot{}, explain(ctx, "read revision "+revision, err)
		}
	}
	r.out.Files, r.out.Skipped = r.sorted()
	return r.out, nil
}

// revisionReader gathers the files of one revision.
type revisionReader struct {
	collector
	revision string
	clone    *clone // of the first path
	head     plumbing.Hash
	seen     map[string]bool // files by path, as the paths asked for may overlap
	out      Snapshot
}

// read adds what the revision has at one path of this machine.
func (r *revisionReader) read(ctx context.Context, given string) error {
	inside, err := r.enter(given)
	if err != nil {
		return err
	}
	part, err := readAt(ctx, objects{EncodedObjectStorer: r.clone.Storer}, r.head, inside, r.limits)
	if err != nil {
		return r.clone.hint(err)
	}
	if r.out.Commit == "" || r.out.Tree == "" && part.Tree != "" {
		r.out = part
	}
	return r.rename(part, given, inside)
}

// enter returns where in the repository a path lies. The first path decides which
// repository that is.
func (r *revisionReader) enter(given string) (string, error) {
	path, err := realPath(given)
	if err != nil {
		return "", unreadable(err)
	}
	root, err := rootAround(given, path)
	if err != nil {
		return "", err
	}
	if r.clone == nil {
		if r.clone, err = openClone(root); err != nil {
			return "", err
		}
		if r.head, err = r.clone.resolve(r.revision); err != nil {
			return "", err
		}
	}
	if root != r.clone.root {
		return "", notFound(fmt.Sprintf("%s lies in the repository %s, and what was given before it in %s", given, root, r.clone.root), "give the paths of one repository")
	}
	inside, err := filepath.Rel(root, path)
	if err != nil || inside == "." {
		return "", err
	}
	return filepath.ToSlash(inside), nil
}

// rename gives what was read at one path the names that it has on disk.
func (r *revisionReader) rename(part Snapshot, given, inside string) error {
	root := filepath.ToSlash(filepath.Clean(given))
	shown := func(name string) string {
		rest := strings.TrimPrefix(name, inside)
		switch {
		case root == ".":
			return strings.TrimPrefix(rest, "/")
		case inside == "":
			return strings.TrimSuffix(root, "/") + "/" + rest
		}
		return root + rest
	}
	for _, f := range part.Files {
		name := shown(f.Path)
		if r.seen[name] {
			continue
		}
		if _, err := r.admit(name, int64(len(f.Data))); err != nil {
			return err
		}
		r.seen[name] = true
		f.Path = name
		r.add(f)
	}
	for _, skipped := range part.Skipped {
		r.skipped = append(r.skipped, shown(skipped))
	}
	return nil
}

// realPath is an absolute path with its links followed, as far as it exists: a
// change may have removed the rest.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for there := path; ; there = filepath.Dir(there) {
		resolved, err := filepath.EvalSymlinks(there)
		if err == nil {
			return filepath.Join(resolved, strings.TrimPrefix(path, there)), nil
		}
		if there == filepath.Dir(there) {
			return "", err
		}
	}
}

// rootAround is the top directory of the working tree that a path lies in. given
// is the path as the messages name it.
func rootAround(given, path string) (string, error) {
	for dir := path; ; dir = filepath.Dir(dir) {
		switch {
		case exists(dir, ".git"):
			return dir, nil
		case exists(dir, "HEAD") && exists(dir, "objects") && exists(dir, "refs"):
			return "", notFound(given+" is in a bare repository, which has no work tree", "give a path in a clone of it")
		case dir == filepath.Dir(dir):
			return "", notFound(given+" is in no Git repository", "give a path in a clone of one")
		}
	}
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// clone is a repository with a working tree on this machine.
type clone struct {
	*git.Repository
	root string
}

func openClone(root string) (*clone, error) {
	repository, err := git.PlainOpenWithOptions(root, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	switch {
	case err == nil:
		return &clone{repository, root}, nil
	case errors.Is(err, git.ErrRepositoryNotExists):
		return nil, notFound("what .git in "+root+" points to is not a Git repository", "clone it again")
	case strings.Contains(strings.ToLower(err.Error()), "objectformat"):
		return nil, unreachable("the repository "+root+" names its objects by SHA-256, which quorate cannot read", "use a clone with SHA-1, which is Git's default")
	}
	return nil, unreachable(fmt.Sprintf("the repository %s cannot be opened (%s)", root, oneLine(osReason(err))), "see whether `git status` works there")
}

// revisionForm is what resolve understands: a name, and steps back from it. What
// else Git knows, such as a range, a time or a path, is refused, because go-git
// reads some of it as something else without a word.
var revisionForm = regexp.MustCompile(`^([^\s~^:?*\[\\@]+|@)((?:~[0-9]{0,6}|\^[0-2]?|\^\{\}|\^\{commit\})*)$`)

// resolve finds the commit of a revision.
func (c *clone) resolve(revision string) (plumbing.Hash, error) {
	form := revisionForm.FindStringSubmatch(revision)
	if form == nil || strings.Contains(revision, "..") {
		return plumbing.ZeroHash, unknownRevision("this is not the form of a revision",
			"write a branch, a remote branch such as origin/main, a tag or a commit, with ~N or ^ behind it for an earlier one")
	}
	start, err := c.find(form[1])
	if err != nil {
		return plumbing.ZeroHash, err
	}
	hash, err := c.ResolveRevision(plumbing.Revision(start.String() + form[2]))
	if err != nil {
		return plumbing.ZeroHash, unknownRevision("there is no such commit here", c.elsewhere())
	}
	return *hash, nil
}

// find resolves a name. As in Git a whole hash goes before a branch
// or tag of that name, and an abbreviated one behind it.
func (c *clone) find(name string) (plumbing.Hash, error) {
	if hash := plumbing.NewHash(name); plumbing.IsHash(name) && c.Storer.HasEncodedObject(hash) == nil {
		return hash, nil
	}
	if hash, ok := c.reference(name); ok {
		return hash, nil
	}
	switch commits := c.abbreviated(name); len(commits) {
	case 0:
		return plumbing.ZeroHash, c.unknown(name)
	case 1:
		return commits[0], nil
	default:
		return plumbing.ZeroHash, unknownRevision(fmt.Sprintf("%d commits begin with %s", len(commits), name), "write more of the hash")
	}
}

// reference finds a branch or tag by Git's own rules, "@" being HEAD.
func (c *clone) reference(name string) (plumbing.Hash, bool) {
	if name == "@" {
		name = "HEAD"
	}
	for _, rule := range plumbing.RefRevParseRules {
		ref, err := storer.ResolveReference(c.Storer, plumbing.ReferenceName(fmt.Sprintf(rule, name)))
		if err == nil {
			return ref.Hash(), true
		}
	}
	return plumbing.ZeroHash, false
}

// abbreviated finds the commits whose hash begins with a name of four digits or
// more.
func (c *clone) abbreviated(name string) []plumbing.Hash {
	storage, ok := c.Storer.(*filesystem.Storage)
	prefix, err := hex.DecodeString(name[:len(name)&^1]) // whole bytes; the last digit is compared below
	if !ok || err != nil || len(name) < 4 {
		return nil
	}
	hashes, err := storage.HashesWithPrefix(prefix)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(hashes, func(hash plumbing.Hash) bool {
		_, err := c.CommitObject(hash)
		return err != nil || !strings.HasPrefix(hash.String(), strings.ToLower(name))
	})
}

func unknownRevision(why, next string) *failure {
	return &failure{why: why, next: next, kinds: []error{ErrBranchGone}}
}

// inActions is the next step for a shallow clone in a CI system.
const inActions = "or in GitHub Actions give actions/checkout fetch-depth: 0"

// unknown tells what makes a name known.
func (c *clone) unknown(name string) *failure {
	if (diskSession{c.Repository}).isEmpty(context.Background()) {
		return unknownRevision("the repository has no commits yet", "commit something first")
	}
	if fetch := c.fetchCommand(name); fetch != "" {
		return unknownRevision("it is not known here", fmt.Sprintf("run `%s`, %s", fetch, inActions))
	}
	if _, ok := c.reference("origin/" + name); ok {
		return unknownRevision("it is not known here", "did you mean origin/"+name+"?")
	}
	return unknownRevision("it is not known here", c.elsewhere())
}

// elsewhere tells where a commit may be that this clone does not have.
func (c *clone) elsewhere() string {
	if commits, err := c.Storer.Shallow(); err == nil && len(commits) > 0 {
		return "this clone is shallow: run `git fetch --unshallow --tags`, " + inActions
	}
	if next := c.borrowed(); next != "" {
		return next
	}
	return "`git branch -a`, `git tag` and `git log` list what there is"
}

// fetchCommand makes a remote branch known; "" for another name. A clone
// of a single branch does not track other ones unless configured.
func (c *clone) fetchCommand(name string) string {
	origin, branch, _ := strings.Cut(name, "/")
	remote, err := c.Remote(origin)
	if err != nil || branch == "" {
		return ""
	}
	for _, spec := range remote.Config().Fetch {
		if spec.Match(plumbing.NewBranchReferenceName(branch)) {
			return "git fetch " + origin + " " + branch
		}
	}
	return fmt.Sprintf("git fetch %s %s:refs/remotes/%s", origin, branch, name)
}

// hint tells what to do where a clone lacks files on purpose.
func (c *clone) hint(err error) error {
	var f *failure
	if !errors.As(err, &f) || !errors.Is(err, ErrUnreachable) {
		return err
	}
	if next := c.borrowed(); next != "" {
		f.next = next
	}
	config, configErr := c.Config()
	if configErr != nil {
		return err
	}
	for _, remote := range config.Raw.Section("remote").Subsections {
		if remote.Option("promisor") == "true" {
			f.next = "this is a partial clone, which left files out: clone without --filter"
		}
	}
	return err
}

// borrowed tells what to do about objects that lie in another clone.
func (c *clone) borrowed() string {
	storage, ok := c.Storer.(*filesystem.Storage)
	if !ok {
		return ""
	}
	if _, err := storage.Filesystem().Stat("objects/info/alternates"); err != nil {
		return ""
	}
	return "this clone borrows from another one, which quorate does not read: run `git repack -a` and remove .git/objects/info/alternates"
}

// readAt reads what a commit has at a path, "" for all of it.
func readAt(ctx context.Context, objs objects, head plumbing.Hash, inside string, limits Limits) (Snapshot, error) {
	if inside == "" {
		return readCommit(ctx, objs, head, place{}, limits)
	}
	r := newTreeReader(objs, limits)
	commit, err := r.commit(head)
	if err != nil {
		return Snapshot{}, err
	}
	parent, entry, err := r.lookUp(commit, inside)
	switch {
	case err != nil:
		return Snapshot{}, err
	case entry == nil:
		nothing := r.snapshot(commit, &object.Tree{})
		nothing.Tree = ""
		return nothing, nil
	case entry.Mode == filemode.Dir:
		return readCommit(ctx, objs, head, place{dir: inside}, limits)
	case !isYAML(inside):
		r.skip(inside, "neither .yaml nor .yml")
	default:
		err = r.file(inside, entry.Hash)
	}
	return r.snapshot(commit, parent), err
}

// lookUp finds the entry at a path and its directory; nil for nothing. A link or
// a submodule in the path is an error rather than nothing: something is there, and
// what a change does to it is unknown.
func (r *treeReader) lookUp(commit *object.Commit, inside string) (parent *object.Tree, entry *object.TreeEntry, err error) {
	hash, rest := commit.TreeHash, inside
	for {
		name, below, more := strings.Cut(rest, "/")
		if parent, err = r.tree(hash); err != nil {
			return nil, nil, err
		}
		entry = find(parent, name)
		switch {
		case entry == nil:
			return nil, nil, nil
		case entry.Mode == filemode.Symlink || entry.Mode == filemode.Submodule:
			at := strings.TrimSuffix(strings.TrimSuffix(inside, below), "/")
			return nil, nil, &failure{
				why:  fmt.Sprintf("%s is %s there, which is never followed", at, kind(entry.Mode)),
				next: "give the path of the files themselves, in the clone that has them", kinds: []error{ErrPathGone},
			}
		case !more:
			return parent, entry, nil
		case entry.Mode != filemode.Dir:
			return nil, nil, nil
		}
		hash, rest = entry.Hash, below
	}
}
