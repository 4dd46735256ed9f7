package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zedkube/zedkube/test/player"
)

// devices is where the devices of a run that was left up are found, whatever their directory is.
const devices = "bin/devices"

// link makes that link, and says how to remove it.
func (s *stage) link() (unlink func(), err error) {
	unlink = func() { _ = os.Remove(devices) }
	if err := os.MkdirAll(filepath.Dir(devices), 0o755); err != nil {
		return unlink, err
	}
	if err := os.Remove(devices); err != nil && !errors.Is(err, os.ErrNotExist) {
		return unlink, err
	}
	return unlink, os.Symlink(s.dir, devices)
}

// pageFor has device i serve its page.
func (s *stage) pageFor(i int) []string { return []string{"--page=" + strconv.Itoa(s.ports[i])} }

// freePorts finds ports that nothing listens on.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // so that the next is another one
		addr, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			return nil, errors.New("find a free port: it has none")
		}
		ports = append(ports, addr.Port)
	}
	return ports, nil
}

// longhorn has the cluster have Longhorn, which stores nothing yet.
func (s *stage) longhorn(ctx context.Context) error {
	if err := s.cluster.InstallLonghorn(ctx); err != nil {
		return err
	}
	return s.cluster.CreateDaemon(ctx, "longhorn-manager", false)
}

// pageOf is the address of a device's page, with the token of this start of its agent.
func pageOf(n *player.Member) string {
	var file struct{ Address, Token string }
	content, err := os.ReadFile(filepath.Join(n.Root, "run/zedkube/page-token.json"))
	if err == nil {
		err = json.Unmarshal(content, &file)
	}
	if err != nil {
		return err.Error()
	}
	return "http://" + file.Address + "/#token=" + file.Token
}

// showcase says what can be looked at as long as everything runs.
func (s *stage) showcase(program, story string, watched int) {
	lines := []string{"", "Left running; press Ctrl-C to end it. The page of each node:"}
	for _, n := range s.nodes {
		if n != s.lost {
			lines = append(lines, "  "+n.Name+"  "+pageOf(n))
		}
	}
	command := func(node int, text string) string {
		if s.nodes[node] == s.lost {
			node = watched
		}
		return "  " + program + " --root " + devices + "/" + s.nodes[node].Name + " " + text
	}
	if wd, err := os.Getwd(); err == nil {
		program = strings.TrimPrefix(program, wd+"/")
	}
	lines = append(lines, "In another terminal, in this directory:")
	for _, w := range append(walk(), walkOf(story)...) {
		lines = append(lines, command(w.node, w.text))
	}
	lines = append(lines, "A drain to watch, which a budget holds back:")
	for _, text := range []string{"drain plan", "drain request --reason 'first look'", "drain status --watch", "drain cancel"} {
		lines = append(lines, command(watched, text))
	}
	lines = append(lines, "With kubectl:", "  KUBECONFIG="+devices+"/"+s.nodes[watched].Name+"/run/.kube/k3s/k3s.yaml kubectl get nodes",
		"More to see: make run KEEP=1 STORY=NAME", strings.TrimRight(storyHelp(), "\n"))
	s.view.Lines(lines...)
}

// holdBack has a budget hold back the drain of a node, the first one that runs an application, and returns
// its number.
func (s *stage) holdBack(ctx context.Context) (node int, err error) {
	for i, n := range s.nodes {
		for _, app := range s.apps {
			if n != s.lost && slices.Contains(s.claims(app), n.Name) {
				return i, s.cluster.SetBudget(ctx, app.KubeName(), 1)
			}
		}
	}
	return 0, errors.New("no node runs an application")
}

// look is a command to try on a node, by its number from 0 on.
type look struct {
	node int
	text string
}

// walk is what there is to see on every stage, in order.
func walk() []look {
	return []look{
		{0, "status"},
		{0, "nodes"},
		{0, "apps"},
		{0, "cluster"},
		{0, "logs plc --since 10s"},
		{0, "top --once"},
		{1, "doctor"},
		{1, "audit"},
		{1, "topics"},
		{1, "k3s certs"},
		{1, "explain DrainNever"},
	}
}
