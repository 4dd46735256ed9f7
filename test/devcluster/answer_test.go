//go:build linux

package devcluster

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"
)

// faultedAnswers are the faults above TLS, one after the other on node 0.
func faultedAnswers(t *testing.T, c *Cluster) {
	for _, story := range []struct {
		name string
		run  func(*testing.T, *Cluster)
	}{
		{"a slow answer", slowAnswer},
		{"refusing statuses", refusingStatuses},
		{"a fault for some verbs or resources only", someVerbs},
		{"an expired watch", expiredWatch},
		{"a stalled watch", stalledWatch},
		{"a watch that ends in good order", cutWatch},
		{"a reset in mid-answer", resetInAnswer},
		{"who asks is known", identityPasses},
		{"a stream of another protocol", streamPasses},
		{"a new authority", newCA},
		{"a certificate out of time", certSkew},
	} {
		t.Run(story.name, func(t *testing.T) {
			story.run(t, c)
			set(t, c, None)
			if code, _, err := get(t, c, nodesPath); code != http.StatusOK || err != nil {
				t.Errorf("healed, the answer is %d, %v", code, err)
			}
		})
	}
}

const nodesPath = "/api/v1/nodes"

func set(t *testing.T, c *Cluster, f Fault) {
	t.Helper()
	if err := c.SetNodeFault(0, f); err != nil {
		t.Fatal(err)
	}
}

func nodeConfig(t *testing.T, c *Cluster, i int) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(c.NodeKubeconfig(i))
	if err != nil {
		t.Fatal(err)
	}
	dialer := connrotation.NewDialer((&net.Dialer{}).DialContext) // keeps client-go from sharing connections
	t.Cleanup(dialer.CloseAll)
	config.Dial = dialer.DialContext
	return config
}

// ask asks node 0 for a path, without the patience of client-go.
func ask(t *testing.T, c *Cluster, path string) (*http.Response, error) {
	t.Helper()
	config := nodeConfig(t, c, 0)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(req)
}

// get is ask that reads the answer.
func get(t *testing.T, c *Cluster, path string) (code int, answer []byte, err error) {
	t.Helper()
	resp, err := ask(t, c, path)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if code = resp.StatusCode; code == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "1" {
		t.Errorf("overloaded, without a time to wait: %v", resp.Header)
	}
	answer, err = io.ReadAll(resp.Body)
	return code, answer, err
}

func slowAnswer(t *testing.T, c *Cluster) {
	set(t, c, Slow(600*time.Millisecond))
	begin := time.Now()
	code, _, err := get(t, c, nodesPath)
	if took := time.Since(begin); code != http.StatusOK || err != nil || took < 600*time.Millisecond {
		t.Errorf("after %v: %d, %v", took, code, err)
	}
}

func refusingStatuses(t *testing.T, c *Cluster) {
	before := c.NodeTraffic(0)
	for _, code := range []int{429, 500, 503} {
		set(t, c, Status(code))
		if got, _, err := get(t, c, nodesPath); got != code || err != nil {
			t.Errorf("want %d, got %d, %v", code, got, err)
		}
	}
	after := c.NodeTraffic(0)
	if after.Requests-before.Requests != 3 || after.Faulted-before.Faulted != 3 {
		t.Errorf("three refused requests counted as %+v, before %+v", after, before)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := nodeClient(t, c, 0).CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("client-go takes it for %v", err)
	}
	set(t, c, "503=0.5")
	var codes []int
	for range 40 {
		code, _, _ := get(t, c, nodesPath)
		codes = append(codes, code)
	}
	if !slices.Contains(codes, 200) || !slices.Contains(codes, 503) {
		t.Errorf("half of the requests: %v", codes)
	}
}

func someVerbs(t *testing.T, c *Cluster) {
	set(t, c, "503,only=watch+patch")
	if code, _, err := get(t, c, nodesPath); code != http.StatusOK || err != nil {
		t.Errorf("a list: %d, %v", code, err)
	}
	if code, _, err := get(t, c, nodesPath+"?watch=1"); code != http.StatusServiceUnavailable || err != nil {
		t.Errorf("a watch: %d, %v", code, err)
	}
	set(t, c, "503,of=pods+nodes")
	for path, want := range map[string]int{
		nodesPath: 503, "/api/v1/namespaces/default/pods": 503, "/api/v1/namespaces/default/services": 200, "/api/v1/namespaces": 200,
	} {
		if code, _, err := get(t, c, path); code != want || err != nil {
			t.Errorf("%s: %d, %v", path, code, err)
		}
	}
}

func openWatch(t *testing.T, client kubernetes.Interface, version string) watch.Interface {
	t.Helper()
	w, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// next returns what a watch says next.
func next(t *testing.T, w watch.Interface) (event watch.Event, open bool) {
	t.Helper()
	select {
	case event, open = <-w.ResultChan():
		return event, open
	case <-time.After(patience * 5 * time.Second):
		t.Fatal("the watch says nothing")
		return
	}
}

func expiredWatch(t *testing.T, c *Cluster) {
	client := nodeClient(t, c, 0)
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old := openWatch(t, client, list.ResourceVersion)
	set(t, c, Expired)
	if event, open := next(t, old); open {
		t.Errorf("the open watch says %v", event)
	}
	event, _ := next(t, openWatch(t, client, list.ResourceVersion))
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch that goes on gets %v: %v", event.Type, err)
	}
	if event, open := next(t, openWatch(t, client, "")); !open || event.Type != watch.Added {
		t.Errorf("a watch from the start gets %v", event.Type)
	}
}

func stalledWatch(t *testing.T, c *Cluster) {
	client := nodeClient(t, c, 0)
	maps := client.CoreV1().ConfigMaps("default")
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, before := openWatch(t, client, list.ResourceVersion), c.NodeTraffic(0)
	set(t, c, Stalled)
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stalled"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the event to be held", func() bool { return c.NodeTraffic(0).Faulted > before.Faulted })
	select {
	case event, open := <-w.ResultChan():
		t.Errorf("the stalled watch says %v, %t", event, open)
	case <-time.After(200 * time.Millisecond):
	}
	set(t, c, None)
	if event, open := next(t, w); !open || event.Type != watch.Added {
		t.Errorf("healed, it says %v, %t", event, open)
	}
}

func cutWatch(t *testing.T, c *Cluster) {
	before := c.NodeTraffic(0)
	resp, err := ask(t, c, nodesPath+"?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	if line, err := events.ReadString('\n'); err != nil || !strings.Contains(line, `"ADDED"`) {
		t.Fatalf("the watch begins with %q, %v", line, err)
	}
	c.CutWatches(0)
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, events); ended <- err }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the watch ended with %v", err)
		}
	case <-time.After(patience * 5 * time.Second):
		t.Fatal("the watch does not end")
	}
	if after := c.NodeTraffic(0); after.Requests != before.Requests+1 || after.Faulted != before.Faulted {
		t.Errorf("one watch counted as %+v, before %+v", after, before)
	}
}

func resetInAnswer(t *testing.T, c *Cluster) {
	set(t, c, Reset(50))
	code, answer, err := get(t, c, nodesPath)
	if code != http.StatusOK || len(answer) != 50 || err == nil {
		t.Errorf("got %d, %d bytes, %v", code, len(answer), err)
	}
	if code, _, err := get(t, c, "/readyz"); code != http.StatusOK || err != nil {
		t.Errorf("a short answer: %d, %v", code, err)
	}
}
