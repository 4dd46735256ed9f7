//go:build linux

package devcluster

import (
	"context"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// needsHosts skips where there can be no hosts, but not on a build machine.
func needsHosts(t *testing.T) {
	t.Helper()
	err := CanHost()
	if err != nil && !MaySkip(err) {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

// TestHosts tells one story: three hosts become a cluster, lose and regain parts
// of it, and one is replaced.
func TestHosts(t *testing.T) {
	needsHosts(t)
	c := start(t, Options{Hosts: true, Nodes: 4, Spare: 3})
	join(t, c, 1)
	join(t, c, 2)
	wantMembers(t, c, 0, 1, 2)
	t.Run("programs on a host have its addresses", func(t *testing.T) { hostsHaveAddresses(t, c) })
	t.Run("a cut host keeps its API server and loses the quorum", func(t *testing.T) { cutHost(t, c) })
	t.Run("the cluster outlives the control plane of its first host", func(t *testing.T) { firstHostDies(t, c) })
	t.Run("a killed host comes back", func(t *testing.T) { hostIsKilled(t, c) })
	t.Run("a host whose Node is deleted leaves etcd, and another takes its place", func(t *testing.T) { hostIsReplaced(t, c) })
	t.Run("faults are not to be had", func(t *testing.T) {
		if c.SetFault(Hung) == nil || c.SetNodeFault(0, Hung) == nil || c.RotateCA(0) == nil || c.SetCertSkew(0, time.Hour) == nil {
			t.Error("a host takes a fault that nothing can give it")
		}
	})
}

// join makes host i a member with a Node, as k3s does at its first start.
func join(t *testing.T, c *Cluster, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience*time.Minute)
	defer cancel()
	if err := c.StartControlPlane(ctx, i); err != nil {
		t.Fatal(err)
	}
	if err := c.StartKubelet(i); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the node to be ready and a voter", func() bool {
		node, err := c.Client().CoreV1().Nodes().Get(ctx, c.Nodes[i].Name, metav1.GetOptions{})
		return err == nil && c.takesPods(ctx, node.Name) && saysVoter(node)
	})
}

func wantMembers(t *testing.T, c *Cluster, want ...int) {
	t.Helper()
	eventually(t, 20*time.Second, "the members of etcd", func() bool {
		got, err := c.Members(t.Context())
		return err == nil && slices.Equal(got, want)
	})
}

// reaches says whether something listens there, for somebody on host i.
func reaches(t *testing.T, c *Cluster, i int, ip string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	conn, err := c.DialFrom(i)(ctx, "tcp", net.JoinHostPort(ip, "6443"))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func hostsHaveAddresses(t *testing.T, c *Cluster) {
	for _, n := range c.Nodes[:3] {
		for _, ip := range []string{n.IP, n.IPv6, n.Management} {
			if !reaches(t, c, Switch, ip) || !reaches(t, c, 0, ip) || !reaches(t, c, 3, ip) {
				t.Errorf("%s of %s is out of reach", ip, n.Name)
			}
		}
	}
	if !reaches(t, c, 1, "127.0.0.1") || reaches(t, c, 3, "127.0.0.1") || reaches(t, c, Switch, "127.0.0.1") {
		t.Error("a host's loopback is not its own")
	}
	command := append(c.HostCommand(1), "cat", "/proc/net/fib_trie")
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), c.Nodes[1].IP) || strings.Contains(string(out), c.Nodes[2].IP) {
		t.Errorf("a command on a host: %v: %s", err, out)
	}
}

func readiness(t *testing.T, c *Cluster, i int) corev1.ConditionStatus {
	node, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.Nodes[i].Name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status
		}
	}
	return ""
}

// cutHost takes the host that the client speaks to.
func cutHost(t *testing.T, c *Cluster) {
	if err := c.CutNode(0); err != nil {
		t.Fatal(err)
	}
	if !reaches(t, c, 0, c.Nodes[0].IP) || reaches(t, c, Switch, c.Nodes[0].IP) || reaches(t, c, 0, c.Nodes[1].IP) {
		t.Error("the cut host is not alone with its API server")
	}
	if c.get(t.Context(), c.hosts[0], c.hosts[0].seat.server()+"/api/v1/nodes") {
		t.Error("without a quorum the API server lists Nodes")
	}
	eventually(t, 40*time.Second, "the cut node to be unknown", func() bool { return readiness(t, c, 0) == corev1.ConditionUnknown })
	if out, err := c.Kubectl(t.Context(), "get", "nodes", "-o", "name"); err != nil || strings.Count(string(out), "node/") != 3 {
		t.Errorf("kubectl says %q, %v", out, err)
	}
	if err := c.HealNode(0); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the healed node to be ready", func() bool { return readiness(t, c, 0) == corev1.ConditionTrue })
}

func firstHostDies(t *testing.T, c *Cluster) {
	c.StopControlPlane(0)
	eventually(t, 15*time.Second, "the others to write", func() bool { return c.SetBootID(t.Context(), 1, "another") == nil })
	if err := c.StartControlPlane(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := c.StartControlPlane(t.Context(), 0); err != nil {
		t.Errorf("started twice: %v", err)
	}
	wantMembers(t, c, 0, 1, 2)
}

func hostIsKilled(t *testing.T, c *Cluster) {
	if err := c.KillHost(2); err != nil {
		t.Fatal(err)
	}
	if reaches(t, c, 0, c.Nodes[2].IP) || reaches(t, c, 2, c.Nodes[2].IP) {
		t.Error("something listens on the killed host")
	}
	if err := c.StartHost(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if !reaches(t, c, 0, c.Nodes[2].IP) {
		t.Error("the host that came back is out of reach")
	}
	wantMembers(t, c, 0, 1, 2)
	eventually(t, 30*time.Second, "the node to be ready", func() bool { return c.takesPods(t.Context(), c.Nodes[2].Name) })
}

func hostIsReplaced(t *testing.T, c *Cluster) {
	if _, err := c.Kubectl(t.Context(), "delete", "node", c.Nodes[1].Name); err != nil {
		t.Fatal(err)
	}
	wantMembers(t, c, 0, 2)
	eventually(t, 30*time.Second, "the host's programs to end", func() bool {
		c.hosts[1].mu.Lock()
		defer c.hosts[1].mu.Unlock()
		return c.hosts[1].services == nil && !reaches(t, c, 1, c.Nodes[1].IP)
	})
	join(t, c, 3)
	wantMembers(t, c, 0, 2, 3)
}

func TestTwoClustersShareAWireAndNothingElse(t *testing.T) {
	needsHosts(t)
	a := start(t, Options{Hosts: true, Nodes: 1})
	b := start(t, Options{Hosts: true, Nodes: 1, Wire: a})
	if a.Nodes[0].IP == b.Nodes[0].IP || a.Nodes[0].UUID == b.Nodes[0].UUID {
		t.Errorf("two hosts on one wire are %+v and %+v", a.Nodes[0], b.Nodes[0])
	}
	if !reaches(t, a, 0, b.Nodes[0].IP) || !reaches(t, b, 0, a.Nodes[0].IP) {
		t.Error("the clusters are not on one wire")
	}
	for _, c := range []*Cluster{a, b} {
		list, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != c.Nodes[0].Name {
			t.Errorf("the nodes are %v, %v", list.Items, err)
		}
	}
}

func TestHostsAreRefusedWhatTheyCannotHave(t *testing.T) {
	for _, o := range []Options{
		{Spare: 1},
		{Wire: &Cluster{}},
		{Release: NextPatch},
		{Hosts: true, Nodes: 2, Spare: 2},
		{Hosts: true, Nodes: 2, Spare: -1},
		{Hosts: true, Audit: true},
		{Hosts: true, Wire: &Cluster{}},
	} {
		if c, err := Start(t.Context(), o); err == nil {
			t.Errorf("%+v started", o)
			_ = c.Stop()
		}
	}
}
