//go:build linux

package apps

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
)

// serve is the kubelet's page of what runs.
func (s *sites) serve(t *testing.T, i int) {
	t.Helper()
	pair, err := s.cluster.KubeletCertificate(i)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := s.cluster.ListenOn(i, "tcp", net.JoinHostPort(s.cluster.Nodes[i].IP, fmt.Sprint(kubeletPort)))
	if err != nil {
		t.Fatal(err)
	}
	pages := http.NewServeMux()
	pages.HandleFunc("/runningpods/", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		for _, r := range s.all[i].running {
			list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.pod.Namespace, Name: r.pod.Name, UID: r.pod.UID}})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	})
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(discard{}, "", 0)}
	s.mu.Lock()
	s.all[i].server = server
	s.mu.Unlock()
	go func() {
		_ = server.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}}))
	}()
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (s *sites) unserve(i int) {
	s.mu.Lock()
	server := s.all[i].server
	s.mu.Unlock()
	_ = server.Close()
}

// startKubelet starts the kubelet of a device. What it finds running and not to be,
// it ends first.
func (s *stage) startKubelet(t *testing.T, i int) {
	t.Helper()
	pods, err := s.Cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := map[types.UID]bool{}
	for _, p := range pods.Items {
		own[p.UID] = p.DeletionTimestamp == nil
	}
	s.sites.serve(t, i)
	s.sites.set(i, func(d *site) {
		maps.DeleteFunc(d.running, func(uid types.UID, _ *run) bool { return !own[uid] })
		d.kubelet = true
	})
	if err := s.Cluster.StartKubelet(i); err != nil {
		t.Fatal(err)
	}
}

// kubelet says on the Node which volumes are in use and where its pages are. One that does not
// run says nothing, nor that none are.
func (s *sites) kubelet(ctx context.Context, n corev1.Node) error {
	var used []corev1.UniqueVolumeName
	runs := false
	s.mu.Lock()
	for i := range s.cluster.Nodes {
		d := s.all[i]
		if s.cluster.Nodes[i].Name != n.Name || !d.powered || !d.connected || !d.kubelet {
			continue
		}
		runs = true
		for _, r := range d.running {
			for _, v := range r.pod.Spec.Volumes {
				if c := v.PersistentVolumeClaim; c != nil {
					used = append(used, corev1.UniqueVolumeName("kubernetes.io/csi/"+devcluster.LonghornDriver+"^"+strings.TrimSuffix(c.ClaimName, claimSuffix)))
				}
			}
		}
	}
	s.mu.Unlock()
	slices.Sort(used)
	used = slices.Compact(used)
	if !runs || slices.Equal(used, n.Status.VolumesInUse) && n.Status.DaemonEndpoints.KubeletEndpoint.Port == kubeletPort {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": n.UID}, "status": map[string]any{
		"volumesInUse": used, "daemonEndpoints": map[string]any{"kubeletEndpoint": map[string]any{"Port": kubeletPort}},
	}})
	if err != nil {
		return err
	}
	_, err = s.cluster.Client().CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
