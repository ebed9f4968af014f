package follow

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quorate/quorate/reconciler/desired"
	"github.com/quorate/quorate/reconciler/desired/desiredtest"
	"github.com/quorate/quorate/schema"
	"github.com/quorate/quorate/sources"
	"github.com/quorate/quorate/test/needs"
)

// annotate approves a commit as a person does.
func (f *followed) annotate(commit string) {
	f.Helper()
	cm := f.stored()
	cm.Annotations = map[string]string{annotationApprove: commit}
	if _, err := f.kube.CoreV1().ConfigMaps(cm.Namespace).Update(f.Context(), cm, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
}

func (f *followed) wantHeld(reason, says string) {
	f.Helper()
	for _, each := range []string{heldHistory, heldSignature, heldTooManyChanges} {
		want := 0.0
		if each == reason {
			want = 1
		}
		if got := testutil.ToFloat64(f.p.held.WithLabelValues(each)); got != want {
			f.Errorf("quorate_git_held{reason=%q} is %v, want %v", each, got, want)
		}
	}
	if !strings.Contains(f.log.String(), says) {
		f.Errorf("the log does not say %q:\n%s", says, f.log)
	}
}

// 132: a daemon that starts while the repository is away continues with the commit
// that was accepted last; one that never had any touches nothing.
func TestRestartDuringAnOutageKeepsTheLastGoodCommit(t *testing.T) {
	f := follow(t)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.Commit("clusters/users.yaml", desiredtest.ClusterFile("users", "3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.16", "shop/users 3.6.16"}, 0, 0, 0)
	f.Commit("clusters/users.yaml", desiredtest.BrokenFile)
	f.pollOnce([]string{"shop/orders 3.6.16", "shop/users held"}, 0, 1, 0)

	back := f.Away()
	f.restart()
	f.pollOnce([]string{"shop/orders 3.6.16", "shop/users held"}, 1, 1, 1)
	if !f.p.inForce.Load() {
		t.Error("not ready with the commit that was kept")
	}
	f.pollOnce([]string{"shop/orders 3.6.16", "shop/users held"}, 2, 1, 0)
	back()
	f.pollOnce([]string{"shop/orders 3.6.16", "shop/users held"}, 0, 1, 0)
	f.restart()
	f.pollOnce([]string{"shop/orders 3.6.16", "shop/users held"}, 0, 1, 0)
}

// I13: a history that was rewritten holds, over restarts, until a person approves
// the new head by its hash.
func TestRewrittenHistoryHoldsUntilApproved(t *testing.T) {
	f := follow(t)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)

	f.Git("reset", "--quiet", "--hard", "HEAD~1")
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 1)
	f.wantHeld(heldHistory, "annotate --overwrite configmap "+f.p.store.name)
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	f.restart()
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 1)

	f.annotate(strings.Repeat("0", 40))
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	f.annotate(f.Head())
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.wantHeld("", `msg="commit accepted"`)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.12"))
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 0)

	// An approval is for one commit, not for the next one as well.
	f.Git("reset", "--quiet", "--hard", "HEAD~1")
	f.Git("commit", "--quiet", "--allow-empty", "-m", "Another")
	f.pollOnce([]string{"shop/orders 3.6.12"}, 0, 0, 1)
	f.approved = f.Head()
	f.restart()
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
}

// wantSigned has the next restart want signatures of ada@example.com, which commits get once
// sign is called.
func (f *followed) wantSigned() (sign func()) {
	f.Helper()
	key := filepath.Join(f.TempDir(), "key")
	generate := exec.Command(needs.Program(f, "ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key)
	if out, err := generate.CombinedOutput(); err != nil {
		f.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		f.Fatal(err)
	}
	f.signers.Secret = func(context.Context) (map[string][]byte, error) {
		return map[string][]byte{"allowed_signers": append([]byte("ada@example.com "), public...)}, nil
	}
	return func() {
		for name, value := range map[string]string{"gpg.format": "ssh", "user.signingKey": key, "commit.gpgSign": "true"} {
			f.Git("config", name, value)
		}
	}
}

// 140: a commit that must be signed waits until it is, and the log says who signed the one
// that is accepted, after a restart as well.
func TestLogNamesWhoSigned(t *testing.T) {
	f := follow(t)
	sign := f.wantSigned()
	f.restart()
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce(nil, 0, 0, 1)
	f.wantHeld(heldSignature, "is not signed")
	sign()
	f.Git("commit", "--quiet", "--amend", "-m", "Sign")
	for range 2 {
		f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
		f.wantHeld("", ` of ada@example.com" commit=`+f.Head())
		if d := f.p.Details(); !strings.HasSuffix(d.Signer, " of ada@example.com") {
			t.Errorf("details are %+v", d)
		}
		if a := f.r.Desired()["shop/orders"].Accepted; !strings.HasSuffix(a.Signer, " of ada@example.com") || a.Approval != "" {
			t.Errorf("the cluster's commit was accepted by %+v", a)
		}
		f.restart()
	}
}

// 140: where signatures are wanted, a tag that has none is held, be it at the commit in force. A
// person approves it once, and who signed the one that is accepted is known after a restart.
func TestTagWithoutASignatureIsHeld(t *testing.T) {
	f := follow(t)
	f.wantSigned()()
	f.semver = "1.x"
	f.restart()
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.Git("tag", "-s", "-m", "words", "v1.0.0")
	for range 2 {
		f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
		f.wantHeld("", `tag=v1.0.0 tagSigner="SSH key SHA256:`)
		if d := f.p.Details(); d.Tag.Name != "v1.0.0" || !strings.HasSuffix(d.Tag.Signer, " of ada@example.com") || !strings.HasSuffix(d.Signer, " of ada@example.com") {
			t.Errorf("details are %+v", d)
		}
		f.restart()
	}

	head := f.Head()
	f.Git("tag", "v1.9.0")
	for range 2 {
		f.restart()
		f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 1)
		f.wantHeld(heldSignature, "tag v1.9.0 is a lightweight one")
		f.wantHeld(heldSignature, "quorate.dev/approve="+head+".."+head)
		if !f.p.inForce.Load() {
			t.Error("the accepted commit is not in force")
		}
	}
	f.annotate(head + ".." + head)
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.wantHeld("", "approval="+head+".."+head)
	if left := f.stored().Annotations[annotationApprove]; left != "" {
		t.Errorf("the annotation %q is left", left)
	}
	f.restart()
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	f.Git("tag", "v1.9.1")
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 1)
	f.wantHeld(heldSignature, "tag v1.9.1 is a lightweight one")

	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
	f.Git("tag", "-s", "-m", "words", "v1.10.0")
	f.pollOnce([]string{"shop/orders 3.6.17"}, 0, 0, 0)
	f.wantHeld("", "tag=v1.10.0 ")
}

// fourClusters are the documents of four clusters of version 3.6.16.
func fourClusters() string {
	text := ""
	for _, name := range []string{"a", "b", "c", "d"} {
		text += "---\n" + desiredtest.ClusterFile(name, "3.6.16")
	}
	return text
}

// 134: a commit that empties the directory, or changes what many files have in
// common, waits for approval.
func TestMassChangeHoldsUntilApproved(t *testing.T) {
	f := follow(t)
	text := fourClusters()
	all := []string{"shop/a 3.6.16", "shop/b 3.6.16", "shop/c 3.6.16", "shop/d 3.6.16"}
	f.Commit("clusters/all.yaml", text)
	f.pollOnce(all, 0, 0, 0)
	f.Git("mv", "clusters/all.yaml", "clusters/renamed.yaml")
	f.Git("commit", "--quiet", "-m", "Rename")
	f.pollOnce(all, 0, 0, 0)

	f.Commit("clusters/renamed.yaml", "# nothing\n")
	f.pollOnce(all, 0, 0, 1)
	f.wantHeld(heldTooManyChanges, "shop/a removed, shop/b removed, shop/c removed, shop/d removed")
	f.pollOnce(all, 0, 0, 0)
	f.restart()
	f.pollOnce(all, 0, 0, 1)
	f.Commit("clusters/renamed.yaml", strings.ReplaceAll(text, "3.6.16", "3.6.17"))
	f.pollOnce(all, 0, 0, 1)
	f.wantHeld(heldTooManyChanges, "shop/a 3.6.16 → 3.6.17")
	f.Commit("clusters/renamed.yaml", strings.Replace(text, "3.6.16", "3.6.17", 2))
	f.pollOnce([]string{"shop/a 3.6.17", "shop/b 3.6.17", "shop/c 3.6.16", "shop/d 3.6.16"}, 0, 0, 0)
	f.Commit("clusters/renamed.yaml", "# nothing\n")
	f.pollOnce([]string{"shop/a 3.6.17", "shop/b 3.6.17", "shop/c 3.6.16", "shop/d 3.6.16"}, 0, 0, 1)
	f.annotate(f.Head())
	f.pollOnce(nil, 0, 0, 0)
	f.wantHeld("", `msg="commit accepted"`)
}

// 134: one line that many files share may decide what runs in all of them, as whom, and on
// which volumes, or stop them. That waits for approval, also after a restart.
func TestMassChangeOfWhatRunsHolds(t *testing.T) {
	const storage = "storage: {size: 8Gi}"
	spec := `{version: "3.6.16", replicas: 3, ` + storage + "}"
	object := func(kind, name, spec string) string {
		return "---\napiVersion: quorate.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: shop}\nspec: " + spec + "\n"
	}
	text := ""
	for _, name := range []string{"a", "b", "c"} {
		text += object("EtcdCluster", name, spec)
	}
	text += object("EtcdRestore", "d", `{source: {objectURL: "s3://backups/1.db"}, clusterTemplate: `+spec+"}")
	all := []string{"shop/a 3.6.16", "shop/b 3.6.16", "shop/c 3.6.16", "shop/d 3.6.16"}
	for says, change := range map[string][2]string{
		"shop/a image, shop/b image, shop/c image, shop/d image":                                             {storage, storage + ", image: {repository: registry.example.com/etcd}"},
		"shop/a security context, shop/b security context, shop/c security context, shop/d security context": {storage, storage + ", podTemplate: {spec: {securityContext: {runAsUser: 0}}}"},
		"shop/a storage, shop/b storage, shop/c storage, shop/d storage":                                     {storage, "storage: {size: 16Gi}"},
		"shop/a hibernated, shop/b hibernated, shop/c hibernated;":                                           {storage, storage + ", state: Hibernated"},
	} {
		t.Run(says, func(t *testing.T) {
			f := follow(t)
			f.Commit("clusters/all.yaml", text)
			f.pollOnce(all, 0, 0, 0)
			f.Commit("clusters/all.yaml", strings.Replace(text, change[0], change[1], 1))
			f.pollOnce(all, 0, 0, 0)
			f.Commit("clusters/all.yaml", text)
			f.pollOnce(all, 0, 0, 0)
			f.Commit("clusters/all.yaml", strings.ReplaceAll(text, change[0], change[1]))
			f.restart()
			f.pollOnce(all, 0, 0, 1)
			f.wantHeld(heldTooManyChanges, " clusters at once: "+says)
		})
	}
}

// 134: a commit is measured against the one in force: what was too much at once is not once
// half of it has been accepted.
func TestAMassChangeIsMeasuredAnew(t *testing.T) {
	f := follow(t)
	text := fourClusters()
	f.Commit("clusters/all.yaml", text)
	f.pollOnce([]string{"shop/a 3.6.16", "shop/b 3.6.16", "shop/c 3.6.16", "shop/d 3.6.16"}, 0, 0, 0)
	f.Commit("clusters/all.yaml", strings.Replace(text, "3.6.16", "3.6.17", 2))
	half := f.Head()
	f.Commit("clusters/all.yaml", strings.ReplaceAll(text, "3.6.16", "3.6.17"))
	whole := f.Head()
	f.pollOnce([]string{"shop/a 3.6.16", "shop/b 3.6.16", "shop/c 3.6.16", "shop/d 3.6.16"}, 0, 0, 1)
	f.reset(half)
	f.pollOnce([]string{"shop/a 3.6.17", "shop/b 3.6.17", "shop/c 3.6.16", "shop/d 3.6.16"}, 0, 0, 0)
	f.reset(whole)
	f.pollOnce([]string{"shop/a 3.6.17", "shop/b 3.6.17", "shop/c 3.6.17", "shop/d 3.6.17"}, 0, 0, 0)
}

// A commit is kept before it is acted on; where that is impossible it waits.
func TestCommitThatCannotBeKeptIsNotActedOn(t *testing.T) {
	f := follow(t)
	broken := true
	f.kube.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return broken, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "x", nil)
	})
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce(nil, 1, 0, 1)
	if !strings.Contains(f.log.String(), "--lease-namespace") {
		t.Errorf("said %s", f.log)
	}
	broken = false
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
}

// What is kept and cannot be read is not taken for nothing.
func TestDamagedKeptCommitHolds(t *testing.T) {
	f := follow(t)
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	api := f.kube.CoreV1().ConfigMaps("quorate-system")
	cm := f.stored()
	good := cm.DeepCopy()
	for name, damage := range map[string]func(){
		"clusters": func() { cm.BinaryData[keyClusters] = []byte("x") },
		"requests": func() { cm.BinaryData[keyRequests] = []byte("[]") },
		"snapshot": func() { cm.BinaryData[keySnapshot] = nil },
		"commit":   func() { cm.Data[keyCommit] = "" },
	} {
		cm = good.DeepCopy()
		damage()
		if _, err := api.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.restart()
		f.pollOnce(nil, 1, 0, 1)
		if !strings.Contains(f.log.String(), "cannot be parsed") {
			t.Errorf("%s: said %s", name, f.log)
		}
	}
}

// Files that are too large for the cluster are left out, and the rest is kept.
func TestLargeFilesAreNotKept(t *testing.T) {
	f := follow(t)
	noise := make([]byte, 0, 1<<20)
	state := uint32(1)
	for len(noise) < cap(noise)-100 {
		state = state*1664525 + 1013904223
		noise = append(noise, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[state>>26])
	}
	f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
	f.Commit("clusters/once.yaml", backupFile("EtcdBackup", "once", "%s"))
	for _, name := range []string{"a", "b"} {
		f.Commit("clusters/"+name+".yaml", "# "+string(noise)+"\n")
	}
	f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
	if !strings.Contains(f.log.String(), "too large to save") {
		t.Errorf("said %s", f.log)
	}
	f.Commit("clusters/once.yaml", "kind: [quorate.dev")
	f.restart()
	f.wantRequests("after a start", "EtcdBackup shop/once held")
	f.Git("commit", "--quiet", "--amend", "-m", "Rewritten")
	f.restart()
	f.pollOnce(nil, 0, 0, 1)
	f.wantHeld(heldHistory, "does not descend")
}

// Without the clusters of the accepted commit a start would take nothing for a mass
// change: they are never left out. Whether they fit is for the API server to say.
func TestClustersAreKeptWhateverTheirSize(t *testing.T) {
	clusters := map[string]desired.Origin{}
	for i := range 50_000 {
		sum := sha256.Sum256(binary.AppendVarint(nil, int64(i)))
		o := desired.Origin{Namespace: "shop", Name: hex.EncodeToString(sum[:]), File: "all.yaml"}
		clusters[o.Key()] = o
	}
	k := newStore(fake.NewClientset(), "quorate-system", "default", "source")
	whole, err := k.save(t.Context(), accepted{snapshot: sources.Snapshot{Commit: "0a1b2c3"}, clusters: clusters}, "")
	if err != nil || whole {
		t.Fatal(whole, err)
	}
	if found, err := k.load(t.Context()); err != nil || len(found.clusters) != len(clusters) {
		t.Errorf("read back: %+v, %v", found, err)
	}
}

// A backup that is asked for is known by the hash of what its file says, so keeping it
// must not change that.
func TestKeptRequestsSayTheSame(t *testing.T) {
	files, err := sources.ReadPaths(t.Context(), []string{"../../../../examples"}, sources.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	set := Parse(&schema.Parser{}, files)
	k := newStore(fake.NewClientset(), "quorate-system", "default", "source")
	said := desired.Backups(set, "0a1b2c3", nil)
	if _, err := k.save(t.Context(), accepted{snapshot: sources.Snapshot{Commit: "0a1b2c3"}, backups: said}, ""); err != nil {
		t.Fatal(err)
	}
	found, err := k.load(t.Context())
	if err != nil || len(said) < 5 || !reflect.DeepEqual(found.backups, said) {
		t.Errorf("%d requests, %v:\n%+v\nwere\n%+v", len(said), err, found.backups, said)
	}
}

// 575: what a newer quorate has stored may mean something else than it seems to, so an older
// one keeps what it has and says which one to run.
func TestCommitStoredByANewerQuorateIsNotFollowed(t *testing.T) {
	for format, says := range map[string]string{
		"2":   "format 2 was written by a newer quorate and this one knows formats up to 1: run the newer one",
		"two": `formatVersion \"two\" is no number`,
	} {
		f := follow(t)
		f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.16"))
		f.pollOnce([]string{"shop/orders 3.6.16"}, 0, 0, 0)
		cm := f.stored()
		cm.Data[keyFormat] = format
		if _, err := f.kube.CoreV1().ConfigMaps(cm.Namespace).Update(f.Context(), cm, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.restart()
		f.Commit("clusters/orders.yaml", desiredtest.ClusterFile("orders", "3.6.17"))
		f.p.Once(t.Context(), f.r)
		if got := f.r.Desired(); len(got) > 0 || !strings.Contains(f.log.String(), says) {
			t.Errorf("format %s: wants %v, and the log is\n%s", format, got, f.log)
		}
		if kept := f.stored(); kept.Data[keyFormat] != format {
			t.Errorf("the ConfigMap says format %s, want %s", kept.Data[keyFormat], format)
		}
	}
}
