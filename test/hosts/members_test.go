//go:build linux

package hosts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

// members are the indexes of the present masters.
func (s *stage) masters(t *testing.T) []int {
	t.Helper()
	config, err := s.Fleet.Members[3].ClusterConfig()
	if err != nil {
		t.Fatal(err)
	}
	var of []int
	for i := range s.Fleet.Members {
		for _, id := range config.MasterNodeIDs {
			if id == s.id(i) {
				of = append(of, i)
			}
		}
	}
	return of
}

// lacksNow says what the present masters lack to be the cluster.
func (s *stage) lacksNow(t *testing.T) string { return s.lacks(t.Context(), s.masters(t)...) }

// dies takes a host away for good: its power, and with it all that ran there.
func (s *stage) dies(t *testing.T, i int) {
	t.Helper()
	m := s.Fleet.Members[i]
	m.KillProgram()
	s.reigns.killed(m)
	m.PowerOff()
	if err := m.Kube.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// removal is the event that tells of a node's removal, "" for none.
func (s *stage) removal(t *testing.T, name string) string {
	events, err := s.Cluster.Client().CoreV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=StaleMemberRemoved"})
	if err != nil {
		return ""
	}
	for _, e := range events.Items {
		if e.InvolvedObject.Name == name && e.Type == corev1.EventTypeWarning {
			return e.Message
		}
	}
	return ""
}

// isReplaced tells of a dead host whose place another takes, which joins with
// the help of the server at index by.
func (s *stage) isReplaced(t *testing.T, dead, fresh, by int) {
	s.dies(t, dead)
	var masters []int
	for _, i := range s.masters(t) {
		if i != dead {
			masters = append(masters, i)
		}
	}
	masters = append(masters, fresh)
	s.setMasters(t, masters...)
	s.tell(t, func(c *types.EdgeNodeClusterConfig) { c.JoinServerIP, c.BootstrapNode = s.Fleet.Members[by].IP, false })
	since := time.Now()
	s.Boot(t, fresh)
	name := s.Fleet.Members[dead].Name
	rig.Until(t, 100*time.Second, func() string {
		if s.removal(t, name) == "" {
			members := ""
			for _, i := range masters {
				said, _ := s.Fleet.Members[i].Watch.Members.Get(types.Global)
				members += fmt.Sprintf("\n%s: %+v", s.Fleet.Members[i].Name, said)
			}
			return name + " is not removed:" + members
		}
		return ""
	})
	t.Logf("%s is removed after %s", name, time.Since(since).Round(time.Millisecond))
	rig.Until(t, 60*time.Second, func() string { return s.lacksNow(t) })
	t.Logf("%s has taken its place after %s", s.Fleet.Members[fresh].Name, time.Since(since).Round(time.Millisecond))
	if out, err := s.Cluster.Kubectl(t.Context(), "get", "nodes", "-o", "name"); err != nil || strings.Contains(string(out), name+"\n") {
		t.Errorf("the Nodes are %s, %v", out, err)
	}
}

func (s *stage) nodeIsReplaced(t *testing.T) { s.isReplaced(t, 2, 3, 0) }

func (s *stage) seedIsReplaced(t *testing.T) { s.isReplaced(t, 0, 4, 1) }
