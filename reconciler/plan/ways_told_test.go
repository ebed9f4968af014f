package plan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outside are what holds tell people of things that the worlds do not have, and why: their
// ways out are not taken here. Each is a part of the source of what a hold says to do.
func outside() map[string]string {
	const (
		late     = "what Kubernetes and etcd have begun comes to its end in a world: reconciler/plan/waits_test.go"
		restores = "no world has an EtcdRestore: reconciler/plan/restore_test.go"
		admits   = "no world has a policy that changes objects: reconciler/plan/fight_test.go"
		walked   = "walked through in every state of a recovery: TestEveryReachableStateOfARecovery"
		repaired = "ends when other members are well, which other holds ask for"
		controls = "asks for the cause as the holds do that say: find out why"
		certs    = "no world has certificates that end: reconciler/plan/certificates_test.go"
		asks     = "what is asked for again is not in a world: the rule's table"
		users    = "no world has users: their own simulation, reconciler/plan/auth/sim_test.go"
	)
	return map[string]string{
		"commit spec.auth.enabled: false": users, "a.NoSecret[user]": users,
		"whose common name is root": users, "the rollout comes before authentication": users,
		"s.UnsafeToDefragment(m)": "no world has a volume too small for a copy; a release that must not be defragmented has a way (alarms)",
		"lostNode(s, p)":          late, "find out which pod still uses it": late,
		"do not take finalizers off by hand": late, "checkLeader": late, "those that may still start count": late,
		"something that only %s can do may be in use": late, "it does not save snapshots": late,
		"r.HelpStart(": walked, "can be tried again by deleting the Job": walked,
		"awaitOthers(": "a world has one cluster: reconciler/plan/fleet_test.go",
		"set spec.backup.destination.objectURLTemplate":         asks,
		"find out what answers under the names of this cluster": "one world has one cluster ID",
		"situation.KeptOn(":                                       "no world has both a recovery and what comes after it: reconciler/plan/repair_test.go",
		"check the members named here":                            repaired,
		"check its pod and its node meanwhile":                    "the next try follows by itself",
		"let quorate read /metrics of the members":                "the leader of a world always says whom it hears",
		"strings.Join(ways,":                                      "spec.tls, the token and the like: one of them stands for all (immutable)",
		"where each of them ran %s or the minor below":            "what each member ran is for people to know",
		"from a backup of the Kubernetes API":                     "a record of a world can be read, or is gone (record)",
		"set spec.state to Running again":                         asks,
		"give the new cluster another name with spec.clusterName": restores,
		"name another release in spec.clusterTemplate.version":    restores,
		"w.Chosen.Do": restores,
		"give the EtcdRestore another metadata.name":                    restores,
		"revert that; or delete the half-made cluster first":            restores,
		"replace the document by an EtcdCluster":                        restores,
		"fix spec.maintenance in a new commit":                          asks,
		"fix what keeps that pod from starting":                         repaired,
		"restore that member manually":                                  repaired,
		"replace the Secrets named here":                                certs,
		"delete or rename the Secret":                                   "no world has applications with certificates: reconciler/plan/certificates_test.go",
		"check the clock of quorate's machine, and of the nodes":        certs,
		"put back the certificate from before":                          "no world has certificates of another issuer: reconciler/plan/trust_test.go, reconciler/observe/trust_test.go",
		"put the Secrets of its certificates and authorities back":      "the world of certificates alone has members that lost each other: reconciler/plan/certworld_test.go",
		"put these Secrets back from a backup":                          certs,
		"put the ca.crt that it had back":                               "no world has certificates of another issuer: reconciler/plan/trust_test.go, reconciler/observe/trust_test.go",
		"cannot renew it":                                               certs,
		"check that quorate reaches the ports 2379 and 2380":            "members of the world of certificates show at last what they should: reconciler/plan/certworld_test.go",
		"s.AskController()":                                             controls,
		"s.Unblock(":                                                    controls,
		"is replaced by a new member as soon as the others are healthy": repaired,
		"end the alarm with `etcdctl alarm disarm`":                     "no world has the alarm CORRUPT",
		"name a class that makes volumes":                               "each class of a world exists: reconciler/plan/volumes_test.go, reconciler/observe/trial_test.go",
		"check that member; quorate continues when it reports":          "each member of a world tells its version",
		"please report this bug":                                        "a mistake of quorate's own",
		"go there by two commits, each with its digest":                 "no world pins an image",
		"check its claim":                                               "the provisioner of a world always goes on",
		"wayOut(s, going)":                                              "the two texts of claims: delete its pod, or raise spec.replicas to 3",
		"letIn(s, p)":                                                   "the two texts of places: uncordon the node, revert, or delete the claim",
		"put it back by hand, write into the file":                      admits,
		"exempt(o)":                        admits,
		"let the policy, quota or webhook": admits,
		"set spec.mode to Enforce":         asks,
		"and its node; what is certain not to run is restarted": repaired,
		"s.Choices()": "the same as recovery",
		"restore the record; nothing is done until then":       walked,
		"and the claim is recreated and filled again":          walked,
		"fix the cause and delete Job":                         walked,
		"put the claim back on its volume":                     walked,
		"while its pod is there; nothing is stopped meanwhile": walked,
		"raise storage.size in its file":                       walked,
		"keep clients away from it":                            walked,
		"take spec.recovery out of the file":                   walked,
		"check what keeps quorate from port 2379":              "no way of a world leads from quorate to nobody and stays so",
		"spec.recovery is refused: %s; %s":                     walked,
	}
}

// 386: whatever the planner can tell a person has ways out that the simulation takes, or is
// named, with the reason, as what its worlds do not have.
func TestEveryHoldHasAWayOut(t *testing.T) {
	sites, text := advisedInSource(t)
	elsewhere, used := outside(), map[string]bool{}
	for _, site := range sites {
		known := slices.ContainsFunc(advices(), func(a advice) bool { return strings.Contains(site, a.says) })
		for says := range elsewhere {
			if strings.Contains(site, says) {
				known, used[says] = true, true
			}
		}
		if !known {
			t.Errorf("a hold tells people what no way out is known of; add it to advices: %s", site)
		}
	}
	for says := range elsewhere {
		if !used[says] {
			t.Errorf("no hold says %q any more", says)
		}
	}
	for _, a := range advices() {
		if !strings.Contains(text, a.says) {
			t.Errorf("no hold says %q any more", a.says)
		}
	}
}

// advisedInSource is what the holds of the planner tell people to do, as source, and all of
// the source.
func advisedInSource(t *testing.T) (sites []string, text string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "verdict") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text += string(source)
		sites = append(sites, advisedIn(t, path, source)...)
		return nil
	})
	if err != nil || len(sites) < 60 {
		t.Fatalf("%d holds tell people what to do: %v", len(sites), err)
	}
	return sites, text
}

// advisedIn are those of one file. Where a variable says it, the whole function does.
func advisedIn(t *testing.T, path string, source []byte) (sites []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	of := func(n ast.Node) string { return string(source[n.Pos()-file.FileStart : n.End()-file.FileStart]) }
	for _, d := range file.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			do := adviceIn(n)
			if do == nil || of(do) == `""` {
				return true
			}
			if _, variable := do.(*ast.Ident); variable {
				sites = append(sites, of(d))
			} else {
				sites = append(sites, of(do))
			}
			return true
		})
	}
	return sites
}

// adviceIn is the argument that tells a person what to do, or nil.
func adviceIn(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if key, named := n.Key.(*ast.Ident); named && key.Name == "Do" {
			return n.Value
		}
	case *ast.CallExpr:
		called, _ := n.Fun.(*ast.SelectorExpr)
		if called == nil {
			return nil
		}
		switch called.Sel.Name {
		case "Wait", "WaitFor":
			return n.Args[len(n.Args)-1]
		case "Refuse", "Unhealthy":
			return n.Args[1]
		case "Advise":
			return n.Args[0]
		}
	}
	return nil
}
