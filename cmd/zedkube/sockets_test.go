package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
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
	bus, _ := wire(options{root: root}.paths(), log)
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); bus.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for topic, hello := range map[string]string{
		"EdgeNodeClusterStatus": "false",
		"ENClusterAppStatus":    "false",
		"NodeDrainStatus":       "false",
		"KubeClusterInfo":       "false",
		"KubeUserServices":      "false",
		"KubeLeaderElectInfo":   "false",
		"KubeConfig":            "true",
		"CipherBlockStatus":     "false",
		"CipherMetrics":         "false",
	} {
		got, err := ask(filepath.Join(root, "run/zedkube", topic+".sock"), topic)
		if want := [2]string{"hello " + topic + " " + hello, "complete " + topic}; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", topic, got, err, want)
		}
	}
}

// ask returns the first two packets of a publisher.
func ask(path, topic string) (packets [2]string, err error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return packets, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
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
