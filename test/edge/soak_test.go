//go:build linux && soak

package edge

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
)

// TestSoakEdgeNodesOfRealKubeEdge tells the story on one cluster, step after step.
func TestSoakEdgeNodesOfRealKubeEdge(t *testing.T) {
	s := newStage(t)
	s.enable()
	s.joins()
	s.reads()
	s.leaderDiesWhileALogIsFollowed()
	s.strangersGetNothing()
	s.addressesReachTheCertificate()
	s.aTunnelIsCutWhileCloudcoresNodeIsLost()
	s.oneOfThreeDies()
	s.leave()
	s.disable()
}

// step is named in the log, with its time.
func (s *stage) step(name string) func() {
	began := time.Now()
	s.Logf("%s: %s", began.Format(rig.Clock), name)
	return func() { s.Logf("%s took %s", name, rig.Since(began)) }
}

// enable has cloudcore, the controller and the path run as pods, by the objects of the controller.
func (s *stage) enable() {
	defer s.step("enable")()
	s.must("enable", "--yes")
	took := rig.Until(s.T, 90*time.Second, func() string {
		// cloudcore waits for up to 10 s before it begins, and then makes the tokens to join with.
		if _, err := s.Client().CoreV1().Secrets(namespace).Get(s.Context(), "tokensecret", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return s.well(1)
	})
	s.Logf("cloudcore and the path are well %s after enable", took)
	for selector, want := range map[string]int{cloudcore: 1, "app.kubernetes.io/name=zedkube-edge-path": servers} {
		pods := s.pods(selector)
		if len(pods) != want {
			s.Errorf("of %s there are %d pods, want %d", selector, len(pods), want)
		}
		for _, p := range pods {
			if p.Status.Phase != corev1.PodRunning {
				s.Errorf("pod %s is %s", p.Name, p.Status.Phase)
			}
		}
	}
}

// joins lets two devices join that have the same private address.
func (s *stage) joins() {
	defer s.step("join")()
	for i := range devices {
		took := s.join(i)
		s.Logf("%s is Ready %s after the start of join.sh", device(i), took)
		if took > 10*time.Second {
			s.Errorf("%s was Ready after %s, not 10 s", device(i), took)
		}
		if out := s.on(i, "ip -4 -o addr show eth0"); !strings.Contains(out, "192.168.1.10/24") {
			s.Errorf("the address of %s is not that of all devices: %s", device(i), out)
		}
		s.start(i)
	}
}

// reads asks for everything from every server.
func (s *stage) reads() {
	defer s.step("read")()
	for of := range devices {
		for from := range servers {
			rig.Until(s.T, 15*time.Second, func() string { return s.unread(from, of, 10*time.Second) })
			out := s.kubectl(from, "exec", "on-"+device(of), "--", "/realnode", "app", "--rate=50", "--exit=3", "--well=true")
			if strings.Count(out, "\n") != 3 {
				s.Errorf("from %s exec at %s printed %q", s.Nodes[from].Name, device(of), out)
			}
			s.measured(from, of)
		}
	}
}

// measured wants the fields of a device's statistics.
func (s *stage) measured(from, of int) {
	s.Helper()
	var summary struct {
		Node struct {
			NodeName string
			CPU      struct{ UsageNanoCores, UsageCoreNanoSeconds *uint64 }
			Memory   struct{ WorkingSetBytes, UsageBytes *uint64 }
			Network  struct{ RxBytes, TxBytes *uint64 }
			FS       struct{ AvailableBytes, CapacityBytes, UsedBytes *uint64 }
		}
		Pods []struct{ PodRef struct{ Name string } }
	}
	missing := func() string {
		out := s.kubectl(from, "get", "--raw", "/api/v1/nodes/"+device(of)+"/proxy/stats/summary")
		if err := json.Unmarshal([]byte(out), &summary); err != nil {
			return err.Error()
		}
		n := summary.Node
		if slices.Contains([]*uint64{
			n.CPU.UsageNanoCores, n.CPU.UsageCoreNanoSeconds, n.Memory.WorkingSetBytes, n.Memory.UsageBytes, n.Network.RxBytes, n.Network.TxBytes,
			n.FS.AvailableBytes, n.FS.CapacityBytes, n.FS.UsedBytes,
		}, nil) || n.NodeName != device(of) || len(summary.Pods) != 1 || summary.Pods[0].PodRef.Name != "on-"+device(of) {
			return "from " + s.Nodes[from].Name + " the statistics of " + device(of) + " are " + out
		}
		return ""
	}
	rig.Until(s.T, 20*time.Second, missing)
}

// leaderDiesWhileALogIsFollowed kills the leading controller: nothing of a log that is followed is lost.
func (s *stage) leaderDiesWhileALogIsFollowed() {
	defer s.step("the leader dies")()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	follow := append(slices.Clone(s.kube[1]), "logs", "-f", "--tail=1", "on-"+device(0))
	cmd := exec.CommandContext(ctx, follow[0], follow[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for read := bufio.NewScanner(out); read.Scan(); {
			lines <- read.Text()
		}
	}()
	read := func(n int) {
		s.Helper()
		for range n {
			select {
			case _, more := <-lines:
				if !more {
					s.Fatal("the log that is followed has ended")
				}
			case <-time.After(30 * time.Second):
				s.Fatal("the log that is followed is silent for 30 s")
			}
		}
	}
	read(3)
	leader := s.leader()
	s.kubectl(0, "-n", namespace, "delete", "pod", leader, "--grace-period=0", "--force")
	rig.Until(s.T, 30*time.Second, func() string {
		if s.leader() == leader {
			return leader + " leads although it is gone"
		}
		return ""
	})
	for len(lines) > 0 {
		<-lines
	}
	read(3)
}

func (s *stage) leader() string {
	s.Helper()
	lease, err := s.Client().CoordinationV1().Leases(namespace).Get(s.Context(), "zedkube-edge", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	return strings.Split(holder, "_")[0]
}

// strangersGetNothing knocks at each port of the stream, from a host of the site and from every
// server: who does not say who he is gets no more than a refusal, and edgecore goes on.
func (s *stage) strangersGetNothing() {
	defer s.step("strangers")()
	before := s.processes("/usr/local/bin/edgecore")
	pod := s.pods(cloudcore)[0]
	exec := "/exec/default/on-" + device(0) + "/app?command=/realnode&output=1"
	logs := "/containerLogs/default/on-" + device(0) + "/app"
	for i := range servers {
		for _, path := range []string{exec, logs, "/stats/summary"} {
			if got := s.asks(s.DialFrom(i), net.JoinHostPort(pod.Status.PodIP, "10003"), path); got != "401" {
				s.Errorf("from %s port 10003 answers %s with %s", s.Nodes[i].Name, path, got)
			}
			if got := s.asks(s.DialFrom(i), net.JoinHostPort(pod.Status.PodIP, "10013"), path); got != "" {
				s.Errorf("from %s port 10013 answers %s with %s", s.Nodes[i].Name, path, got)
			}
		}
		for _, port := range []string{"31003", "10003", "10013"} {
			if got := s.asks(s.DialFrom(-1), net.JoinHostPort(s.Nodes[i].IP, port), exec); got != "" {
				s.Errorf("%s answers at port %s with %s", s.Nodes[i].Name, port, got)
			}
		}
	}
	if out := s.on(1, "for p in 10003 10013 31003; do timeout 3 bash -c \"exec 3<>/dev/tcp/"+s.Nodes[0].IP+"/$p\" 2>/dev/null && echo $p; done; true"); out != "" {
		s.Errorf("another device reaches port %s", out)
	}
	if after := s.processes("/usr/local/bin/edgecore"); len(before) == 0 || !slices.Equal(before, after) {
		s.Errorf("edgecore was %v and is %v", before, after)
	}
}

// asks is the status of an answer to somebody without a name, "" for none.
func (s *stage) asks(dial func(context.Context, string, string) (net.Conn, error), address, path string) string {
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	if strings.HasPrefix(path, "/exec") {
		request.Method = http.MethodPost
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", "SPDY/3.1")
	}
	answer, err := client.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<10))
	return answer.Status[:3]
}

// addressesReachTheCertificate sets another address: cloudcore's certificate has it, and the devices come back.
func (s *stage) addressesReachTheCertificate() {
	defer s.step("another address")()
	const more = "203.0.113.7"
	s.must("set", "--yes", "advertiseAddress="+s.Nodes[0].IP+","+s.Nodes[1].IP+","+s.Nodes[2].IP+","+more)
	took := rig.Until(s.T, 60*time.Second, func() string {
		secret, err := s.Client().CoreV1().Secrets(namespace).Get(s.Context(), "cloudcoresecret", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		cert, err := x509.ParseCertificate(der(secret.Data["cloudcoredata"]))
		if err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(cert.IPAddresses, net.ParseIP(more).Equal) {
			return "cloudcore's certificate has " + strings.Join(words(cert.IPAddresses), " ")
		}
		return s.well(1)
	})
	s.Logf("the certificate has the address %s after it was set", took)
	s.served(2 * time.Minute)
}

// der is a certificate as it is, or out of PEM.
func der(data []byte) []byte {
	if block, _ := pem.Decode(data); block != nil {
		return block.Bytes
	}
	return data
}

func words(ips []net.IP) (list []string) {
	for _, ip := range ips {
		list = append(list, ip.String())
	}
	return list
}

// served waits until all devices are Ready and their logs are read from each server that there is.
func (s *stage) served(within time.Duration, without ...int) time.Duration {
	s.Helper()
	return rig.Within(s.T, within, func() string {
		for of := range devices {
			if why := s.unready(device(of)); why != "" {
				return why
			}
			for from := range servers {
				if slices.Contains(without, from) {
					continue
				}
				if why := s.unread(from, of, 5*time.Second); why != "" {
					return why
				}
			}
		}
		return ""
	})
}

// ids are those of the pods of devices, with their containers.
func (s *stage) ids() (list []string) {
	s.Helper()
	for i := range devices {
		pod, err := s.Client().CoreV1().Pods("default").Get(s.Context(), "on-"+device(i), metav1.GetOptions{})
		if err != nil {
			s.Fatal(err)
		}
		list = append(list, string(pod.UID)+" "+pod.Status.ContainerStatuses[0].ContainerID)
	}
	return list
}

// aTunnelIsCutWhileCloudcoresNodeIsLost cuts a device off for a minute, or five minutes in a long run, while the node of
// its cloudcore loses its power: its pod stays, whoever asks for its log has an answer in time, and it is well soon after.
func (s *stage) aTunnelIsCutWhileCloudcoresNodeIsLost() {
	defer s.step("a cut tunnel")()
	before := s.ids()
	on := s.pods(cloudcore)[0].Spec.NodeName
	lost := slices.IndexFunc(s.Nodes, func(n devcluster.Node) bool { return n.Name == on })
	from := (lost + 1) % servers
	for _, err := range []error{s.CutEdge(0), s.KillHost(lost)} {
		if err != nil {
			s.Fatal(err)
		}
	}
	long := 5 * time.Minute
	if os.Getenv(seeds.Brief) != "" || os.Getenv(seeds.Book) == "" {
		long = time.Minute
	}
	for began := time.Now(); time.Since(began) < long; {
		asked := time.Now()
		ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
		out, err := s.try(ctx, append(slices.Clone(s.kube[from]), "logs", "--tail=1", "on-"+device(0))...)
		cancel()
		if err == nil {
			s.Errorf("the log of a device that is cut off says %s", out)
		}
		if took := time.Since(asked); took > 15*time.Second {
			s.Errorf("whoever asked for the log waited for %s, and was told %v %s", took, err, out)
		}
		rig.Pause(s.T, 5*time.Second)
	}
	s.Logf("with the tunnel cut kubectl logs says: %s", s.answer(from))
	if err := s.HealEdge(0); err != nil {
		s.Fatal(err)
	}
	healed := time.Now()
	rig.Within(s.T, 2*time.Minute, func() string { return s.unready(device(0)) })
	took := rig.Since(healed)
	s.Logf("%s is Ready %s after its cable is back", device(0), took)
	if err := s.StartHost(s.Context(), lost); err != nil {
		s.Fatal(err)
	}
	s.served(3 * time.Minute)
	if after := s.ids(); !slices.Equal(before, after) {
		s.Errorf("pods of devices were %q and are %q", before, after)
	}
}

func (s *stage) answer(from int) string {
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	out, _ := s.try(ctx, append(slices.Clone(s.kube[from]), "logs", "--tail=1", "on-"+device(0))...)
	return out
}

// oneOfThreeDies kills a process of cloudcore of three: its devices are served by another one within 30 s.
func (s *stage) oneOfThreeDies() {
	defer s.step("three cloudcores")()
	s.must("set", "--yes", "ha=true")
	rig.Until(s.T, 90*time.Second, func() string {
		if n := len(s.pods(cloudcore)); n != servers {
			return "there are not three cloudcores"
		}
		return s.well(servers)
	})
	s.served(2 * time.Minute)
	node, err := s.Client().CoreV1().Nodes().Get(s.Context(), device(0), metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for _, p := range s.pods(cloudcore) {
		if p.Status.PodIP == node.Annotations["cloudcore"] || p.Status.HostIP == node.Annotations["cloudcore"] {
			s.killIn(p, "cloudcore.yaml")
			took := s.served(2 * time.Minute)
			s.Logf("the devices are served %s after their cloudcore was killed", took)
			if took > 30*time.Second {
				s.Errorf("they were served after %s, not 30 s", took)
			}
			return
		}
	}
	s.Errorf("no cloudcore is that of %s: %v", device(0), node.Annotations)
}

// leave ends that the first device is an edge node, and lets it join again.
func (s *stage) leave() {
	defer s.step("leave")()
	if err := s.Client().CoreV1().Pods("default").Delete(s.Context(), "on-"+device(0), metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	left := make(chan string, 1)
	go func() {
		out, err := s.try(s.Context(), s.zedkubeEdge(0, "leave", device(0), "--yes")...)
		left <- fmt.Sprint(err, out)
	}()
	rig.Within(s.T, 2*time.Minute, func() string {
		node, err := s.Client().CoreV1().Nodes().Get(s.Context(), device(0), metav1.GetOptions{})
		if err != nil || !node.Spec.Unschedulable {
			return fmt.Sprint("leave has not cordoned the node: ", err)
		}
		return ""
	})
	s.on(0, "/usr/local/lib/zedkube-edge/leave.sh")
	if said := <-left; !strings.HasPrefix(said, "<nil>") {
		s.Errorf("leave ends with %s", said)
	}
	s.gone(device(0))
	if out := s.on(0, "ls -d /etc/kubeedge /var/lib/kubeedge 2>/dev/null; ip addr show lo | grep 100.127 || true"); out != "" {
		s.Errorf("leave.sh leaves %s", out)
	}
	took := s.join(0)
	s.Logf("%s is Ready again %s after it has left and joined", device(0), took)

	s.must("leave", device(1), "--lost", "--yes")
	s.gone(device(1))
	rig.Lasts(s.T, 20*time.Second, func() string {
		if s.unready(device(1)) == "" {
			return "a lost device is a node again"
		}
		return ""
	})
}

func (s *stage) gone(name string) {
	s.Helper()
	if _, err := s.Client().CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.Errorf("after leave the Node %s: %v", name, err)
	}
}

// disable is refused while a device is Ready, and leaves the pods of devices alone; a purge leaves nothing.
func (s *stage) disable() {
	defer s.step("disable")()
	out, err := s.try(s.Context(), s.zedkubeEdge(0, "disable", "--yes")...)
	if err == nil || !strings.Contains(out, device(0)) {
		s.Errorf("disable while %s is Ready: %v\n%s", device(0), err, out)
	}
	s.start(0)
	running := s.processes("/realnode", "--rate=2")
	s.must("disable", "--yes", "--force")
	rig.Until(s.T, 60*time.Second, func() string {
		if left := s.kubectl(0, "-n", namespace, "get", "deployments,daemonsets,pods,services", "-o", "name"); left != "" {
			return "there is " + left
		}
		for i := range servers {
			if route := s.run(append(s.HostCommand(i), "ip", "route", "show", "table", "local", "proto", "222")...); route != "" {
				return s.Nodes[i].Name + " has the route " + route
			}
		}
		return ""
	})
	if after := s.processes("/realnode", "--rate=2"); len(running) == 0 || !slices.Equal(running, after) {
		s.Errorf("pods of devices were %v and are %v", running, after)
	}
	if out := s.kubectl(0, "-n", namespace, "get", "secrets", "-o", "name"); out != "secret/casecret\nsecret/cloudcoresecret\nsecret/tokensecret\n" {
		s.Errorf("disable leaves the secrets %s", out)
	}
	s.must("disable", "--purge", "--yes", "--force")
	rig.Until(s.T, 60*time.Second, func() string {
		if _, err := s.Client().CoreV1().Namespaces().Get(s.Context(), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return "the namespace is there"
		}
		if left := s.kubectl(0, "get", "crd,clusterrole,clusterrolebinding,csr", "-o", "name"); strings.Contains(left, "kubeedge") || strings.Contains(left, "cloudcore") || strings.Contains(left, "zedkube-edge") {
			return "there is " + left
		}
		return ""
	})
	s.gone(device(0))
}
