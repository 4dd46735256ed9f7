package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8stypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
)

// volume NAME NODE|none REPLICA...: a Longhorn volume, attached to a node or to
// none, with a healthy replica on each of the other nodes named.
func volume(s *story, _ *testscript.TestScript, args []string) error {
	name, node := args[0], args[1]
	if node == "none" {
		node = ""
	}
	c := s.fleet.Cluster
	if err := errors.Join(c.InstallLonghorn(s.ctx), c.CreateVolume(s.ctx, name, node, args[2:]...)); err != nil {
		return err
	}
	for i := range args[2:] {
		if err := s.patch("lhr", fmt.Sprintf("%s-r-%d", name, i+1), "", map[string]any{"spec": map[string]any{
			"healthyAt": time.Now().UTC().Format(time.RFC3339), "failedAt": "",
		}}); err != nil {
			return err
		}
	}
	if node == "" {
		return s.becomes("lhv", name, "state", "detached")
	}
	_, err := c.Client().StorageV1().VolumeAttachments().Create(s.ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "driver.longhorn.io", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err = c.Kubectl(s.ctx, "patch", "volumeattachment", "csi-"+name, "--subresource=status", "--type=merge", "-p", `{"status":{"attached":true}}`); err != nil {
		return err
	}
	return s.becomes("lhe", name+"-e-0", "currentState", "running")
}

// becomes waits until an object of Longhorn has a status: its controllers write it
// a while after it was created.
func (s *story) becomes(kind, name, field, want string) error {
	return eventually(func() string {
		o, err := s.fleet.Cluster.Custom(kind).Namespace(devcluster.LonghornNamespace).Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if is, _, _ := unstructured.NestedString(o.Object, "status", field); is != want {
			return fmt.Sprintf("%s of %s is %q, want %q", field, name, is, want)
		}
		return ""
	})
}

// detach VOLUME: what the attacher and Longhorn do when the last pod is gone.
func detach(s *story, _ *testscript.TestScript, args []string) error {
	stopped := map[string]any{"spec": map[string]any{"desireState": "stopped"}}
	err := errors.Join(
		s.fleet.Cluster.Client().StorageV1().VolumeAttachments().Delete(s.ctx, "csi-"+args[0], metav1.DeleteOptions{}),
		s.patch("lhe", args[0]+"-e-0", "", stopped),
		s.patch("lhv", args[0], "", map[string]any{"spec": map[string]any{"nodeID": ""}}),
	)
	list, failed := s.replicas(args[0])
	err = errors.Join(err, failed)
	for _, r := range list {
		err = errors.Join(err, s.patch("lhr", r.GetName(), "", stopped))
	}
	return err
}

// replica VOLUME NODE healthy|failed|rebuilding=PERCENT: what becomes of it.
func replica(s *story, _ *testscript.TestScript, args []string) error {
	list, err := s.replicas(args[0])
	if err != nil {
		return err
	}
	for _, r := range list {
		if node, _, _ := unstructured.NestedString(r.Object, "spec", "nodeID"); node == args[1] {
			return s.change(args[0], r, args[2])
		}
	}
	return fmt.Errorf("volume %s has no replica on %s", args[0], args[1])
}

func (s *story) change(volume string, r unstructured.Unstructured, what string) error {
	now := time.Now().UTC().Format(time.RFC3339)
	mode, robustness, spec := "RW", "healthy", map[string]any{"healthyAt": now, "failedAt": ""}
	rebuild := map[string]any{}
	percent, rebuilding := strings.CutPrefix(what, "rebuilding=")
	ip, _, _ := unstructured.NestedString(r.Object, "status", "ip")
	address := "tcp://" + ip + ":10000"
	switch {
	case rebuilding:
		n, err := strconv.Atoi(percent)
		if err != nil {
			return err
		}
		mode, robustness, spec = "WO", "degraded", map[string]any{"healthyAt": "", "failedAt": ""}
		rebuild[address] = map[string]any{"progress": n, "isRebuilding": true, "state": "in_progress"}
	case what == "failed":
		mode, robustness, spec = "ERR", "degraded", map[string]any{"failedAt": now}
		rebuild[address] = nil
	default:
		rebuild[address] = nil
	}
	return errors.Join(
		s.patch("lhr", r.GetName(), "", map[string]any{"spec": spec}),
		s.patch("lhe", volume+"-e-0", "status", map[string]any{"status": map[string]any{
			"replicaModeMap": map[string]any{r.GetName(): mode}, "rebuildStatus": rebuild,
		}}),
		s.patch("lhv", volume, "status", map[string]any{"status": map[string]any{"robustness": robustness}}),
	)
}

func (s *story) replicas(volume string) ([]unstructured.Unstructured, error) {
	list, err := s.fleet.Cluster.Custom("lhr").Namespace(devcluster.LonghornNamespace).List(s.ctx, metav1.ListOptions{LabelSelector: "longhornvolume=" + volume})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// patch changes an object of Longhorn, or its status.
func (s *story) patch(short, name, subresource string, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	var sub []string
	if subresource != "" {
		sub = append(sub, subresource)
	}
	_, err = s.fleet.Cluster.Custom(short).Namespace(devcluster.LonghornNamespace).Patch(s.ctx, name, k8stypes.MergePatchType, data, metav1.PatchOptions{}, sub...)
	return err
}
