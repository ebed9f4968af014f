package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// holdTo adds what is against a policy to the declarations, before they are sorted into good
// and held ones.
//
//	a file that no rule is for                                   error
//	a namespace that the rule does not name                      error
//	a backup put to, or read from, where no store of it is       error
//	a backup that is not encrypted for each of its recipients    error
//	a field with what its values do not name                     error
//	more clusters, members or storage than its limits            error
//
// What a file may not declare at all, by the first two, is put aside before documents are
// compared: a file of one team must not stand in the way of what another one declares.
func (g *gathering) holdTo(p *Policy) {
	declared := g.declared
	g.declared = nil
	var rules []int // of each declaration that is left
	for _, d := range declared {
		if n, ok := g.mayDeclare(p, &d); ok {
			g.declared, rules = append(g.declared, d), append(rules, n)
		} else {
			g.refused = append(g.refused, d)
		}
	}
	clusters := map[int][]int{}
	for i, n := range rules {
		d := &g.declared[i]
		if d.object == nil {
			continue // it is held
		}
		if d.kind == KindCluster || d.kind == KindRestore {
			clusters[n] = append(clusters[n], i)
		}
		g.checkPolicy(d, judgement{p, n})
	}
	for n, all := range clusters {
		if most := p.Rules[n].Limits.Clusters; most > 0 && len(all) > most {
			for _, i := range all {
				g.against(&g.declared[i], "", "%s allows %d clusters, and its files declare %d, restores included: remove one, or ask the platform team for more", judgement{p, n}.at("limits.clusters"), most, len(all))
			}
		}
	}
}

// judgement is the rule of a policy that decides.
type judgement struct {
	*Policy
	n int
}

func (j judgement) rule() *PolicyRule { return &j.Rules[j.n] }

// at names a field of the rule, for people.
func (j judgement) at(field string) string {
	return fmt.Sprintf("%s:%d (rule %s)", j.file, j.lines(fmt.Sprintf("rules[%d].%s", j.n, field)), j.rule().Name)
}

// mayDeclare reports whether a file may declare anything in a namespace, and by which rule.
// One whose namespace could not be read is held in any case.
func (g *gathering) mayDeclare(p *Policy, d *declaration) (n int, ok bool) {
	n = p.ruleFor(d.origin.File)
	if n < 0 {
		g.against(d, "", "%s has no rule for this file, so that it may declare nothing: move it, or ask the platform team for a rule", p.file)
		return n, false
	}
	j := judgement{p, n}
	if allowed := j.rule().Namespaces; d.namespace != "" && !matchesText(allowed, d.namespace) {
		g.against(d, "metadata.namespace", "%s does not allow namespace %s: it allows %s", j.at("namespaces"), d.namespace, listed(allowed))
		return n, false
	}
	return n, true
}

// checkPolicy judges what a document declares.
func (g *gathering) checkPolicy(d *declaration, j judgement) {
	switch o := d.object.(type) {
	case *EtcdCluster:
		g.checkStored(d, j, "spec.backup.destination", o.Spec.Backup.Destination)
		g.checkRead(d, j, "spec.recovery.objectURL", o.Spec.Recovery.ObjectURL)
		g.checkCluster(d, j, "spec.", o.Spec)
	case *EtcdBackup:
		g.checkStored(d, j, "spec.destination", g.effective(d.namespace, o.Spec))
	case *EtcdBackupSchedule:
		g.checkStored(d, j, "spec.backupTemplate.destination", g.effective(d.namespace, o.Spec.BackupTemplate))
	case *EtcdRestore:
		g.checkRead(d, j, "spec.source.objectURL", o.Spec.Source.ObjectURL)
		g.checkStored(d, j, "spec.clusterTemplate.backup.destination", o.Spec.ClusterTemplate.Backup.Destination)
		g.checkCluster(d, j, "spec.clusterTemplate.", o.Spec.ClusterTemplate)
	}
}

// checkStored judges where backups are put, and who can read them.
func (g *gathering) checkStored(d *declaration, j judgement, field string, to Destination) {
	if to.ObjectURLTemplate != "" {
		place, err := ObjectURLPlace(to.ObjectURLTemplate, d.namespace)
		if err != nil {
			place = to.ObjectURLTemplate // in no place of a policy
		}
		g.checkRead(d, j, field+".objectURLTemplate", place)
	}
	for _, recipient := range j.rule().Recipients {
		if !slices.Contains(to.Encryption.Recipients, recipient) {
			g.against(d, field+".encryption.recipients", "%s wants all backups to be encrypted for %s: add it", j.at("recipients"), recipient)
		}
	}
}

// checkRead judges where backups are, by the URL of one or of a directory; "" is the daemon's place.
func (g *gathering) checkRead(d *declaration, j judgement, field, objectURL string) {
	stores := j.rule().Stores
	if objectURL == "" || len(stores) == 0 {
		return
	}
	for _, store := range stores {
		if place, err := ObjectURLPlace(store, d.namespace); err == nil && InObjectURLPlace(place, objectURL) {
			return
		}
	}
	g.against(d, field, "%s does not allow this place for backups: it allows %s", j.at("stores"), listed(stores))
}

// checkCluster judges what a cluster is made of. before is the field that has it, and a dot.
func (g *gathering) checkCluster(d *declaration, j judgement, before string, spec ClusterSpec) {
	g.checkCopies(d, j, before, spec)
	limits := j.rule().Limits
	if limits.Members > 0 && spec.Replicas > limits.Members {
		g.against(d, before+"replicas", "%s allows %d members: lower it, or ask the platform team for more", j.at("limits.members"), limits.Members)
	}
	if limits.Storage.Sign() > 0 && spec.Storage.Size.Cmp(limits.Storage) > 0 {
		g.against(d, before+"storage.size", "%s allows %s: lower it, or ask the platform team for more", j.at("limits.storage"), limits.Storage.String())
	}
	values := j.rule().Values
	if len(values) == 0 {
		return
	}
	fields, err := asFields(spec)
	if err != nil {
		g.against(d, "", "%s cannot be asked about this document: please report this bug", j.file)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, text := range heldBy(fields, strings.Split(name, ".")) {
			if !matchesText(values[name], text) {
				field := before + strings.TrimPrefix(name, "spec.")
				g.against(d, field, "%s does not allow %q: it allows %s", j.at(child("values", name)), text, listed(values[name]))
			}
		}
	}
}

// asFields is a cluster's spec by the names of its file.
func asFields(spec ClusterSpec) (fields map[string]any, err error) {
	text, err := json.Marshal(map[string]ClusterSpec{"spec": spec})
	if err != nil {
		return nil, err
	}
	return fields, json.Unmarshal(text, &fields)
}

// heldBy is what a field holds: its value, the keys of a map, or the elements of a list, by
// their names where they have one.
func heldBy(value any, names []string) []string {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		var all []string
		for _, item := range v {
			if fields, ok := item.(map[string]any); ok && len(names) == 0 {
				all = append(all, fmt.Sprint(fields["name"]))
				continue
			}
			all = append(all, heldBy(item, names)...)
		}
		return all
	case map[string]any:
		if len(names) == 0 {
			return slices.Sorted(maps.Keys(v))
		}
		return heldBy(v[names[0]], names[1:])
	}
	if len(names) > 0 || value == "" {
		return nil
	}
	return []string{fmt.Sprint(value)}
}

// listed is a list for people.
func listed(texts []string) string {
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// against notes what is against a policy.
func (g *gathering) against(d *declaration, field, format string, args ...any) {
	g.note(d, d.origin.Problem(IDPolicy, field, format, args...))
}
