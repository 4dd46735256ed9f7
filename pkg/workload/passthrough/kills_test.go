package passthrough

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// The effects, as the kill points name them.
const (
	nads     = "network-attachment-definitions.k8s.cni.cncf.io"
	makes    = "ensure nad: create " + nads
	joins    = "ensure nad: patch " + nads
	leaves   = "release nad: patch " + nads
	deletes  = "release nad: delete " + nads
	setsLink = "set up link"
)

// life is what an agent that is killed does to the cluster and to the links of its host.
type life struct {
	*kubetest.Cluster
	*host
	*kubetest.Mortal
}

func (l life) EnsureNAD(ctx context.Context, ifname string, owner types.Node) error {
	effect := makes
	if _, there := l.NAD(ifname); there {
		effect = joins
	}
	return l.Do(effect, func() error { return l.Cluster.EnsureNAD(ctx, ifname, owner) })
}

func (l life) ReleaseNAD(ctx context.Context, ifname string, owners map[string]string, keep bool) error {
	effect := deletes
	if nad, _ := l.NAD(ifname); len(nad.Owners) > len(owners) {
		effect = leaves
	}
	return l.Do(effect, func() error { return l.Cluster.ReleaseNAD(ctx, ifname, owners, keep) })
}

func (l life) Raise(name string) (was Raised, err error) {
	if l.is(name) != "down" {
		return l.host.Raise(name)
	}
	err = l.Do(setsLink, func() error { was, err = l.host.Raise(name); return err })
	return was, err
}

// What n1 dies of, it does when it starts again; nothing is taken from n2.
func TestWhereverTheAgentDiesItHasWhatItsApplicationsUseAndNoMore(t *testing.T) {
	for range seeds.Each(t, 1) {
		for _, effect := range []string{makes, joins, leaves, deletes, setsLink} {
			for _, after := range []bool{false, true} {
				m := &kubetest.Mortal{At: effect, After: after}
				t.Run(m.Point("passthrough"), func(t *testing.T) {
					play(t, func(s *stage) { s.killed(m) })
				})
			}
		}
	}
}

// killed tells of an agent that dies and starts again.
func (s *stage) killed(m *kubetest.Mortal) {
	m.Died = make(chan struct{})
	shared, ends := m.At == joins || m.At == leaves, m.At == leaves || m.At == deletes
	want := "n1"
	if shared {
		s.told("n2").app("app", "eth1")
		s.after(time.Minute)
		want = "n1 n2"
	}
	n1 := s.told("n1")
	n1.stop()
	n1.kube, n1.links = life{s.cluster, n1.host, m}, life{s.cluster, n1.host, m}
	s.start("n1")
	n1.app("app", "eth1")
	if ends {
		s.after(time.Minute)
		n1.app("app")
		want = map[bool]string{true: "n2", false: "-"}[shared]
	}
	select {
	case <-m.Died:
	case <-time.After(time.Hour):
		s.Fatal("it never came there")
	}
	synctest.Wait()
	n1.stop()
	seeds.Killed(s, m.Point("passthrough"))
	n1.kube, n1.links = s.cluster, n1.host
	s.told("n1")
	s.want("eth1", want)
	if is := n1.host.is("eth1"); is != "up" {
		s.Errorf("the link is %s", is)
	}
}
