package tlsmodes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/reconciler/etcd/etcdtest"
	"github.com/quorate/quorate/test/needs"
)

var all = flag.Bool("all", false, "try all cases, with members of each minor")

func TestMain(m *testing.M) { etcdtest.Main(m) }

// forEach runs a test for members of some minors, and of each with -all.
func forEach(t *testing.T, some []string, test func(*testing.T, string)) {
	t.Helper()
	if *all {
		some = nil
	}
	etcdtest.ForEach(t, test, some...)
}

// ways are the two changes.
func ways() [][2]string { return [][2]string{{plain, secure}, {secure, plain}} }

// 580: a cluster changes from plain text to TLS and back under load and a watch. In each state its
// client ports serve what they should and refuse the rest, and followers reach the leader; clients
// that move over in the overlap lose no write.
func TestClustersChangeTheirModeUnderLoad(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	for _, n := range []int{3, 1, 5} {
		if n != 3 && !*all {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			forEach(t, []string{etcdtest.V35, etcdtest.V37}, func(t *testing.T, version string) {
				c := start(t, version, n, plain)
				var ended []*load
				now := c.begin(plain, "plain/")
				for i, way := range ways() {
					for _, s := range change(way[0], way[1]) {
						c.do(s)
						if s.name == "overlap" {
							next := c.begin(way[1], fmt.Sprint(way[1], i, "/"))
							c.finish(now)
							ended, now = append(ended, now), next
						}
						c.expectPorts()
						c.expectLeases()
					}
				}
				c.finish(now)
				c.expectAll(plain, append(ended, now)...)
			})
		})
	}
}

// 581: a change is taken back in the midst of each of its steps, done with one member only, and
// taken up again.
func TestChangesAreTakenBackInTheirMidst(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	forEach(t, []string{etcdtest.V36}, func(t *testing.T, version string) {
		for _, way := range ways() {
			from, to := way[0], way[1]
			for midst, at := range change(from, to) {
				if at.name == "overlap" || !*all && (from != plain || midst != 3) {
					continue
				}
				t.Run(from+", "+at.name, func(t *testing.T) {
					c := start(t, version, 3, from)
					for _, s := range change(from, to)[:midst] {
						c.do(s)
					}
					c.do(at, c.members[2])
					for _, s := range takeBack(from, to, midst) {
						c.do(s)
					}
					c.expectPorts()
					if !*all {
						return
					}
					for _, s := range change(from, to) {
						c.do(s)
					}
					c.expectPorts()
				})
			}
		}
	})
}

// 582: a member is replaced in the midst of each step: one with which the step is done, and one with
// which it is not, which starts as the step wants it. It is listed where its kind is reached first;
// then the step goes on.
func TestMembersAreReplacedInTheMidst(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	forEach(t, []string{etcdtest.V36}, func(t *testing.T, version string) {
		for _, way := range ways() {
			if way[0] != plain && !*all {
				continue
			}
			t.Run(way[0]+" to "+way[1], func(t *testing.T) {
				c := start(t, version, 3, way[0])
				steps := change(way[0], way[1])
				for i, s := range steps {
					if restarts := s.restart.own != ""; !restarts && !*all {
						c.do(s)
						continue
					}
					c.do(s, c.members[2])
					for _, m := range []*member{c.members[2], c.members[0]} {
						how := m.how
						if s.restart.own != "" {
							how = s.restart
						}
						c.replace(m, how)
						c.expectLeases()
					}
					if s.name == "overlap" {
						s = steps[i-1] // who is new is not listed as the others are
					}
					c.do(s)
				}
				c.expectPorts()
			})
		}
	})
}

// 583: a member is down through the last steps of a change, or through all of it, and starts as the
// last step wants it: it knows only where the others were, and they know where it is.
func TestMembersThatWereDownComeBack(t *testing.T) {
	t.Parallel()
	forEach(t, []string{etcdtest.V36}, func(t *testing.T, version string) {
		for _, way := range ways() {
			for _, from := range []int{0, 1, 3} {
				if !*all && (way[0] != plain || from != 0) {
					continue
				}
				t.Run(fmt.Sprintf("%s, from step %d", way[0], from), func(t *testing.T) {
					c := start(t, version, 3, way[0])
					steps := change(way[0], way[1])
					for _, s := range steps[:from] {
						c.do(s)
					}
					down := c.members[2]
					c.stop(down)
					for _, s := range steps[from:] {
						c.doWithout(down, s)
					}
					down.how = listens{own: way[1]}
					c.launch(down)
					c.awaitHealth()
					c.expectPorts()
				})
			}
		}
	})
}

// doWithout takes a step while one member is down, which the list moves, too.
func (c *cluster) doWithout(down *member, s step) {
	c.Helper()
	for _, m := range c.members {
		switch {
		case s.list != nil:
			c.move(m, s.list)
		case s.restart.own != "" && m != down:
			c.restart(m, s.restart)
		}
		c.awaitHealth(down)
	}
}

// 583: a member that lags so far that it needs a snapshot gets it where it is reached by the second of
// its URLs, and in the midst of the last roll.
func TestSnapshotsReachTheSecondURL(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	catchUp := map[string][]string{
		etcdtest.V34: nil, // 5,000 entries
		etcdtest.V35: {"--experimental-snapshot-catchup-entries=50"},
		etcdtest.V36: {"--snapshot-catchup-entries=50"},
		etcdtest.V37: {"--snapshot-catchup-entries=50"},
	}
	forEach(t, []string{etcdtest.V36}, func(t *testing.T, version string) {
		steps := change(plain, secure)
		// A cluster for each: a leader keeps its log for 30 s after a snapshot that it has sent.
		for name, lagging := range map[string]int{"not restarted": 0, "restarted": 2} {
			t.Run(name, func(t *testing.T) {
				c := start(t, version, 3, plain, append(catchUp[version], "--snapshot-count=100")...)
				for _, s := range steps[:3] {
					c.do(s)
				}
				c.do(steps[3], c.members[2])
				c.expectSnapshot(c.members[lagging])
			})
		}
	})
}

// expectSnapshot stops a member, writes more than the others keep in their log, and wants it to have
// got a snapshot when it is back.
func (c *cluster) expectSnapshot(m *member) {
	c.Helper()
	c.stop(m)
	mark := m.said.Len()
	others := slices.DeleteFunc(slices.Clone(c.members), func(o *member) bool { return o == m })
	writes := 1000
	if c.version == etcdtest.V34 {
		writes = 8000
	}
	client := c.dial(secure, others...)
	defer func() { _ = client.Close() }()
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			for n := range writes / 40 {
				ctx, cancel := context.WithTimeout(c.Context(), patience)
				_, _ = client.Put(ctx, fmt.Sprint("lag/", i, "/", n), "x") // how many there are matters
				cancel()
			}
		})
	}
	wg.Wait()
	c.launch(m)
	c.awaitHealth()
	if !strings.Contains(m.said.String()[mark:], "applied snapshot") {
		c.Errorf("%s, %s, has got no snapshot", m.name, m.how)
	}
}

// 580: with authentication on, nobody has a name by the plain half of the client port: what a
// certificate opens is shut there, and a password opens it. So whoever relies on a certificate must
// speak TLS as soon as members have any.
func TestPlainTextHasNoCommonName(t *testing.T) {
	t.Parallel()
	forEach(t, []string{etcdtest.V36}, func(t *testing.T, version string) {
		c := start(t, version, 1, secure)
		m := c.members[0]
		c.ask(m, func(ctx context.Context, client *clientv3.Client) error {
			_, added := client.UserAdd(ctx, "root", "secret")
			_, granted := client.UserGrantRole(ctx, "root", "root")
			_, enabled := client.AuthEnable(ctx)
			return errors.Join(added, granted, enabled)
		})
		c.restart(m, listens{own: secure, also: plain})
		c.eventually("read as root by TLS", func() error { return c.get(m, secure) })
		if err := c.get(m, plain); !errors.Is(err, rpctypes.ErrUserEmpty) {
			t.Errorf("without a password, in plain text: %v", err)
		}
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.url(peerURL{plain, clientPort})}, Username: "root", Password: "secret", DialTimeout: patience})
		c.must(err)
		defer func() { _ = client.Close() }()
		if _, err := client.Get(t.Context(), "any"); err != nil {
			t.Errorf("with the password, in plain text: %v", err)
		}
	})
}
