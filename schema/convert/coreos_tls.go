package convert

import "github.com/quorate/quorate/schema"

// oldSecrets are the Secrets of the static TLS policy by what they are in
// quorate: "peer", "server" and "client".
type oldSecrets map[string]string

// tls converts the static TLS policy.
func (c clusterSpec) tls(f field) {
	if isEmpty(f.value) {
		return
	}
	secrets := oldSecrets{}
	keep := func(role string) func(field) {
		return func(f field) {
			if name, ok := c.text(f); ok {
				secrets[role] = name
			}
		}
	}
	c.walk(f, handlers{"static": func(f field) {
		c.walk(f, handlers{
			"member": func(f field) {
				c.walk(f, handlers{"peerSecret": keep("peer"), "serverSecret": keep("server"), "clientSecret": keep("client")})
			},
			"operatorSecret": keep("client"),
		})
	}})
	c.tlsMode(f, secrets)
}

// tlsMode chooses the mode by how many of the three Secrets there are.
func (c clusterSpec) tlsMode(f field, secrets oldSecrets) {
	at := c.path("tls")
	switch len(secrets) {
	case 0:
		c.set(at+".mode", text(string(schema.TLSDisabled)))
		c.note(f.line, at, "%s named no Secret, so nothing was protected: delete tls.mode, and quorate issues and renews certificates", f.path)
		return
	case 1, 2:
		c.set(at+".mode", text(string(schema.TLSManaged)))
		c.note(f.line, at, "%s named Secrets for a part only. quorate protects clients and peers or neither: with mode Managed it issues "+
			"and renews all certificates, and clients take theirs from the Secret %s-client", f.path, c.newName)
		return
	}
	c.set(at+".mode", text(string(schema.TLSSecrets)))
	for _, role := range []string{"server", "peer", "client"} {
		c.set(at+".secrets."+role, text(secrets[role]))
		c.secretNote(f, role, secrets[role])
	}
	c.note(f.line, at, "The certificates must be for quorate's names: the Service %s-client and the members *.%s-peers, each with "+
		".NAMESPACE.svc and the cluster domain, and localhost. Or delete the field tls, and quorate issues and renews them", c.newName, c.newName)
}

// secretNote gives the command that makes a Secret with the keys that quorate
// reads.
func (c clusterSpec) secretNote(f field, role, name string) {
	prefix := role
	if role == "client" {
		prefix = "etcd-client"
	}
	c.note(f.line, c.path("tls.secrets."+role), "The Secret %s must have the keys tls.crt, tls.key and ca.crt instead of %s.crt, %s.key and %s-ca.crt. "+
		"From the same files: kubectl create secret generic %s --type=kubernetes.io/tls --from-file=tls.crt=%s.crt --from-file=tls.key=%s.key --from-file=ca.crt=%s-ca.crt",
		word(name), prefix, prefix, prefix, word(name), prefix, prefix, prefix)
}
