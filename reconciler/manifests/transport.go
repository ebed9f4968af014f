package manifests

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/quorate/quorate/reconciler/naming"
	"github.com/quorate/quorate/reconciler/state"
	"github.com/quorate/quorate/schema"
)

// While spec.tls.mode changes, members speak plain text and TLS. etcd tells the two apart on one
// client port; a peer port speaks one of them, so the other one gets a port of its own. Members ask
// for certificates on what is TLS, and have them wherever they dial.

// listenPeers begins the flag with the URLs where a member listens for peers.
const listenPeers = "--listen-peer-urls="

// secured is the cluster as its certificates are made: in the mode that has TLS, if one of the two has.
func secured(c schema.EtcdCluster, o Options) schema.EtcdCluster {
	if !naming.UsesTLS(c) && o.Also != "" {
		c.Spec.TLS.Mode = o.Also
	}
	return c
}

// listenURLs are where a member listens, in its own mode and in the other one, if it has one.
func listenURLs(c schema.EtcdCluster, o Options, own, other int) string {
	urls := naming.URLOn(naming.URLScheme(c), listenAddress(c), own)
	if o.Also != "" {
		urls += "," + naming.URLOn(naming.SchemeOf(o.Also), listenAddress(c), other)
	}
	return urls
}

// TransportOf is over what the members are reached that a pod's spec makes, which Render has made for
// the cluster of that name.
func TransportOf(spec corev1.PodSpec, name string) state.Transport {
	mounted := map[string]string{}
	for _, v := range spec.Volumes {
		if v.Secret != nil {
			mounted[v.Name] = v.Secret.SecretName
		}
	}
	server, has := mounted[naming.ServerTLSVolume]
	if !has {
		return state.Transport{Own: schema.TLSDisabled}
	}
	t := state.Transport{Own: schema.TLSManaged}
	if server != name+naming.ServerLeafSuffix {
		t = state.Transport{Own: schema.TLSSecrets, Server: server, Peer: mounted[naming.PeerTLSVolume]}
	}
	switch peers := listens(spec, listenPeers); {
	case len(peers) < 2:
	case strings.HasPrefix(peers[0], "http:"):
		t.Own, t.Also = schema.TLSDisabled, t.Own
	default:
		t.Also = schema.TLSDisabled
	}
	return t
}

// listens are the URLs of one of etcd's flags.
func listens(spec corev1.PodSpec, flag string) []string {
	for _, c := range spec.Containers {
		for _, arg := range c.Args {
			if urls, is := strings.CutPrefix(arg, flag); is && c.Name == naming.ContainerEtcd {
				return strings.Split(urls, ",")
			}
		}
	}
	return nil
}
