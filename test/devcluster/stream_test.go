//go:build linux

package devcluster

import (
	"net/http"
	"testing"

	"k8s.io/client-go/rest"
)

// streamPasses opens a stream as kubectl exec and a console do.
func streamPasses(t *testing.T, c *Cluster) {
	vm, err := c.CreateVM(t.Context(), App{Name: "stream-12345-0", Domain: "st.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitRunning(t.Context(), labelDomain+"=st.0.1", 1); err != nil {
		t.Fatal(err)
	}
	config := nodeConfig(t, c, 0)
	config.NextProtos = []string{"http/1.1"}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	url := config.Host + "/api/v1/namespaces/" + AppNamespace + "/pods/" + vm + "/exec?command=true&stdout=1&container=compute"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
	} {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("the stream is answered with %s", resp.Status)
	}
	if n, err := resp.Body.Read(make([]byte, 100)); n == 0 {
		t.Errorf("nothing comes through: %v", err)
	}
}
