package localserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/proof"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// patience is twelve times what a quiet machine needs, and more.
const patience = time.Minute

// eventually waits until what is true.
func eventually(t *testing.T, what func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = what(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// asked is what the server says at a URL.
func asked(client *http.Client, url string) (string, error) {
	defer client.CloseIdleConnections()
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body), err
}

func answers(client *http.Client, url, want string) func() error {
	return func() error {
		if got, err := asked(client, url); err != nil || got != want {
			return fmt.Errorf("%s: %q, %w", url, got, errors.Join(err, errors.New("not yet")))
		}
		return nil
	}
}

// freePort is a port of loopback on which nobody listens.
func freePort(t *testing.T, ip string) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestAPortThatAnotherHoldsDoesNotKeepTheSocketFromWorking(t *testing.T) {
	c := component(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Address = l.Addr().String()
	if err := c.Step(t.Context()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
	eventually(t, answers(boundedhttp.NewSocketClient(c.Socket), "http://zedkube/metrics", "200 numbers"))
	l.Close()
	if err := c.Step(t.Context()); err != nil {
		t.Errorf("the port is free again: %v", err)
	}
	eventually(t, answers(&http.Client{Transport: &http.Transport{}}, "http://"+c.Address+"/metrics", "200 numbers"))
	for at := range c.listening {
		c.stop(t.Context(), at)
	}
	c.ending.Wait()
}

func TestTheClusterAddressComesAndGoes(t *testing.T) {
	c := component(t)
	const ip = "127.9.8.7"
	c.ClusterPort = freePort(t, ip)
	status := c.Status.(*pubsub.Table[types.EdgeNodeClusterStatus])
	run(t, c)
	address := net.JoinHostPort(ip, strconv.Itoa(c.ClusterPort))
	client := &http.Client{Transport: members{t, address}}
	silent := func() error {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return errors.New("somebody listens on the cluster address")
		}
		return nil
	}
	_ = status.Publish(types.Global, member(ip, "token", false))
	eventually(t, answers(boundedhttp.NewSocketClient(c.Socket), "http://zedkube/metrics", "200 numbers"))
	eventually(t, silent)
	_ = status.Publish(types.Global, member(ip, "token", true))
	eventually(t, answers(client, "http://"+address+"/metrics", "200 numbers"))
	eventually(t, answers(client, "http://"+address+"/debug/pprof/heap", "200 page"))
	_ = status.Publish(types.Global, member(ip, "token", false))
	eventually(t, silent)
	_ = status.Publish(types.Global, member(ip, "token", true))
	eventually(t, answers(client, "http://"+address+"/metrics", "200 numbers"))
	_ = status.Unpublish(types.Global)
	eventually(t, silent)
}

// members sends requests with the proof of a member.
type members struct {
	t       *testing.T
	address string
}

func (m members) RoundTrip(r *http.Request) (*http.Response, error) {
	key, err := proof.Key(member("10.244.244.1", "token", true))
	if err != nil {
		return nil, err
	}
	r.Header.Set(proof.Header, proof.Ask{Method: r.Method, Host: m.address, Path: r.URL.RequestURI()}.Sign(key, time.Now()))
	transport := &http.Transport{DisableKeepAlives: true}
	return transport.RoundTrip(r)
}

func TestWhereToListen(t *testing.T) {
	ready := member("10.244.244.1", "token", true)
	for name, test := range map[string]struct {
		f    facts
		want string
	}{
		"the socket alone":          {facts{socket: "s"}, "s"},
		"and loopback":              {facts{socket: "s", loopback: "127.0.0.1:1"}, "s 127.0.0.1:1"},
		"not asked for":             {facts{socket: "s", status: ready}, "s"},
		"on the cluster address":    {facts{socket: "s", status: ready, clusterPort: 12347}, "s 10.244.244.1:12347"},
		"that is not there yet":     {facts{socket: "s", status: member("10.244.244.1", "token", false), clusterPort: 12347}, "s"},
		"without any":               {facts{socket: "s", status: types.EdgeNodeClusterStatus{ClusterIPIsReady: true}, clusterPort: 12347}, "s"},
		"on a link-local address":   {facts{socket: "s", status: linkLocal(ready), clusterPort: 12347}, "s [fe80::1%eth1]:12347"},
		"an address that is broken": {facts{socket: "s", status: broken(ready), clusterPort: 12347}, "s"},
	} {
		a := decide(test.f).listen
		var got []string
		for _, at := range []place{onSocket, onLoopback, onCluster} {
			if address, ok := a[at]; ok {
				got = append(got, address)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func linkLocal(s types.EdgeNodeClusterStatus) types.EdgeNodeClusterStatus {
	s.ClusterIPPrefix = &net.IPNet{IP: net.ParseIP("fe80::1"), Mask: net.CIDRMask(64, 128)}
	s.ClusterInterface = "eth1"
	return s
}

func broken(s types.EdgeNodeClusterStatus) types.EdgeNodeClusterStatus {
	s.ClusterIPPrefix = &net.IPNet{IP: net.IP{1, 2, 3}}
	return s
}
