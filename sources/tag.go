package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Tag is a tag, as it was when it was read.
type Tag struct {
	// Name is without refs/tags/; "" for no tag.
	Name string
	// Object is the full hash of what the tag names itself: an object with the message and
	// the signature, or of a lightweight tag the commit.
	Object string `json:",omitempty"`
	// Signer is the key whose signature of the tag was verified, and whose that is as far
	// as Signers say; "" where none was wanted, or the tag was accepted without.
	Signer string `json:",omitempty"`
}

// is reports whether the tag is what a reference means now.
func (t Tag) is(head named) bool {
	return t == head.as(t.Signer)
}

// as is the tag of a head, with whose signature it has; none where it has no tag.
func (n named) as(signer string) Tag {
	if n.tag == "" {
		return Tag{}
	}
	return Tag{Name: n.tag, Object: n.object.String(), Signer: signer}
}

// examineTag wants a good signature on the tag of a head, and reports whose it is.
//
// Signed commits alone do not say which of them is to run: with a right to push tags, and
// no key, one could move a tag to any of them that descends from the accepted one, such as
// work that is not done, or name the first one ever. So the tag itself is signed, over its
// name and its commit, and one without a message of its own, which cannot be, is refused.
//
// The tag that was accepted with the commit in force counts as long as it stays: a key that
// ends later takes nothing back. So does the first one that is seen with that commit, as it
// moves nothing. Another tag is examined though it names the same commit: of a range of
// versions an unsigned v9.9.9 there would otherwise keep all signed ones away unnoticed.
func examineTag(ctx context.Context, s session, head named, trust Trust, signers keys) (signer string, err error) {
	inForce := head.commit.String() == trust.Applied
	switch {
	case head.tag == "" || signers.isEmpty():
		return "", nil
	case inForce && trust.Tag.is(head):
		return trust.Tag.Signer, nil
	case inForce && trust.Tag == (Tag{}):
		return "", nil
	case head.object == head.commit:
		return "", untrustedTag(head.tag, "is a lightweight one, which has no signature: whoever may push tags could have put it at commit "+head.commit.String())
	}
	// The history of the tag without that of the commit is the tag alone.
	objs, err := s.history(ctx, head.commit, head.object)
	if err != nil {
		return "", err
	}
	raw, err := readTag(objs, head.object)
	if err != nil {
		return "", damaged("tag "+oneLine(head.tag), err)
	}
	signer, why := signers.refuseTag(raw, head)
	if why != "" {
		return "", untrustedTag(head.tag, why)
	}
	return signer, nil
}

func untrustedTag(name, why string) *failure {
	return untrusted(fmt.Sprintf("tag %s %s", oneLine(name), why),
		"tag the commit with `git tag -s` and a key that is allowed, delete the tag if it is not meant, or approve the head by its hash if it is intended")
}

func readTag(objs objects, hash plumbing.Hash) ([]byte, error) {
	found, err := objs.EncodedObject(plumbing.TagObject, hash)
	if err != nil {
		return nil, err
	}
	reader, err := found.Reader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	return io.ReadAll(reader)
}

// refuseTag reports whose the signature of a tag is, or what is wrong with the tag; why is
// "" for nothing. The name is part of what was signed, so that nobody can push a signed tag
// again as another version; and the commit is, whatever the server says that the tag means.
func (k keys) refuseTag(raw []byte, head named) (who, why string) {
	text, signature := cutSignature(raw)
	if signature == "" {
		return "", "is not signed"
	}
	t, err := parseTag(text)
	if err != nil {
		return "", "cannot be read: " + err.Error()
	}
	if who, why = k.refuseText(text, signature, t.dated); why != "" {
		return "", why
	}
	switch {
	case t.name != head.tag:
		return "", "is the signed tag " + oneLine(t.name) + " under another name"
	case t.kind == plumbing.TagObject.String():
		return "", "is a tag of another tag, of which quorate verifies none"
	case t.kind != plumbing.CommitObject.String() || t.object != head.commit.String():
		return "", "is signed for the " + oneLine(t.kind) + " " + t.object + ", and not for commit " + head.commit.String()
	}
	return who, ""
}

// cutSignature divides a tag where Git does: the signature begins at the last line that may
// begin one.
func cutSignature(raw []byte) (text []byte, signature string) {
	at := len(raw)
	for start := 0; start < len(raw); {
		for _, kind := range []string{"PGP SIGNATURE", "PGP MESSAGE", "SSH SIGNATURE", "SIGNED MESSAGE"} {
			if bytes.HasPrefix(raw[start:], []byte("-----BEGIN "+kind+"-----")) {
				at = start
			}
		}
		end := bytes.IndexByte(raw[start:], '\n')
		if end < 0 {
			break
		}
		start += end + 1
	}
	return raw[:at], string(raw[at:])
}

// annotation is what a tag says.
type annotation struct {
	object, kind, name string
	dated              time.Time
}

// parseTag reads the head of a tag as Git writes it. It reads the bytes that are signed, and
// nothing else counts: a header twice, in another order or of another kind is an error, as
// two readers could understand it differently.
func parseTag(text []byte) (annotation, error) {
	head, _, _ := strings.Cut(string(text), "\n\n")
	lines := strings.Split(head, "\n")
	var values []string
	for i, name := range []string{"object", "type", "tag", "tagger"} {
		if i >= len(lines) {
			return annotation{}, errors.New("it has no " + name)
		}
		value, is := strings.CutPrefix(lines[i], name+" ")
		if !is || value == "" {
			return annotation{}, errors.New("it has no " + name + " where Git writes it")
		}
		values = append(values, value)
	}
	var tagger object.Signature
	tagger.Decode([]byte(values[3]))
	switch {
	case len(lines) > len(values):
		return annotation{}, errors.New("it has more headers than Git writes")
	case !plumbing.IsHash(values[0]):
		return annotation{}, errors.New("it names no object")
	case tagger.When.IsZero():
		return annotation{}, errors.New("it has no date")
	}
	return annotation{object: values[0], kind: values[1], name: values[2], dated: tagger.When}, nil
}
