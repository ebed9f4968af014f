package generate

import (
	"strings"

	"github.com/quorate/quorate/schema"
)

// rules are what the schema says about several fields of a type together, by the
// name of the type.
func rules() map[string][]*draft {
	longest, two := int64(40), int64(2)
	return map[string][]*draft{
		// Kubernetes appends to the name of a cluster.
		schema.KindCluster: {within("metadata", "name", &draft{MaxLength: &longest})},
		// A source by URL has no cluster whose destination could be taken.
		"BackupRequest": {{
			If: within("source", "clusterURL", nil),
			Then: &draft{Required: []string{"destination"}, Properties: map[string]any{
				"destination": &draft{Required: []string{"objectURLTemplate"}},
			}},
		}},
		"BackupSource": {
			exactlyOne("clusterName", "clusterURL"), needs("tls", "clusterURL"),
			{If: has("tls"), Then: &draft{Properties: map[string]any{"clusterURL": &draft{
				Pattern: "^https:", PatternMessage: "Write https where tls is given.",
			}}}},
		},
		"RestoreSource": {
			exactlyOne("objectURL", "schedule", "clusterName"), needs("credentials", "objectURL"),
			{If: has("objectURL"), Then: without("before")},
		},
		"RecoverySpec": {exactlyOne("member", "objectURL"), needs("decryption", "objectURL"), needs("acceptHashMismatch", "objectURL"), needs("acceptUnsigned", "objectURL")},
		// A restore makes a running cluster.
		"RestoreSpec": {within("clusterTemplate", "state", &draft{Enum: []any{schema.StateRunning}})},
		"AuthPermission": {
			{If: has("prefix"), Then: without("key", "rangeEnd"), Else: has("key")},
		},
		"TLSSecretNames": {{Required: []string{"server", "peer", "client"}}},
		"TLSSpec": {{
			If:   &draft{Properties: map[string]any{"mode": &draft{Const: string(schema.TLSSecrets)}}, Required: []string{"mode"}},
			Then: has("secrets"),
			Else: without("secrets"),
		}},
		"UpgradeCheck": {oneOf("Write one of http, prometheus and cronJob.", "http", "prometheus", "cronJob")},
		"NetworkSpec": {{
			If: &draft{Properties: map[string]any{"ipFamilies": &draft{MinItems: &two}}, Required: []string{"ipFamilies"}},
			Then: &draft{
				Properties: map[string]any{"ipFamilyPolicy": &draft{Enum: []any{"PreferDualStack", "RequireDualStack"}}},
				Required:   []string{"ipFamilyPolicy"},
			},
		}},
	}
}

// has says that a field is there.
func has(field string) *draft { return &draft{Required: []string{field}} }

// within says something of a field of a field, or with nil that it is there.
func within(field, inner string, what *draft) *draft {
	if what == nil {
		return &draft{Required: []string{field}, Properties: map[string]any{field: has(inner)}}
	}
	return &draft{Properties: map[string]any{field: &draft{Properties: map[string]any{inner: what}}}}
}

// exactlyOne of the fields that name a source must be there.
func exactlyOne(fields ...string) *draft {
	return oneOf("Write one of the fields that name the source.", fields...)
}

// oneOf the fields must be there, exactly; otherwise an editor says what to do. This is a chain of
// conditions: the oneOf of JSON Schema would report that something matches twice.
func oneOf(otherwise string, fields ...string) *draft {
	first, rest := fields[0], fields[1:]
	if len(rest) == 0 {
		return &draft{Required: []string{first}, ErrorMessage: otherwise}
	}
	return &draft{If: has(first), Then: without(rest...), Else: oneOf(otherwise, rest...)}
}

// without says that fields must not be there.
func without(fields ...string) *draft {
	d := &draft{Properties: map[string]any{}, ErrorMessage: "Leave out " + strings.Join(fields, " and ") + " here."}
	for _, f := range fields {
		d.Properties[f] = false
	}
	return d
}

// needs is a field that makes sense only with another one.
func needs(field, other string) *draft {
	return &draft{Dependencies: map[string][]string{field: {other}}}
}
