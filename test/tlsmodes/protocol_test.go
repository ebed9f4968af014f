package tlsmodes

// Ports of a member. Clients speak both modes on one of them. A peer port speaks one mode, so the
// other one has a port of its own while a member listens to both.
const (
	clientPort = "2379"
	peerPort   = "2380"
	secondPort = "2382"
)

// The two modes, by the scheme of their URLs.
const (
	plain  = "http"
	secure = "https"
)

// listens is how a member is started: the mode of its usual ports, and the other one that it listens
// to as well; "" for none.
type listens struct{ own, also string }

func (l listens) String() string {
	if l.also == "" {
		return l.own + " alone"
	}
	return l.own + " first, and " + l.also
}

// clients are the modes that it takes from clients.
func (l listens) clients() []string {
	if l.also == "" {
		return []string{l.own}
	}
	return []string{l.own, l.also}
}

// encrypts reports whether it has certificates.
func (l listens) encrypts() bool { return l.own == secure || l.also == secure }

// peers are the URLs at which it listens for peers, without the host.
func (l listens) peers() []peerURL {
	urls := []peerURL{{l.own, peerPort}}
	if l.also != "" {
		urls = append(urls, peerURL{l.also, secondPort})
	}
	return urls
}

// peerURL is the URL of a peer, without its host.
type peerURL struct{ scheme, port string }

// step is done with one member at a time, in between all are healthy: it restarts, or it gets other
// URLs in the member list. A step that does neither gives clients time.
type step struct {
	name    string
	restart listens
	list    []peerURL
}

// change is the protocol. At each moment each member listens where the list has it, in a mode that
// all the others speak.
//
//	members listen to     the list has
//	from                  from:2380
//	from, to on 2382      from:2380
//	from, to on 2382      to:2380, to:2382     now clients move over
//	to                    to:2380, to:2382
//	to                    to:2380
func change(from, to string) []step {
	return []step{
		{name: "listen to both", restart: listens{own: from, also: to}},
		{name: "list " + to + " on both ports", list: []peerURL{{to, peerPort}, {to, secondPort}}},
		{name: "overlap"},
		{name: "listen to " + to + " alone", restart: listens{own: to}},
		{name: "list " + to + " alone", list: []peerURL{{to, peerPort}}},
	}
}

// takeBack is what is left to do when a change is taken back in the midst of one of its steps. Until
// a member listens to the new mode alone, the list goes back and the members after it. From then on
// it is a change of its own.
func takeBack(from, to string, midst int) []step {
	if closing := 3; midst >= closing {
		return change(to, from)
	}
	return []step{
		{name: "list " + from + " alone", list: []peerURL{{from, peerPort}}},
		{name: "listen to " + from + " alone", restart: listens{own: from}},
	}
}
