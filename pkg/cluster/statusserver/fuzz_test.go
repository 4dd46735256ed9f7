package statusserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"

	logtest "github.com/sirupsen/logrus/hooks/test"
)

func FuzzReachQuery(f *testing.F) {
	for _, seed := range []string{"", "node=n1&device=c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05", "node=" + strings.Repeat("x", 300), "device=x", "node=%zz", "a;b", "node=%00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		name, device, err := reachAsked(raw)
		if err != nil && !errors.Is(err, errReachQuery) || len(name) > maxName && err == nil {
			t.Errorf("%q asks for %q, %v: %v", raw, name, device, err)
		}
	})
}

// FuzzRequest writes raw bytes to a connection: whatever they are, the server
// answers the next question.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET /status HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /status?cluster=%zz HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n",
		"GET /app/b3e2f HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /cluster-app/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX-Zedkube-Auth: v1 1 AAAA\r\n\r\nhello",
		"GET /app/../../etc/passwd HTTP/1.0\r\n\r\n",
		"GET /app/%2e%2e%2f HTTP/1.0\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"POST /app HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
		"GET http://[::1%25eth0]/readyz HTTP/1.1\r\nHost: [\r\n\r\n",
		"CONNECT /status HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01", "\r\n\r\n\r\n", "GET",
	} {
		f.Add([]byte(seed))
	}
	log, _ := logtest.NewNullLogger()
	var own pubsub.Table[types.EdgeNodeClusterStatus]
	var nodes pubsub.Table[types.Node]
	var api pubsub.Table[types.APIStatus]
	var info pubsub.Table[types.EdgeNodeInfo]
	w := working()
	_ = nodes.Publish("n1", w.nodes["n1"])
	_ = api.Publish(types.Global, w.api)
	_ = info.Publish(types.Global, w.info)
	dir := f.TempDir()
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Status: &own, Nodes: &nodes, EdgeNodes: &pubsub.Table[types.Node]{}, API: &api, Info: &info,
		TopicDirs: []string{dir}, InstallLog: filepath.Join(dir, "log"),
	}
	c.Port = freePort(f)
	here := status("127.12.34.1/24", true)
	here.EncryptedClusterToken = token
	_ = own.Publish(types.Global, here)
	if err := c.Step(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.stop(f.Context()); c.ending.Wait(); c.making.Wait() })
	f.Fuzz(func(t *testing.T, request []byte) {
		_, _ = exchange(t, c.server.address, request, 200*time.Millisecond)
		_, _ = exchange(t, byTLS+c.server.address, request, 200*time.Millisecond)
		got, err := exchange(t, c.server.address, []byte("GET /status HTTP/1.0\r\n\r\n"), 10*time.Second)
		if err != nil || !bytes.HasSuffix(got, []byte("cluster:"+clusterID)) {
			t.Errorf("after %q: %q, %v", request, got, err)
		}
	})
}

// exchange sends request, ends what it has to say, and reads what comes back.
func exchange(t *testing.T, address string, request []byte, patience time.Duration) ([]byte, error) {
	t.Helper()
	conn := dialFrom(t, "", address)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, err := conn.Write(request)
	// By TLS the end of writing is a record of its own. Where it comes when the server has
	// answered and closes, nobody reads it, and the kernel resets the connection for that.
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
	}
	return io.ReadAll(conn)
}

func FuzzAppID(f *testing.F) {
	for _, seed := range []string{"/app", "/app/", "/app/b3e2f", "/app//", "/app/../x", "/app/\x00", "/app/%2e", "/cluster-app/B3"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	c := &Component{Status: &pubsub.Table[types.EdgeNodeClusterStatus]{}, TopicDirs: []string{dir}, InstallLog: filepath.Join(dir, "log")}
	f.Fuzz(func(t *testing.T, path string) {
		id, ok := appID(path, appPath)
		if !ok {
			return
		}
		if len(id) > maxAppID || strings.ContainsAny(id, "/.\x00*") || id != strings.ToLower(id) {
			t.Fatalf("%q leads to %q", path, id)
		}
		if r := c.collect(t.Context(), id); r.Hostname != "unknown" || len(r.AppInfo) != 1 {
			t.Errorf("%q: %+v", path, r)
		}
	})
}

func FuzzPeerReport(f *testing.F) {
	f.Add([]byte(`{"hostname":"x","collectTime":"now","appInfo":[{"key":"k","value":{"Content":"` + token + `"}}]}`))
	f.Add([]byte(`{"appInfo":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := readReport(body, token)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeJSON(&out, r); err != nil || bytes.Contains(out.Bytes(), []byte(token)) {
			t.Errorf("%v, %q", err, out.Bytes())
		}
	})
}
