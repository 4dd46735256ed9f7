//go:build linux

package applogs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/config"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

// app is a container application.
type app struct {
	cfg    types.AppInstanceConfig
	node   int // its designated node
	prints devcluster.Prints
	init   devcluster.Prints
}

func (a *app) key() string { return a.cfg.UUIDandVersion.UUID.String() }

// beats is the file on a node to which an application adds a line each second.
func (a *app) beats() string { return "/var/lib/beats/" + a.cfg.DisplayName }

// newApp configures an application and starts it on its designated node.
func (s *stage) newApp(t *testing.T, name string, node int, prints, init devcluster.Prints) *app {
	t.Helper()
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte("app "+name))
	a := &app{node: node, prints: prints, init: init, cfg: types.AppInstanceConfig{
		UUIDandVersion: types.UUIDandVersion{UUID: id, Version: "1"}, DisplayName: name, Activate: true,
		FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationNoHyper},
	}}
	a.prints.Heartbeat = a.beats()
	s.apps[name] = a
	s.send(t, func(d *eveapi.Document) { d.SetApp(a.cfg, s.Fleet.IDs()[node]) })
	err := s.Cluster.CreateApp(t.Context(), devcluster.App{
		Name: a.cfg.KubeName(), Domain: a.key() + ".1.1", Node: s.Name(node), Prints: a.prints, Init: a.init,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// dropApp has the controller delete an application, and domainmgr its set.
func (s *stage) dropApp(t *testing.T, a *app) {
	t.Helper()
	s.send(t, func(d *eveapi.Document) {
		d.Message.Apps = slices.DeleteFunc(d.Message.Apps, func(m *config.AppInstanceConfig) bool {
			return m.GetUuidandversion().GetUuid() == a.key()
		})
	})
	background := metav1.DeletePropagationBackground
	err := s.Cluster.Client().AppsV1().ReplicaSets(devcluster.AppNamespace).
		Delete(t.Context(), a.cfg.KubeName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		t.Fatal(err)
	}
	delete(s.apps, a.cfg.DisplayName)
}

// send changes what the controller tells every device.
func (s *stage) send(t *testing.T, change func(*eveapi.Document)) {
	t.Helper()
	for _, m := range s.Fleet.Members {
		if err := m.Send(func(d *eveapi.Document) error { change(d); return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// pods are those of an application, the terminating ones too.
func (s *stage) pods(t *testing.T, a *app) []corev1.Pod {
	list, err := s.Cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + a.cfg.KubeName()})
	if err != nil {
		return nil
	}
	return list.Items
}

// runsOn says what an application lacks to have one pod, which runs on one of
// these nodes, "" for nothing.
func (s *stage) runsOn(t *testing.T, a *app, nodes ...int) string {
	pods := s.pods(t, a)
	ok := len(pods) == 1 && pods[0].DeletionTimestamp == nil && pods[0].Status.Phase == corev1.PodRunning &&
		slices.ContainsFunc(nodes, func(i int) bool { return pods[0].Spec.NodeName == s.Name(i) })
	if ok {
		return ""
	}
	return fmt.Sprintf("%s has the pods %s, want one on %v", a.cfg.DisplayName, describe(pods), nodes)
}

func describe(pods []corev1.Pod) string {
	var all []string
	for _, p := range pods {
		text := fmt.Sprintf("%s %s on %q", p.Name, p.Status.Phase, p.Spec.NodeName)
		if p.DeletionTimestamp != nil {
			text += " terminating"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// beat is when an application last said on the disk of a node that it runs, and
// as which pod; pod limits it to one, "" does not.
func (s *stage) beat(a *app, i int, pod string) (last time.Time, who string) {
	f, err := os.Open(s.Cluster.HostPath(i, a.beats()))
	if err != nil {
		return last, ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, stamp, _ := strings.Cut(lines.Text(), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err == nil && (pod == "" || pod == name) {
			last, who = at, name
		}
	}
	return last, who
}

// told reads what a device says in a topic of an application.
func told[T any](s *stage, i int, topic string, a *app) (T, bool) {
	var v T
	text, err := os.ReadFile(filepath.Join(s.Fleet.Members[i].TopicDir(topic), a.key()+".json"))
	return v, err == nil && json.Unmarshal(text, &v) == nil
}

// says tells whether a device has a file of an application in a topic.
func (s *stage) says(i int, topic string, a *app) bool {
	_, err := os.Stat(filepath.Join(s.Fleet.Members[i].TopicDir(topic), a.key()+".json"))
	return !errors.Is(err, fs.ErrNotExist)
}
