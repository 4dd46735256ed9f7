package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
)

// instances is how many inotify instances the nodes allow: enough for the logs of a
// third of the many applications. Where the limit is 128, as by default, 40 are
// followed and each of the others costs two requests a minute (docs/decisions/0036).
const instances = 512

// allowStreams makes the nodes allow that many, before the agents begin.
func (b *bench) allowStreams() error {
	for _, m := range b.fleet.Members {
		file := filepath.Join(m.Root, "proc/sys/fs/inotify/max_user_instances")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, fmt.Append(nil, instances), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// lineEvery is how often each container of an application writes a line.
const lineEvery = 10 * time.Second

// logged makes every application pod one whose container writes, and has each
// node's kubelet serve what it writes, until the measures on this control plane are
// over. The simulated kubelets know neither.
func (b *bench) logged(ctx context.Context) error {
	if err := b.serveLogs(ctx); err != nil {
		return err
	}
	pods := b.cluster.Client().CoreV1().Pods(devcluster.AppNamespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the pods that are to write: %w", err)
	}
	write := 0
	for _, pod := range list.Items {
		changed := false
		if len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].Kind == "ReplicaSet" {
			write++
		}
		for i, c := range pod.Status.ContainerStatuses {
			if c.ContainerID == "" {
				pod.Status.ContainerStatuses[i].ContainerID, changed = "containerd://"+string(pod.UID)+"-"+c.Name, true
			}
		}
		if !changed {
			continue
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"containerStatuses": pod.Status.ContainerStatuses}})
		if err == nil {
			_, err = pods.Patch(ctx, pod.Name, ktypes.MergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if err != nil {
			return fmt.Errorf("say that the containers of pod %s run: %w", pod.Name, err)
		}
	}
	return until(ctx, "somebody reads every log", 100*time.Millisecond, func() bool {
		b.reading.Lock()
		defer b.reading.Unlock()
		return len(b.read) >= write
	})
}

// serveLogs serves the logs of every node at a port of its own, which its Node names.
func (b *bench) serveLogs(ctx context.Context) error {
	if b.logPorts != nil {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(b.cluster.Dir, "apiserver.crt"), filepath.Join(b.cluster.Dir, "apiserver.key"))
	if err != nil {
		return err
	}
	pages := http.NewServeMux()
	b.logPorts, b.read = map[string]int{}, map[string]bool{}
	pages.HandleFunc("/containerLogs/", func(w http.ResponseWriter, r *http.Request) {
		b.reading.Lock()
		b.read[r.URL.Path] = true
		b.reading.Unlock()
		serveLog(w, r)
	})
	for _, n := range b.cluster.Nodes {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(n.IP, "0"))
		if err != nil {
			return err
		}
		server := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
		context.AfterFunc(b.measuring, func() { _ = server.Close() })
		go func() {
			_ = server.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}}))
		}()
		addr, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return errors.New("the logs have no port")
		}
		b.logPorts[n.Name] = addr.Port
	}
	if err := b.namePorts(ctx); err != nil {
		return err
	}
	go func() { // a simulated kubelet names its own from time to time
		for pause(b.measuring, time.Second) == nil {
			_ = b.namePorts(b.measuring)
		}
	}()
	return nil
}

func (b *bench) namePorts(ctx context.Context) error {
	nodes := b.cluster.Client().CoreV1().Nodes()
	for name, port := range b.logPorts {
		n, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err == nil && n.Status.DaemonEndpoints.KubeletEndpoint.Port != int32(port) {
			patch := fmt.Appendf(nil, `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, port)
			_, err = nodes.Patch(ctx, name, ktypes.MergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if err != nil {
			return fmt.Errorf("name the port of the logs of node %s: %w", name, err)
		}
	}
	return nil
}

// serveLog answers /containerLogs/<namespace>/<pod>/<container> as a kubelet does. Each
// container writes at its own moment of the ten seconds.
func serveLog(w http.ResponseWriter, r *http.Request) {
	offset := time.Duration(0)
	for _, c := range r.URL.Path {
		offset = (offset*31 + time.Duration(c)*time.Millisecond) % lineEvery
	}
	now := time.Now()
	next := now.Truncate(lineEvery).Add(offset - 6*lineEvery) // that much is there
	if since, err := time.Parse(time.RFC3339, r.FormValue("sinceTime")); err == nil {
		for next.Before(since) {
			next = next.Add(lineEvery)
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	flusher, _ := w.(http.Flusher)
	for {
		for ; !next.After(time.Now()); next = next.Add(lineEvery) {
			fmt.Fprintf(w, "%s line of %s at %d\n", next.UTC().Format(time.RFC3339Nano), strings.TrimPrefix(r.URL.Path, "/containerLogs/"), next.Unix())
		}
		if flusher != nil {
			flusher.Flush()
		}
		if r.FormValue("follow") != "true" || pause(r.Context(), time.Until(next)) != nil {
			return
		}
	}
}

// logRequests counts the calls for logs of pods.
func logRequests(calls []devcluster.Call) (n int) {
	for _, c := range calls {
		if c.Resource == "pods" && c.Subresource == "log" {
			n++
		}
	}
	return n
}
