//go:build linux

package devcluster

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func faultsHitOneNode(t *testing.T, c *Cluster) {
	mine, other := nodeClient(t, c, 0), nodeClient(t, c, 1)
	callWithin := func(long time.Duration, client kubernetes.Interface) error {
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		_, err := client.CoreV1().Namespaces().Get(ctx, AppNamespace, metav1.GetOptions{})
		return err
	}
	call := func(client kubernetes.Interface) error { return callWithin(patience*5*time.Second, client) }
	heal := func() {
		t.Helper()
		if err := c.SetNodeFault(0, None); err != nil {
			t.Fatal(err)
		}
		eventually(t, 5*time.Second, "the API to be back", func() bool { return call(mine) == nil })
	}
	watch, err := mine.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	if err := c.SetNodeFault(0, Hung); err != nil {
		t.Fatal(err)
	}
	if got := c.NodeFault(0); got != Hung {
		t.Errorf("the fault is %v", got)
	}
	for name, client := range map[string]kubernetes.Interface{"open": mine, "new": nodeClient(t, c, 0)} {
		if err := callWithin(time.Second, client); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s connection, hung: %v", name, err)
		}
	}
	if err := call(other); err != nil {
		t.Errorf("the other node, while one is hung: %v", err)
	}
	heal()

	if err := c.SetNodeFault(0, Refused); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the watch to be cut", func() bool {
		select {
		case _, open := <-watch.ResultChan():
			return !open
		default:
			return false
		}
	})
	if err := call(mine); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a refused call: %v", err)
	}
	if err := call(other); err != nil {
		t.Errorf("the other node, while one is refused: %v", err)
	}
	heal()
	if err := c.SetNodeFault(0, "haunted"); err == nil || c.NodeFault(0) != None {
		t.Errorf("an unknown fault: %v, now %v", err, c.NodeFault(0))
	}
}

// nodeClient returns a client with connections of its own.
func nodeClient(t *testing.T, c *Cluster, i int) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(nodeConfig(t, c, i))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestFaultNames(t *testing.T) {
	for _, f := range []Fault{
		None, Refused, Hung, Expired, Stalled, Slow(2 * time.Second), Status(429), Reset(0), "reset",
		"503=0.25", "slow=1s,500=0.5,only=patch+create", "500,of=pods+volumes",
	} {
		if got, err := ParseFault(f.String()); got != f || err != nil {
			t.Errorf("%v is parsed as %v, %v", f, got, err)
		}
	}
	for _, name := range []string{
		"", "slow", "slow=-1s", "200", "600", "503=2", "503=NaN", "reset=-1", "only=eat", "of=", "of", "hung,503", "none,", "expired=1", "stalled=1",
	} {
		if f, err := ParseFault(name); err == nil || f != None {
			t.Errorf("%q was accepted as %q", name, f)
		}
	}
	if got := Fault("").String(); got != "none" {
		t.Errorf("no fault is called %q", got)
	}
}
