package state

import "github.com/quorate/quorate/schema"

// Transport is over what members are reached: plain text, TLS, or both while spec.tls.mode changes.
type Transport struct {
	// Own is the mode of what a member listens to on its usual ports.
	Own schema.TLSMode
	// Also is the other one of plain text and TLS, which it listens to as well: for clients on
	// the same port, for peers on a port of its own. "" for none.
	Also schema.TLSMode
	// Server and Peer are the Secrets of its certificates, where another program issues them.
	Server, Peer string
}

// Secured is the mode of its certificates; TLSDisabled for none.
func (t Transport) Secured() schema.TLSMode {
	if t.Own == schema.TLSDisabled && t.Also != "" {
		return t.Also
	}
	return t.Own
}
