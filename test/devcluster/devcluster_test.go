//go:build linux

package devcluster

import (
	"os"
	"testing"
	"time"
)

func TestCluster(t *testing.T) {
	begin := time.Now()
	c, err := Start(t.Context(), Options{Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("started after", time.Since(begin))
	out, err := c.Kubectl(t.Context(), "get", "nodes", "-owide")
	t.Log(string(out), err)
	out, err = c.Kubectl(t.Context(), "get", "nodes", "node-1", "-oyaml")
	t.Log(string(out), err)
	t.Log(c.Dir)
	time.Sleep(5*time.Second)
	begin = time.Now()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Log("stopped after", time.Since(begin))
}
