//go:build linux

package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/config"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

// app is a virtual machine with one volume.
type app struct {
	cfg      types.AppInstanceConfig
	node     int // its designated node
	volume   string
	replicas []int // nodes that have its data
	domain   string
}

func (a *app) key() string { return a.cfg.UUIDandVersion.UUID.String() }

// newApp configures an application.
func (s *stage) newApp(t *testing.T, name string, node int, replicas []int, change ...func(*types.AppInstanceConfig)) *app {
	t.Helper()
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte("app "+name))
	a := &app{
		node: node, replicas: replicas, domain: fmt.Sprintf("%s.1.%d", id, len(s.apps)+1),
		cfg: types.AppInstanceConfig{
			UUIDandVersion: types.UUIDandVersion{UUID: id, Version: "1"}, DisplayName: name, Activate: true,
			FixedResources: types.VMConfig{VirtualizationMode: types.VirtualizationHVM, EnableVnc: true, VncDisplay: uint32(len(s.apps) + 1)},
		},
	}
	for _, c := range change {
		c(&a.cfg)
	}
	s.apps[name] = a
	s.configure(t, a)
	return a
}

// configure has the controller tell every device of an application.
func (s *stage) configure(t *testing.T, a *app) {
	t.Helper()
	for _, m := range s.Fleet.Members {
		err := m.Send(func(d *eveapi.Document) error { d.SetApp(a.cfg, s.Fleet.IDs()[a.node]); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// deconfigure has the controller delete an application.
func (s *stage) deconfigure(t *testing.T, a *app) {
	t.Helper()
	for _, m := range s.Fleet.Members {
		err := m.Send(func(d *eveapi.Document) error {
			d.Message.Apps = slices.DeleteFunc(d.Message.Apps, func(m *config.AppInstanceConfig) bool {
				return m.GetUuidandversion().GetUuid() == a.key()
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	delete(s.apps, a.cfg.DisplayName)
}

// create does the part of domainmgr and volumemgr: the application runs, on its
// designated node if that is there.
func (s *stage) create(ctx context.Context, a *app) error {
	a.volume = "vol-" + a.cfg.KubeName()
	var on []string
	for _, i := range a.replicas {
		on = append(on, s.Name(i))
	}
	if err := s.Cluster.CreateVolume(ctx, a.volume, "", on...); err != nil {
		return err
	}
	claim, err := s.Cluster.CreateClaim(ctx, a.volume)
	if err != nil {
		return err
	}
	_, err = s.Cluster.CreateVM(ctx, devcluster.App{
		Name: a.cfg.KubeName(), Domain: a.domain, Node: s.Name(a.node),
		Required: a.cfg.AffinityType == types.AffinityRequired, Claims: []string{claim},
	})
	return err
}

// remove does what domainmgr does to the set of an application.
func (s *stage) remove(t *testing.T, set string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	err := s.sets().Delete(t.Context(), set, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		t.Fatal(err)
	}
}

// set is the replica set of an application, nil if there is none or nobody knows.
func (s *stage) set(t *testing.T, a *app) *unstructured.Unstructured {
	set, err := s.sets().Get(t.Context(), a.cfg.KubeName(), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return set
}

// pods are those of an application, the terminating ones too.
func (s *stage) pods(t *testing.T, a *app) []corev1.Pod {
	list, err := s.Cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "App-Domain-Name=" + a.domain})
	if err != nil {
		return nil
	}
	return list.Items
}

// live are the pods that are not about to go.
func live(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
}

// runsOn says what an application lacks to be one copy that runs on one of these
// nodes and claims nothing else, "" for nothing.
func (s *stage) runsOn(t *testing.T, a *app, nodes ...int) string {
	var names []string
	for _, i := range nodes {
		names = append(names, s.Name(i))
	}
	pods := s.pods(t, a)
	if len(pods) != 1 || len(live(pods)) != 1 {
		return fmt.Sprintf("%s has the pods %s", a.cfg.DisplayName, describe(s.pods(t, a)))
	}
	if p := pods[0]; p.Status.Phase != corev1.PodRunning || !slices.Contains(names, p.Spec.NodeName) {
		return fmt.Sprintf("%s has the pods %s, want it on %v", a.cfg.DisplayName, describe(pods), names)
	}
	vmi, err := s.Cluster.Custom("vmi").Namespace(devcluster.AppNamespace).Get(t.Context(), pods[0].Labels["vm.kubevirt.io/name"], metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if phase, _, _ := unstructured.NestedString(vmi.Object, "status", "phase"); phase != "Running" {
		return fmt.Sprintf("%s is %s", vmi.GetName(), phase)
	}
	return ""
}

func describe(pods []corev1.Pod) string {
	var all []string
	for _, p := range pods {
		text := fmt.Sprintf("%s %s on %q", p.Name, p.Status.Phase, p.Spec.NodeName)
		if p.DeletionTimestamp != nil {
			text += " terminating"
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
				text += " (" + c.Message + ")"
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// told reads what a device says in a topic of an application, or of anything
// else by its key.
func told[T any](s *stage, i int, topic, key string) (T, bool) {
	var v T
	text, err := os.ReadFile(filepath.Join(s.Fleet.Members[i].TopicDir(topic), key+".json"))
	return v, err == nil && json.Unmarshal(text, &v) == nil
}

func (s *stage) repair(i int, a *app) types.AppRepairStatus {
	v, _ := told[types.AppRepairStatus](s, i, "AppRepairStatus", a.key())
	return v
}

// consoleFile is where a device's console is opened, below its root (docs/wire.md,
// "Console file").
const consoleFile = "run/edgeview/VncParams/vmiVNC.run"

type console struct {
	VMIName string
	VNCPort uint32
	AppUUID uuid.UUID
}

// console is the file of a device; ok is false where it has none.
func (s *stage) console(i int) (c console, ok bool) {
	text, err := os.ReadFile(filepath.Join(s.Fleet.Members[i].Root, consoleFile))
	if err != nil {
		return c, false
	}
	return c, json.Unmarshal(text, &c) == nil
}

// attachments are the nodes that a volume is attached to, by the names of its
// VolumeAttachments.
func (s *stage) attachments(t *testing.T, a *app) map[string]string {
	list, err := s.Cluster.Client().StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	nodes := map[string]string{}
	for _, v := range list.Items {
		if name := v.Spec.Source.PersistentVolumeName; name != nil && *name == a.volume && v.DeletionTimestamp == nil {
			nodes[v.Name] = v.Spec.NodeName
		}
	}
	return nodes
}
