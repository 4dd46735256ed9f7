package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/k3stls"
)

const k3sDir = "persist/vault/kube/rancher/k3s"

// certificates is the k3s of a node, which has just made its certificates where it is new.
func (s *story) certificates(node string) (*k3stls.K3s, string, error) {
	m, _, err := s.member(node)
	if err != nil {
		return nil, "", err
	}
	if s.tls[node] == nil {
		k, err := k3stls.New(filepath.Join(m.Root, k3sDir), 365*24*time.Hour, 10*365*24*time.Hour)
		if err != nil {
			return nil, "", err
		}
		s.tls[node] = k
	}
	return s.tls[node], m.Root, nil
}

// certificate NODE DAYS: a certificate of k3s on the node expires in so many days.
func certificate(s *story, _ *testscript.TestScript, args []string) error {
	k, _, err := s.certificates(args[0])
	if err != nil {
		return err
	}
	days, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return k.Make(k3stls.Admin, time.Duration(days)*24*time.Hour+time.Hour)
}

// supervisor NODE: kube-init, which starts k3s again where it is asked to. k3s then renews those of its
// certificates that expire within 120 days.
func supervisor(s *story, ts *testscript.TestScript, args []string) error {
	k, root, err := s.certificates(args[0])
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", filepath.Join(root, "run/k3s-supervisor.sock"))
	if err != nil {
		return err
	}
	ts.Defer(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if line, _ := bufio.NewReader(conn).ReadString('\n'); line == "restart\n" {
				answer := "OK\n"
				if err := k.Start(); err != nil {
					answer = fmt.Sprintf("ERR %v\n", err)
				}
				_, _ = io.WriteString(conn, answer)
			}
			_ = conn.Close()
		}
	}()
	return nil
}
