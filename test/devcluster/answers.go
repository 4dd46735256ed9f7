//go:build linux

package devcluster

import (
	"context"
	"crypto/tls"
	_ "embed"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answersPort is where the kubelets of Options.Answers listen, as real ones do.
const answersPort = 10250

//go:embed containerids.yaml
var containerIDStages string

// answering is the part of a node's kubelet that is asked: for measurements and for logs. Both are made
// up, by the names of pods and containers, and change with time.
type answering struct {
	node   Node
	pods   func(ctx context.Context) ([]corev1.Pod, error) // of the node
	began  time.Time
	server *http.Server
}

// startAnswering has the kubelet of node i answer, if they do in this cluster. kubeletsMu is held.
func (c *Cluster) startAnswering(i int) error {
	if c.answers == nil || c.answers[i] != nil {
		return nil
	}
	n := c.Nodes[i]
	template := serverTemplate([]net.IP{net.ParseIP(n.IP)})
	template.Subject.CommonName, template.DNSNames = "system:node:"+n.Name, []string{n.Name}
	made, err := c.ca.issue(template)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(made.cert, made.key)
	if err != nil {
		return fmt.Errorf("make the certificate of the kubelet of node %s: %w", n.Name, err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(n.IP, strconv.Itoa(answersPort)))
	if err != nil {
		return fmt.Errorf("listen as the kubelet of node %s: %w", n.Name, err)
	}
	a := &answering{node: n, began: time.Now(), pods: func(ctx context.Context) ([]corev1.Pod, error) {
		list, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name})
		if err != nil {
			return nil, fmt.Errorf("list the pods of node %s: %w", n.Name, err)
		}
		return list.Items, nil
	}}
	a.server = &http.Server{
		Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: c.ca.pool(), ClientAuth: tls.RequireAndVerifyClientCert},
	}
	c.answers[i] = a
	go func() { _ = a.server.ServeTLS(listener, "", "") }()
	return nil
}

// stopAnswering ends that, and what is being answered. kubeletsMu is held.
func (c *Cluster) stopAnswering(i int) {
	if c.answers != nil && c.answers[i] != nil {
		_ = c.answers[i].server.Close()
		c.answers[i] = nil
	}
}

func (a *answering) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/stats/summary", func(w http.ResponseWriter, r *http.Request) {
		pods, err := a.pods(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, http.StatusOK, a.summary(pods, time.Now()))
	})
	mux.HandleFunc("/metrics/cadvisor", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", a.log)
	return mux
}

type fields map[string]any

// load is how much something of that name uses at a time: between half and all of most, in waves of a
// length of its own.
func load(name string, at time.Time, most uint64) uint64 {
	seed := uint64(17)
	for _, c := range name {
		seed = seed*31 + uint64(c)
	}
	period := float64(20 + seed%40)
	wave := math.Sin(2*math.Pi*float64(at.UnixMilli())/1000/period + float64(seed%7))
	return uint64(float64(most) * (0.75 + 0.25*wave) * (0.4 + float64(seed%60)/100))
}

// summary is what a kubelet answers under /stats/summary, as far as it is read.
func (a *answering) summary(pods []corev1.Pod, now time.Time) fields {
	at := now.UTC().Format(time.RFC3339)
	up := uint64(now.Sub(a.began).Seconds())
	uses := func(name string, cpu, memory uint64) (fields, fields) {
		return fields{"time": at, "usageNanoCores": load(name, now, cpu), "usageCoreNanoSeconds": cpu / 2 * up},
			fields{"time": at, "usageBytes": memory, "workingSetBytes": load(name+"m", now, memory), "availableBytes": 3 * memory}
	}
	list := []fields{}
	for _, p := range pods {
		var containers []fields
		for _, c := range p.Spec.Containers {
			cpu, memory := uses(p.Name+c.Name, 400e6, 256<<20)
			containers = append(containers, fields{
				"name": c.Name, "startTime": a.began.UTC().Format(time.RFC3339), "cpu": cpu, "memory": memory,
				"rootfs": fields{"time": at, "usedBytes": 30 << 20, "availableBytes": 60 << 30, "capacityBytes": 100 << 30},
			})
		}
		cpu, memory := uses(p.Name, 400e6, 256<<20)
		list = append(list, fields{
			"podRef": fields{"name": p.Name, "namespace": p.Namespace, "uid": p.UID}, "startTime": a.began.UTC().Format(time.RFC3339),
			"cpu": cpu, "memory": memory, "containers": containers,
			"network": fields{"time": at, "name": "eth0", "rxBytes": 90_000 * up, "txBytes": 40_000 * up},
		})
	}
	cpu, memory := uses(a.node.Name, 3e9, 6<<30)
	return fields{"node": fields{
		"nodeName": a.node.Name, "startTime": a.began.UTC().Format(time.RFC3339), "cpu": cpu, "memory": memory,
		"network": fields{"time": at, "name": "eth0", "rxBytes": 800_000 * up, "txBytes": 300_000 * up},
		"fs":      fields{"time": at, "availableBytes": 60 << 30, "capacityBytes": 100 << 30, "usedBytes": 40 << 30},
	}, "pods": list}
}

// printsEvery is how often each container writes a line.
const printsEvery = 2 * time.Second

// log answers /containerLogs/<namespace>/<pod>/<container> as a kubelet does.
func (a *answering) log(w http.ResponseWriter, r *http.Request) {
	next := a.began.Truncate(printsEvery).Add(printsEvery)
	if since, err := time.Parse(time.RFC3339, r.FormValue("sinceTime")); err == nil && since.After(next) {
		next = since.Truncate(printsEvery).Add(printsEvery)
	}
	if tail, err := strconv.Atoi(r.FormValue("tailLines")); err == nil {
		if first := time.Now().Add(-time.Duration(tail) * printsEvery); first.After(next) {
			next = first.Truncate(printsEvery).Add(printsEvery)
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	out := http.NewResponseController(w)
	for {
		for ; !next.After(time.Now()); next = next.Add(printsEvery) {
			if r.FormValue("timestamps") == "true" {
				fmt.Fprint(w, next.UTC().Format(time.RFC3339Nano), " ")
			}
			fmt.Fprintf(w, "%s: cycle %d done in %d ms\n", r.PathValue("container"), int(next.Sub(a.began)/printsEvery), load(r.PathValue("pod"), next, 40))
		}
		if out.Flush() != nil || r.FormValue("follow") != "true" {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Until(next)):
		}
	}
}
