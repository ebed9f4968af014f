package execute_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/reconciler"
	"github.com/quorate/quorate/reconciler/backup"
	"github.com/quorate/quorate/reconciler/backup/backuptest"
	"github.com/quorate/quorate/reconciler/backup/signing"
	"github.com/quorate/quorate/reconciler/execute"
	"github.com/quorate/quorate/reconciler/plan/action"
	"github.com/quorate/quorate/reconciler/plan/decision"
	"github.com/quorate/quorate/reconciler/reconcilertest"
	"github.com/quorate/quorate/reconciler/record"
	"github.com/quorate/quorate/schema"
)

// users is the manifest of a backup that a restore may take.
func users() backup.Manifest {
	return backup.Manifest{Namespace: "shop", Name: "users", ClusterID: "c0", EtcdVersion: "3.6.16", Revision: 7}
}

// storedBy puts a backup below the directory of all backups.
func storedBy(w *reconcilertest.World, key *signing.Key, at string, m backup.Manifest) (objectURL string, stored backup.Manifest) {
	w.Helper()
	objectURL = "file://" + w.Backups + "/" + at + "?root=" + w.Backups
	stored, err := backup.Store{Key: key}.Save(w.Context(), objectURL, bytes.NewReader(backuptest.Snapshot(8<<10)), m)
	if err != nil {
		w.Fatal(err)
	}
	return objectURL, stored
}

// replaced puts another backup in the place of one, so that all hashes are right.
func replaced(w *reconcilertest.World, objectURL string, key *signing.Key, m backup.Manifest) backup.Manifest {
	w.Helper()
	for _, name := range []string{pathOf(objectURL), pathOf(objectURL) + backup.ManifestSuffix} {
		if err := os.Remove(name); err != nil {
			w.Fatal(err)
		}
	}
	stored, err := backup.Store{Key: key}.Save(w.Context(), objectURL, bytes.NewReader(backuptest.Snapshot(12<<10)), m)
	if err != nil {
		w.Fatal(err)
	}
	return stored
}

// rewritten changes a word of a stored manifest.
func rewritten(w *reconcilertest.World, objectURL, old, another string) {
	w.Helper()
	path := pathOf(objectURL) + backup.ManifestSuffix
	text, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(text, []byte(old)) {
		w.Fatalf("%s lacks %s", text, old)
	}
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(another), 1), 0o600)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func pathOf(objectURL string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(objectURL, "file://"), "?")
	return path
}

// signs gives the world the keys of an installation.
func signs(w *reconcilertest.World, keys *signing.Keys) {
	w.Reconfigure(func(o *reconciler.Options) { o.BackupKeys = keys })
}

// 493: who may write to the store replaces a backup and its manifest together, so that all hashes
// are right: where keys are trusted no restore takes it, each refusal names the object, the
// key that was found and the way on, and nothing is made. Git accepts one unsigned backup by
// its sha256, and says which keys it trusts; what was changed after it was signed is never
// accepted.
func TestAReplacedBackupIsNotRestored(t *testing.T) {
	keys, own := backuptest.NewKeys(t)
	_, other := backuptest.NewKeyFile(t)
	const unsigned, changed = "is not signed, and only what is signed by ", "does not match its signature: it was changed after it was signed"
	for name, c := range map[string]struct {
		keys   *signing.Keys
		attack func(w *reconcilertest.World, url string, was backup.Manifest) backup.Manifest
		// git says what the restore accepts of the backup that lies there now.
		git  func(s *schema.RestoreSource, was, is backup.Manifest)
		want []string
	}{
		"as it was taken": {keys: keys},
		"replaced": {
			keys: keys,
			attack: func(w *reconcilertest.World, url string, _ backup.Manifest) backup.Manifest {
				return replaced(w, url, nil, users())
			},
			want: []string{unsigned + own.Fingerprint(), "spec.source.acceptUnsigned: "},
		},
		"replaced, and no key is trusted": {
			attack: func(w *reconcilertest.World, url string, _ backup.Manifest) backup.Manifest {
				return replaced(w, url, nil, users())
			},
		},
		"replaced, and accepted": {
			keys: keys,
			attack: func(w *reconcilertest.World, url string, _ backup.Manifest) backup.Manifest {
				return replaced(w, url, nil, users())
			},
			git: func(s *schema.RestoreSource, _, is backup.Manifest) { s.AcceptUnsigned = is.SHA256 },
		},
		"replaced after another was accepted": {
			keys: keys,
			attack: func(w *reconcilertest.World, url string, _ backup.Manifest) backup.Manifest {
				return replaced(w, url, nil, users())
			},
			git:  func(s *schema.RestoreSource, was, _ backup.Manifest) { s.AcceptUnsigned = was.SHA256 },
			want: []string{unsigned},
		},
		"signed by another": {
			keys: keys,
			attack: func(w *reconcilertest.World, url string, _ backup.Manifest) backup.Manifest {
				return replaced(w, url, other, users())
			},
			want: []string{
				"is signed by " + other.Fingerprint() + ", and only what is signed by " + own.Fingerprint(),
				"spec.source.trustedKeys", "--backup-trusted-keys-file",
			},
		},
		"signed by another, which is no word for it": {
			keys: keys,
			attack: func(w *reconcilertest.World, url string, _ backup.Manifest) backup.Manifest {
				return replaced(w, url, other, users())
			},
			git:  func(s *schema.RestoreSource, _, is backup.Manifest) { s.AcceptUnsigned = is.SHA256 },
			want: []string{"is signed by " + other.Fingerprint()},
		},
		"signed by another, whom Git trusts": {
			keys: keys,
			attack: func(w *reconcilertest.World, url string, _ backup.Manifest) backup.Manifest {
				return replaced(w, url, other, users())
			},
			git: func(s *schema.RestoreSource, _, _ backup.Manifest) {
				s.TrustedKeys = []string{own.Fingerprint(), other.Fingerprint()}
			},
		},
		"signed by its own, and Git trusts another": {
			keys: keys,
			git:  func(s *schema.RestoreSource, _, _ backup.Manifest) { s.TrustedKeys = []string{other.Fingerprint()} },
			want: []string{"is signed by " + own.Fingerprint() + ", and only what is signed by " + other.Fingerprint()},
		},
		"unsigned, and Git alone trusts a key": {
			attack: func(w *reconcilertest.World, url string, _ backup.Manifest) backup.Manifest {
				return replaced(w, url, nil, users())
			},
			git:  func(s *schema.RestoreSource, _, _ backup.Manifest) { s.TrustedKeys = []string{own.Fingerprint()} },
			want: []string{unsigned + own.Fingerprint()},
		},
		"replaced under the old signature": {
			keys: keys,
			attack: func(w *reconcilertest.World, url string, was backup.Manifest) backup.Manifest {
				is := replaced(w, url, nil, users())
				text, err := was.Encode()
				if err != nil {
					w.Fatal(err)
				}
				if err := os.WriteFile(pathOf(url)+backup.ManifestSuffix, text, 0o600); err != nil {
					w.Fatal(err)
				}
				rewritten(w, url, was.SHA256, is.SHA256)
				rewritten(w, url, `"size": 8224`, `"size": 12320`)
				return is
			},
			git: func(s *schema.RestoreSource, _, is backup.Manifest) {
				s.AcceptUnsigned, s.TrustedKeys = is.SHA256, []string{own.Fingerprint()}
			},
			want: []string{changed, "who else writes to the store"},
		},
		"of another cluster, by its words": {
			keys: keys,
			attack: func(w *reconcilertest.World, url string, was backup.Manifest) backup.Manifest {
				rewritten(w, url, `"clusterID": "c0"`, `"clusterID": "c9"`)
				return was
			},
			git:  func(s *schema.RestoreSource, _, is backup.Manifest) { s.AcceptUnsigned = is.SHA256 },
			want: []string{changed},
		},
		"changed, and no key is trusted": {
			attack: func(w *reconcilertest.World, url string, was backup.Manifest) backup.Manifest {
				rewritten(w, url, `"revision": 7`, `"revision": 8`)
				return was
			},
			want: []string{changed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Run(t, func(w *reconcilertest.World) {
				signs(w, c.keys)
				url, was := storedBy(w, own, "shop/users/1.db", users())
				is := was
				if c.attack != nil {
					is = c.attack(w, url, was)
				}
				w.AsksRestore(url)
				if c.git != nil {
					c.git(&w.Wish.Restore.Source, was, is)
				}
				chosen, errChoose := w.R.Executor.Stores.Choose(w.Context(), w.Wish, w.R.Executor.Now())
				err := w.Do(w.Begins())
				if len(c.want) == 0 {
					if err != nil || errChoose != nil || chosen.Problem != "" || w.Record().Recovering.SHA256 != is.SHA256 {
						t.Errorf("%v, %v, %+v", err, errChoose, chosen)
					}
					return
				}
				backuptest.WantError(t, err, append(c.want, "restore back", "shop/users/1.db")...)
				if errChoose != nil || err == nil || !strings.Contains(err.Error(), chosen.Problem+"; "+chosen.Do) || chosen.Do == "" {
					t.Errorf("%+v, %v, want the same as %v", chosen, errChoose, err)
				}
				if len(w.Contents()) > 0 {
					t.Errorf("there is %v", w.Contents())
				}
			})
		})
	}
}

// Each way on that a refusal names leads on: what it prints, committed as it stands.
func TestTheWayOnThatARefusalNames(t *testing.T) {
	keys, _ := backuptest.NewKeys(t)
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		signs(w, keys)
		url, m := storedBy(w, nil, "shop/users/1.db", users())
		w.AsksRestore(url)
		err := w.Do(w.Begins())
		backuptest.WantError(t, err, `commit spec.source.acceptUnsigned: "`+m.SHA256+`"`)
		w.Wish.Restore.Source.AcceptUnsigned = m.SHA256
		w.MustDo(w.Begins())
	})
}

// A recovery is refused like a restore, and accepts like one.
func TestAReplacedBackupIsNotRecoveredFrom(t *testing.T) {
	keys, own := backuptest.NewKeys(t)
	_, other := backuptest.NewKeyFile(t)
	orders := backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1", EtcdVersion: "3.6.16", Revision: 7}
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		signs(w, keys)
		w.Sign(nil)
		signed(w)
		url, m := storedBy(w, own, "shop/orders/1.db", orders)
		rest := func(accepts string) error {
			a := action.BeginRecovery{ClusterID: "c1", ObjectURL: url, Version: "3.6.16"}
			return w.R.Executor.Rest(w.Context(), &record.Recovering{}, backup.Store{}, a, schema.RecoverySpec{ObjectURL: url, AcceptUnsigned: accepts})
		}
		if err := rest(""); err != nil {
			t.Error(err)
		}
		is := replaced(w, url, nil, orders)
		for _, accepted := range []string{"", m.SHA256} {
			backuptest.WantError(t, rest(accepted), "shop/orders/1.db", "is not signed", own.Fingerprint(), `commit spec.recovery.acceptUnsigned: "`+is.SHA256+`"`)
		}
		if err := rest(is.SHA256); err != nil {
			t.Error(err)
		}
		is = replaced(w, url, other, orders)
		backuptest.WantError(t, rest(is.SHA256), "shop/orders/1.db", "is signed by "+other.Fingerprint(), "add its public key to --backup-trusted-keys-file")
		rewritten(w, url, `"revision": 7`, `"revision": 8`)
		backuptest.WantError(t, rest(is.SHA256), "shop/orders/1.db", "does not match its signature")
	})
}

// A former key, whose public one the installation still trusts, restores what it signed.
func TestAFormerKeyIsTrusted(t *testing.T) {
	former, old := backuptest.NewKeyFile(t)
	path, _ := backuptest.NewKeyFile(t)
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	if err := os.WriteFile(trusted, backuptest.PublicPEM(t, former), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := signing.OpenKeys(path, trusted, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		signs(w, keys)
		url, _ := storedBy(w, old, "shop/users/1.db", users())
		w.AsksRestore(url)
		w.MustDo(w.Begins())
	})
}

// What a record says of a backup is compared with what was signed, before it is given out:
// who may write the record and the store has nothing restored that nobody signed.
func TestARecordDoesNotSayWhichBytesAreRestored(t *testing.T) {
	keys, own := backuptest.NewKeys(t)
	orders := backup.Manifest{Namespace: "shop", Name: "orders", ClusterID: "c1"}
	for name, c := range map[string]struct {
		change func(w *reconcilertest.World, url string) backup.Manifest
		git    func(r *schema.RecoverySpec, url string, m backup.Manifest)
		want   []string
	}{
		"as it was taken": {},
		"as it was taken, and named in Git": {
			git: func(r *schema.RecoverySpec, url string, _ backup.Manifest) { r.ClusterID, r.ObjectURL = "c1", url },
		},
		"other bytes": {
			change: func(w *reconcilertest.World, url string) backup.Manifest {
				m := replaced(w, url, own, orders)
				m.SHA256 = strings.Repeat("0a", 32)
				return m
			},
			want: []string{"the record names the backup", "with sha256 0a0a", "and its manifest says"},
		},
		"unsigned": {
			change: func(w *reconcilertest.World, url string) backup.Manifest { return replaced(w, url, nil, orders) },
			want:   []string{"is not signed", own.Fingerprint()},
		},
		"unsigned, and named in Git": {
			change: func(w *reconcilertest.World, url string) backup.Manifest { return replaced(w, url, nil, orders) },
			git:    func(r *schema.RecoverySpec, url string, _ backup.Manifest) { r.ClusterID, r.ObjectURL = "c1", url },
			want:   []string{"is not signed", "spec.recovery.acceptUnsigned"},
		},
		"unsigned, and accepted in Git": {
			change: func(w *reconcilertest.World, url string) backup.Manifest { return replaced(w, url, nil, orders) },
			git: func(r *schema.RecoverySpec, url string, m backup.Manifest) {
				r.ClusterID, r.ObjectURL, r.AcceptUnsigned = "c1", url, m.SHA256
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			reconcilertest.Formed(t, func(w *reconcilertest.World) {
				signs(w, keys)
				urls := signed(w)
				url, m := storedBy(w, own, "shop/orders/1.db", orders)
				a := restoresOnto(w)
				if c.change != nil {
					m = c.change(w, url)
				}
				w.Notes(func(r *record.Record) {
					r.Recovering.ObjectURL, r.Recovering.SHA256, r.Recovering.Size = url, m.SHA256, m.Size
				})
				if c.git != nil {
					c.git(&w.Wish.Spec.Recovery, url, m)
					w.Wish.Spec.Recovery.Member = ""
				}
				err := w.Do(a)
				if len(c.want) == 0 {
					if err != nil || len(*urls) != 1 || len(reconcilertest.JobsOf(w)) != 1 {
						t.Errorf("signed %q, %v", *urls, err)
					}
					return
				}
				backuptest.WantError(t, err, append(c.want, "offer the backup of the restore", "shop/orders/1.db")...)
				if len(*urls) > 0 {
					t.Errorf("signed %q", *urls)
				}
				wantNoOffer(w)
			})
		})
	}
}

// A backup that a cluster takes for itself is signed, and one that the next step rests on
// need not be: the record has its sha256.
func TestBackupsAreSigned(t *testing.T) {
	keys, own := backuptest.NewKeys(t)
	reconcilertest.Formed(t, func(w *reconcilertest.World) {
		signs(w, keys)
		w.Commit(func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.16" })
		w.MustDo(execute.TakeForTest())
		m := w.Manifests()[0]
		if m.Forged || m.Signature == nil || m.Signature.Key != own.Fingerprint() || m.SHA256 != w.Record().Backup.SHA256 {
			t.Errorf("%+v", m)
		}
	}, func(c *schema.EtcdCluster) { c.Spec.Version = "3.6.12" })
}

// Somebody puts an unsigned backup beside the good ones that is newer than these: the plan
// holds the restore of the newest one with what a person can do, and takes no other in its
// place. The line that it names, committed, leads on; so does the URL of a good one.
func TestARestoreOfWhatIsNotSignedIsHeld(t *testing.T) {
	keys, own := backuptest.NewKeys(t)
	for _, accepts := range []bool{true, false} {
		reconcilertest.Run(t, func(w *reconcilertest.World) {
			signs(w, keys)
			older, newer := users(), users()
			older.Time, newer.Time = w.R.Executor.Now().Add(-2*time.Hour), w.R.Executor.Now().Add(-time.Hour)
			good, _ := storedBy(w, own, "shop/users/good.db", older)
			_, m := storedBy(w, nil, "shop/users/planted.db", newer)
			w.AsksRestore("")
			from(w, "users", "/shop/users/")
			w.WantHold(decision.Refused, "restore", "EtcdRestore back is refused: the manifest of the backup at file://"+w.Backups+"/shop/users/planted.db is not signed, and only what is signed by "+own.Fingerprint()+" is restored")
			w.WantHold(decision.Refused, "restore", `commit spec.source.acceptUnsigned: "`+m.SHA256+`"`)
			if len(w.Contents()) > 0 {
				t.Errorf("there is %v", w.Contents())
			}
			want := "planted.db"
			w.Wish.Restore.Source.AcceptUnsigned = m.SHA256
			if !accepts {
				w.Wish.Restore.Source, w.Wish.Restore.From, want = schema.RestoreSource{ObjectURL: good}, nil, "good.db"
			}
			w.Wish.Restore.SpecHash = "r2"
			w.MustPass()
			if r := w.Record().Restored; r == nil || !strings.HasSuffix(r.Object, want) {
				t.Errorf("%+v, want %s\n%s", r, want, w.Log)
			}
		})
	}
}

// A backup that was copied, or put in the place of another, is restored where its signature
// matches, and a person sees where it was written.
func TestACopyIsToldOf(t *testing.T) {
	keys, own := backuptest.NewKeys(t)
	reconcilertest.Run(t, func(w *reconcilertest.World) {
		signs(w, keys)
		_, m := storedBy(w, own, "shop/users/old.db", users())
		url, _ := storedBy(w, own, "shop/users/named.db", users())
		for _, suffix := range []string{"", backup.ManifestSuffix} {
			text, err := os.ReadFile(strings.TrimPrefix(m.Object, "file://") + suffix)
			if err == nil {
				err = os.WriteFile(pathOf(url)+suffix, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		w.AsksRestore(url)
		w.MustDo(w.Begins())
		if got := w.Record().Restored.Chosen; !strings.Contains(got, `/shop/users/named.db, a copy of "`+m.Object+`"`) {
			t.Error(got)
		}
	})
}
