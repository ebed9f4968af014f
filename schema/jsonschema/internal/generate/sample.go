package generate

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/schema"
)

// small is one document of each kind that leaves out all that it can. What is
// there after schema.Default and not here is a default. A window and a retention
// are here because their own fields have defaults, and the name of the restored
// cluster because its default is another name.
const small = `
apiVersion: quorate.dev/v1alpha1
kind: EtcdCluster
metadata: {name: small}
spec:
  version: "3.6.16"
  replicas: 3
  storage: {size: 8Gi}
  etcd: {autoCompaction: {retention: 8h}}
  maintenance: [{schedule: "0 2 * * 6", duration: 3h}]
---
apiVersion: quorate.dev/v1alpha1
kind: EtcdBackup
metadata: {name: small}
spec: {source: {clusterName: small}}
---
apiVersion: quorate.dev/v1alpha1
kind: EtcdBackupSchedule
metadata: {name: small}
spec: {schedule: "@daily", backupTemplate: {source: {clusterName: small}}}
---
apiVersion: quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: restored}
spec:
  source: {clusterName: small}
  clusterName: restored
  clusterTemplate: {version: "3.6.16", replicas: 3, storage: {size: 8Gi}}
`

// fillDefaults asks schema.Parse for the value of a field that is left out, so
// that the pages cannot say anything else.
func (m *Model) fillDefaults() error {
	set := schema.Parse([]schema.File{{Path: "small.yaml", Data: []byte(small)}})
	for _, held := range set.Held {
		return fmt.Errorf("parse the small documents: %v", held.Problems[0])
	}
	documents, err := Documents([]byte(small))
	if err != nil {
		return err
	}
	defaulted, err := Objects(set)
	if err != nil {
		return err
	}
	for _, kind := range m.Kinds {
		after, ok := defaulted[kind.Name]
		if !ok {
			return fmt.Errorf("schema.Parse returned no %s", kind.Name)
		}
		for _, document := range documents {
			if document["kind"] == kind.Name {
				kind.defaults(document, after)
			}
		}
	}
	return nil
}

// defaults notes what is there after the defaulting and was not before.
func (t *Type) defaults(before, after map[string]any) {
	for _, f := range t.Fields {
		given, isGiven := before[f.Name]
		value, isThere := after[f.Name]
		switch {
		case !isThere:
		case f.Value.Shape == Object && !f.Value.Type.Kubernetes:
			f.Value.Type.defaults(mapping(given), mapping(value))
		case f.Value.Shape == List && isGiven && f.Value.Item.Shape == Object:
			f.Value.Item.Type.defaults(mapping(first(given)), mapping(first(value)))
		case !isGiven && f.Value.Shape != Object && f.Default == nil:
			f.Default = value
		}
	}
}

// fillExamples takes the first value that the corpus has for each field.
func (m *Model) fillExamples(corpus []schema.File) error {
	for _, file := range corpus {
		documents, err := Documents(file.Data)
		if err != nil {
			return fmt.Errorf("%s: %w", file.Path, err)
		}
		for _, document := range documents {
			for _, kind := range m.Kinds {
				if document["kind"] == kind.Name {
					kind.examples(document)
				}
			}
		}
	}
	return nil
}

// examples notes the values of a mapping.
func (t *Type) examples(values map[string]any) {
	for _, f := range t.Fields {
		value, ok := values[f.Name]
		switch {
		case !ok || t.Kubernetes:
		case f.Value.Shape == Object:
			f.Value.Type.examples(mapping(value))
		case f.Value.Shape == List && f.Value.Item.Shape == Object:
			f.Value.Item.Type.examples(mapping(first(value)))
		case f.Value.Shape == Map && f.Value.Item.Shape == Object, f.Example != nil:
		default:
			f.Example = value
		}
	}
}

// Documents reads the documents of a good file.
func Documents(data []byte) ([]map[string]any, error) {
	var all []map[string]any
	for text := range strings.SplitSeq("\n"+string(data), "\n---") {
		var document map[string]any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			return nil, fmt.Errorf("read a document: %w", err)
		}
		if document != nil {
			all = append(all, document)
		}
	}
	return all, nil
}

// Objects are the first object of each kind of a set, as JSON has them.
func Objects(set schema.Set) (map[string]map[string]any, error) {
	all := map[string]map[string]any{}
	add := func(kind string, object any) error {
		data, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("write an %s: %w", kind, err)
		}
		var values map[string]any
		err = json.Unmarshal(data, &values)
		all[kind] = values
		return err
	}
	var err error
	for _, c := range set.Clusters[:min(1, len(set.Clusters))] {
		err = add(schema.KindCluster, c.EtcdCluster)
	}
	for _, b := range set.Backups[:min(1, len(set.Backups))] {
		err = add(schema.KindBackup, b.EtcdBackup)
	}
	for _, s := range set.Schedules[:min(1, len(set.Schedules))] {
		err = add(schema.KindBackupSchedule, s.EtcdBackupSchedule)
	}
	for _, r := range set.Restores[:min(1, len(set.Restores))] {
		err = add(schema.KindRestore, r.EtcdRestore)
	}
	return all, err
}

// mapping is a value that is a mapping, or none.
func mapping(value any) map[string]any {
	fields, _ := value.(map[string]any) // What is no mapping has no fields.
	return fields
}

// first is the first item of a list, or nil.
func first(value any) any {
	items, ok := value.([]any)
	if !ok || len(items) == 0 {
		return nil
	}
	return items[0]
}
