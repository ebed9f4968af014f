package schema

import (
	"bytes"
	"strings"
)

// chunk is one document of a file.
type chunk struct {
	data []byte
	// line is where data begins in the file, from 1.
	line int
}

// splitDocuments cuts a file at its document markers, so that a document that
// is no YAML does not take its neighbours along. YAML allows "---" and "..." at
// the start of a line nowhere else, not even inside a block of text.
func splitDocuments(data []byte) []chunk {
	var chunks []chunk
	begin, beginLine, line := 0, 1, 1
	cut := func(end, endLine int) {
		if end > begin {
			chunks = append(chunks, chunk{data: data[begin:end], line: beginLine})
		}
		begin, beginLine = end, endLine
	}
	for at := 0; at < len(data); line++ {
		length := lineLength(data[at:])
		switch text := data[at : at+length]; {
		case isMarker(text, "---"):
			cut(at, line)
		case isMarker(text, "..."):
			cut(at+length, line+1)
		}
		at += length
	}
	cut(len(data), line)
	return chunks
}

// countDocuments counts without keeping the pieces.
func countDocuments(data []byte) int {
	n := 1
	for at := 0; at < len(data); {
		length := lineLength(data[at:])
		if text := data[at : at+length]; at > 0 && isMarker(text, "---") {
			n++
		}
		at += length
	}
	return n
}

// lineLength is the length of the first line, its end included.
func lineLength(data []byte) int {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1
	}
	return len(data)
}

// isMarker reports whether a line begins with a document marker.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0])))
}

// isEmptyDocument reports whether there is nothing but markers, comments and
// directives.
func isEmptyDocument(data []byte) bool {
	for line := range bytes.Lines(data) {
		for _, marker := range []string{"---", "..."} {
			if isMarker(line, marker) {
				line = line[len(marker):]
			}
		}
		text := bytes.TrimSpace(line)
		if len(text) > 0 && text[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// mentionsGroup reports whether a document could be quorate's.
func mentionsGroup(data []byte) bool {
	return bytes.Contains(data, []byte(Group))
}

// skimIdentity reads kind and names line by line from a document that is no
// YAML, as far as it is written in the usual way.
func skimIdentity(data []byte) identity {
	var id identity
	inMetadata, indent := false, 0
	for raw := range bytes.Lines(data) {
		line := strings.TrimRight(string(raw), " \t\r\n")
		key, value, ok := strings.Cut(strings.TrimLeft(line, " \t"), ":")
		if !ok || strings.HasPrefix(key, "#") {
			continue
		}
		depth := len(line) - len(strings.TrimLeft(line, " \t"))
		if depth == 0 {
			inMetadata, indent = key == "metadata", 0
		}
		if inMetadata && indent == 0 {
			indent = depth
		}
		value = skimScalar(value)
		switch {
		case depth == 0 && key == "kind":
			id.kind = value
		case inMetadata && depth == indent && key == "name":
			id.name = value
		case inMetadata && depth == indent && key == "namespace":
			id.namespace = value
		}
	}
	return id
}

// skimScalar takes quotes and a comment off a value. What is no plain word may
// be anything, so it counts as unread.
func skimScalar(value string) string {
	value, _, _ = strings.Cut(value, " #")
	value = strings.Trim(strings.TrimSpace(value), `"'`)
	if len(value) > 253 || strings.ContainsAny(value, " \t{}[]&*!|>\"'") {
		return ""
	}
	return value
}
