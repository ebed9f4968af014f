package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/quorate/quorate/reconciler/backup/signing"
)

// domain keeps a signature of a manifest from passing for one of anything else.
const domain = "quorate backup manifest 1"

// The fields that are not signed. What a drill found is added later, also by a quorate that
// has another key or none, and to old manifests. Who may write to the store can forge it,
// and has nothing of that: a backup that is said to be bad is as good as one that is
// deleted, and one that is said to be good is restored by no one who does not trust the rest.
const (
	fieldDrill     = "drill"
	fieldSignature = "signature"
)

// Encode is the manifest as it is stored.
func (m Manifest) Encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

// Decode reads a manifest, and checks its signature, if it has one. What it returns is read
// from what was signed, so that no two readers of one JSON understand it differently.
func Decode(text []byte) (m Manifest, err error) {
	fields, meaning, err := parse(text)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(meaning, &m); err != nil {
		return m, err
	}
	// A field of another case means the same to Go's decoder.
	m.Drill, m.Signature = Drill{}, nil
	if raw, there := fields[fieldDrill]; there {
		if err := json.Unmarshal(raw, &m.Drill); err != nil {
			return m, err
		}
	}
	if raw, there := fields[fieldSignature]; there {
		if err := json.Unmarshal(raw, &m.Signature); err != nil {
			return m, err
		}
	}
	m.Forged = m.Signature != nil && !m.Signature.Signs(domain, meaning)
	return m, nil
}

// parse reads the fields of a manifest, and what of it is signed: each field but two as it
// was written, also those that a newer quorate knows, without white space and in the order
// of their names. It does not depend on where the manifest lies.
func parse(text []byte) (fields map[string]json.RawMessage, meaning []byte, err error) {
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, nil, err
	}
	signed := make(map[string]json.RawMessage, len(fields))
	for name, raw := range fields {
		if name != fieldDrill && name != fieldSignature {
			signed[name] = raw
		}
	}
	meaning, err = json.Marshal(signed)
	return fields, meaning, err
}

// Sign signs the manifest; with nil it is not signed.
func (m *Manifest) Sign(key *signing.Key) error {
	m.Signature, m.Forged = nil, false
	if key == nil {
		return nil
	}
	text, err := m.Encode()
	if err != nil {
		return err
	}
	_, meaning, err := parse(text)
	if err != nil {
		return err
	}
	m.Signature = key.Sign(domain, meaning)
	return nil
}

// SignText signs a manifest that is stored, as it stands there.
func SignText(text []byte, key *signing.Key) ([]byte, error) {
	was, err := Decode(text)
	if err != nil {
		return nil, err
	}
	_, meaning, err := parse(text)
	if err != nil {
		return nil, err
	}
	is := was
	is.Signature = key.Sign(domain, meaning)
	return Edit(text, was, is)
}

// Digest is a hash of what of a manifest is signed: who has written one can say by it which
// one that was.
func Digest(text []byte) (string, error) {
	_, meaning, err := parse(text)
	sum := sha256.Sum256(meaning)
	return hex.EncodeToString(sum[:]), err
}

// Edit is a stored manifest with what differs between was and is, and with all else as it
// stands there: what a newer quorate has written, and what is signed.
func Edit(text []byte, was, is Manifest) ([]byte, error) {
	fields, _, err := parse(text)
	if err != nil {
		return nil, err
	}
	before, err := fieldsOf(was)
	if err != nil {
		return nil, err
	}
	after, err := fieldsOf(is)
	if err != nil {
		return nil, err
	}
	for name := range before {
		if _, there := after[name]; !there {
			delete(fields, name)
		}
	}
	for name, raw := range after {
		if !bytes.Equal(raw, before[name]) {
			fields[name] = raw
		}
	}
	edited, err := json.MarshalIndent(fields, "", "  ")
	return append(edited, '\n'), err
}

func fieldsOf(m Manifest) (fields map[string]json.RawMessage, err error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return fields, json.Unmarshal(text, &fields)
}
