//go:build linux && soak

package edge

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/rig"
)

// TestSoakEdgeNodesOfRealKubeEdge tells the story on one cluster, step after step.
func TestSoakEdgeNodesOfRealKubeEdge(t *testing.T) {
	s := newStage(t)
	s.enable()
	s.joins()
	s.reads()
	s.tops()
	s.leaderDiesWhileALogIsFollowed()
	s.strangersGetNothing()
	s.addressesReachTheCertificate()
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
	took := rig.Until(s.T, 90*time.Second, func() string { return s.well(1) })
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
		s.start(device(i))
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
		for port, want := range map[string]string{"10004": "401", "10014": ""} {
			if got := s.asks(s.DialFrom(i), net.JoinHostPort(pod.Status.PodIP, port), "/v1/kubeedge/connect"); got != want {
				s.Errorf("from %s port %s answers to a tunnel with %q, want %q", s.Nodes[i].Name, port, got, want)
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
	s.neighbourGetsNothing(pod, exec)
	if after := s.processes("/usr/local/bin/edgecore"); len(before) == 0 || !slices.Equal(before, after) {
		s.Errorf("edgecore was %v and is %v", before, after)
	}
}

// neighbourGetsNothing knocks from a pod beside cloudcore's, while somebody flushes that server's iptables.
func (s *stage) neighbourGetsNothing(pod corev1.Pod, path string) {
	s.Helper()
	home := s.home(pod)
	inside := s.inside(*s.start(s.Nodes[home].Name), "/realnode")
	ctx, end := context.WithCancel(s.Context())
	flush := append(s.HostCommand(home), "/bin/sh", "-c", "for n in $(seq 600); do for t in filter mangle raw; do iptables -w -t $t -F || exit; done; echo; sleep 0.1; done")
	cmd := exec.CommandContext(ctx, flush[0], flush[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	defer func() { end(); _ = cmd.Wait() }()
	for range 3 {
		for port, want := range map[string]string{"10003": "401", "10012": "000", "10013": "000"} {
			if _, err := out.Read(make([]byte, 1)); err != nil {
				s.Errorf("iptables is not flushed any more: %v", err)
			}
			got, err := s.try(ctx, "nsenter", "--net=/proc/"+strconv.Itoa(inside[0])+"/ns/net",
				"curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "5", "https://"+net.JoinHostPort(pod.Status.PodIP, port)+path)
			if got != want {
				s.Errorf("a pod beside cloudcore gets %q at port %s, want %q (%v)", got, port, want, err)
			}
		}
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
