package main

import (
	"context"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/cli/device"
)

// TestEverySocketAnswersBeforeThereIsAnyValue asks what EVE's agents and the
// kube container ask at boot (docs/wire.md, "Topics out").
func TestEverySocketAnswersBeforeThereIsAnyValue(t *testing.T) {
	root, err := os.MkdirTemp("", "zk") // short: a socket address has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	log := logrus.New()
	log.SetOutput(io.Discard)
	bus, _ := wire(t.Context(), device.Options{Root: root}.Paths(), log, io.Discard)
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); bus.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for name, hello := range map[string]string{
		"zedkube/EdgeNodeClusterStatus":    "false",
		"zedkube/ENClusterAppStatus":       "false",
		"zedkube/NodeDrainStatus":          "false",
		"zedkube/NodeDrainProgress":        "false",
		"zedkube/NodeDrainJournal":         "true",
		"zedkube/ClusterMembership":        "true",
		"zedkube/ClusterMembersJournal":    "true",
		"zedkube/KubeClusterInfo":          "false",
		"zedkube/KubeUserServices":         "false",
		"zedkube/KubeLeaderElectInfo":      "false",
		"zedkube/KubeConfig":               "true",
		"zedkube/CipherBlockStatus":        "false",
		"zedkube/CipherMetrics":            "false",
		"zedagent/KubeClusterUpdateStatus": "true",
	} {
		topic := path.Base(name)
		got, err := ask(filepath.Join(root, "run", name+".sock"), topic)
		if want := [2]string{"hello " + topic + " " + hello, "complete " + topic}; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

// ask returns the first two packets of a publisher.
func ask(sock, topic string) (packets [2]string, err error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: sock, Net: "unixpacket"})
	if err != nil {
		return packets, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return packets, err
	}
	if _, err := conn.Write([]byte("request " + topic)); err != nil {
		return packets, err
	}
	buf := make([]byte, 65536)
	for i := range packets {
		n, err := conn.Read(buf)
		if err != nil {
			return packets, err
		}
		packets[i] = string(buf[:n])
	}
	return packets, nil
}
