//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
)

// The control socket speaks HTTP: /status, /kubeconfig, /fault, /node and /down, with
// the parameters node and value.
func socket(dir string) string { return filepath.Join(dir, "control.sock") }

// listen answers on the control socket until it is told to end. Once it
// listens, it moves log to a file, which tells up that the cluster is ready.
func listen(ctx context.Context, c *devcluster.Cluster, log *switchWriter) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	l, err := net.Listen("unix", socket(c.Dir))
	if err != nil {
		return fmt.Errorf("open the control socket: %w", err)
	}
	file, err := os.Create(filepath.Join(c.Dir, "devcluster.log"))
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	log.move(file)
	server := &http.Server{Handler: handler(c, end), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		// Lets the answer to /down out.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(late)
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the control socket: %w", err)
	}
	return nil
}

func handler(c *devcluster.Cluster, end func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/down", func(http.ResponseWriter, *http.Request) { end() })
	mux.HandleFunc("/status", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "directory  %s\n", c.Dir)
		for i, n := range c.Nodes {
			fmt.Fprintf(w, "%-10s %-14s %s  fault %s\n", n.Name, n.IP, n.UUID, c.NodeFault(i))
		}
		fmt.Fprintln(w)
		nodes, err := c.Client().CoreV1().Nodes().List(r.Context(), metav1.ListOptions{})
		if err != nil {
			fmt.Fprintln(w, err)
			return
		}
		for _, n := range nodes.Items {
			ready := "Unknown"
			for _, condition := range n.Status.Conditions {
				if condition.Type == corev1.NodeReady {
					ready = string(condition.Status)
				}
			}
			fmt.Fprintf(w, "%-10s Ready=%s unschedulable=%t\n", n.Name, ready, n.Spec.Unschedulable)
		}
	})
	mux.HandleFunc("/kubeconfig", func(w http.ResponseWriter, r *http.Request) {
		i, err := find(c, r.FormValue("node"))
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case i < 0:
			w.Write(c.Kubeconfig())
		default:
			w.Write(c.NodeKubeconfig(i))
		}
	})
	mux.HandleFunc("/fault", func(w http.ResponseWriter, r *http.Request) {
		if err := setFault(c, r.FormValue("node"), r.FormValue("value")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("/node", func(w http.ResponseWriter, r *http.Request) {
		if err := act(c, r.FormValue("node"), r.FormValue("value")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	return mux
}

// act does one thing to one node.
func act(c *devcluster.Cluster, node, what string) error {
	i, err := find(c, node)
	if err != nil {
		return err
	}
	if i < 0 {
		return errors.New("no node named")
	}
	name, value, _ := strings.Cut(what, "=")
	switch name {
	case "cut":
		return c.CutNode(i)
	case "heal":
		return c.HealNode(i)
	case "cut-watches":
		c.CutWatches(i)
		return nil
	case "new-ca":
		return c.RotateCA(i)
	case "skew":
		skew, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("skew the certificate: %w", err)
		}
		return c.SetCertSkew(i, skew)
	}
	return fmt.Errorf("unknown act %q, want cut, heal, cut-watches, new-ca or skew=DURATION", what)
}

func setFault(c *devcluster.Cluster, node, name string) error {
	f, err := devcluster.ParseFault(name)
	if err != nil {
		return err
	}
	i, err := find(c, node)
	if err != nil {
		return err
	}
	if i < 0 {
		return c.SetFault(f)
	}
	return c.SetNodeFault(i, f)
}

// find returns the index of a node by its name or device name, -1 for "".
func find(c *devcluster.Cluster, name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	for i, n := range c.Nodes {
		if name == n.Name || name == n.DeviceName {
			return i, nil
		}
	}
	return -1, fmt.Errorf("no node %q", name)
}

// ask sends one request to the cluster in dir and copies the answer to out.
func ask(ctx context.Context, dir, path, node, value string, out io.Writer) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket(dir))
		},
	}}
	form := strings.NewReader(url.Values{"node": {node}, "value": {value}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://devcluster"+path, form)
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no cluster in %s: %w", dir, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(body)))
	}
	_, err = out.Write(body)
	return err
}

// down returns when the cluster and its directory are gone.
func down(ctx context.Context, dir string) error {
	if err := ask(ctx, dir, "/down", "", "", io.Discard); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to go: %w", dir, ctx.Err())
		case <-tick.C:
		}
	}
}

// switchWriter is a log that moves while it is used.
type switchWriter struct {
	mu sync.Mutex
	to io.WriteCloser
}

// Write implements io.Writer.
func (s *switchWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(b)
}

func (s *switchWriter) move(to io.WriteCloser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to.Close()
	s.to = to
}
