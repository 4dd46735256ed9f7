//go:build linux

package apps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
)

// attacherFinalizer is what the attacher of CSI puts on a VolumeAttachment until
// it has detached the volume.
const attacherFinalizer = "external-attacher/driver-longhorn-io"

// claimSuffix makes the name of a claim of that of its volume.
const claimSuffix = "-pvc-0"

// attach plays Longhorn's attacher: a volume is attached to one node at a time. It
// returns which are, volume/node.
func (s *sites) attach(ctx context.Context) (map[string]bool, error) {
	list, err := s.cluster.Client().StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	ours := slices.DeleteFunc(list.Items, func(a storagev1.VolumeAttachment) bool { return a.Spec.Attacher != devcluster.LonghornDriver })
	s.tell(ours)
	held, taken := map[string]bool{}, map[string]bool{}
	for _, a := range ours {
		taken[volumeOf(a)] = taken[volumeOf(a)] || a.Status.Attached
	}
	var errs []error
	for _, a := range ours {
		switch v := volumeOf(a); {
		case a.DeletionTimestamp != nil:
			errs = append(errs, s.letGo(ctx, a))
		case a.Status.Attached:
			held[v+"/"+a.Spec.NodeName] = true
		case !taken[v]:
			taken[v] = true
			errs = append(errs, s.take(ctx, a))
		}
	}
	return held, errors.Join(errs...)
}

func volumeOf(a storagev1.VolumeAttachment) string {
	if name := a.Spec.Source.PersistentVolumeName; name != nil {
		return *name
	}
	return ""
}

// tell notes what has become of each attachment, and whether one was taken from
// a copy that is there and runs.
func (s *sites) tell(list []storagev1.VolumeAttachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]string{}
	for _, a := range list {
		state := "wanted"
		switch {
		case a.DeletionTimestamp != nil:
			state = "deleted"
		case a.Status.Attached:
			state = "attached"
		}
		key := volumeOf(a) + " on " + a.Spec.NodeName
		now[key] = state
		if s.seen[key] == state {
			continue
		}
		s.noteLocked(key + ": " + state)
		if state == "deleted" {
			s.judgeDetach(volumeOf(a), a.Spec.NodeName, a.DeletionTimestamp.Time)
		}
	}
	for key := range s.seen {
		if _, ok := now[key]; !ok {
			s.noteLocked(key + ": gone")
		}
	}
	s.seen = now
}

// judgeDetach is called with mu held; at is in whole seconds.
func (s *sites) judgeDetach(volume, node string, at time.Time) {
	for i, n := range s.cluster.Nodes {
		d := s.all[i]
		if n.Name != node || !d.powered || !d.connected || !at.After(d.back) || d.fenced {
			continue // perhaps it was before it came back; or Kubernetes did it, because it was fenced while it was away
		}
		for _, r := range d.running {
			if mounts(r.pod, volume) && r.gone.IsZero() && !r.lost {
				s.wrongs = append(s.wrongs, fmt.Sprintf("volume %s was detached from %s, whose device is there and runs %s", volume, node, r.pod.Name))
			}
		}
	}
}

func mounts(p corev1.Pod, volume string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == volume+claimSuffix
	})
}

func (s *sites) take(ctx context.Context, a storagev1.VolumeAttachment) error {
	api := s.cluster.Client().StorageV1().VolumeAttachments()
	a.Finalizers = []string{attacherFinalizer}
	now, err := api.Update(ctx, &a, metav1.UpdateOptions{})
	if err == nil {
		now.Status.Attached = true
		_, err = api.UpdateStatus(ctx, now, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the next step sees
	}
	return errors.Join(err, s.cluster.MoveVolume(ctx, volumeOf(a), a.Spec.NodeName))
}

func (s *sites) letGo(ctx context.Context, a storagev1.VolumeAttachment) error {
	volume, err := s.cluster.Custom("lhv").Namespace(devcluster.LonghornNamespace).Get(ctx, volumeOf(a), metav1.GetOptions{})
	if err == nil {
		if node, _, _ := unstructured.NestedString(volume.Object, "spec", "nodeID"); node == a.Spec.NodeName {
			err = s.cluster.MoveVolume(ctx, volumeOf(a), "")
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"finalizers":null}}`, a.UID)
	_, failed := s.cluster.Client().StorageV1().VolumeAttachments().Patch(ctx, a.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(failed) || apierrors.IsConflict(failed) {
		failed = nil
	}
	return errors.Join(err, failed)
}

// attached says whether all volumes of a pod are attached to its node.
func (s *sites) attached(p corev1.Pod, held map[string]bool) bool {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if volume := strings.TrimSuffix(v.PersistentVolumeClaim.ClaimName, claimSuffix); !held[volume+"/"+p.Spec.NodeName] {
			return false
		}
	}
	return true
}

// replicas plays the engines: a replica on a node that is lost fails, one that is
// back is rebuilt.
func (s *sites) replicas(ctx context.Context, ready map[string]bool) error {
	volumes, err := s.cluster.Custom("lhv").Namespace(devcluster.LonghornNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	engines := map[string]string{}
	for _, v := range volumes.Items {
		engines[v.GetName()], _, _ = unstructured.NestedString(v.Object, "status", "currentNodeID")
	}
	list, err := s.cluster.Custom("lhr").Namespace(devcluster.LonghornNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range list.Items {
		text := func(field string) string { v, _, _ := unstructured.NestedString(r.Object, "spec", field); return v }
		volume, failed := text("volumeName"), text("failedAt") != ""
		if !ready[engines[volume]] || failed != ready[text("nodeID")] {
			continue // as its engine has it
		}
		mode := "RW"
		if !failed {
			mode = "ERR"
		}
		errs = append(errs, s.cluster.FailReplica(ctx, r.GetName(), !failed), s.cluster.SetReplicaMode(ctx, volume, r.GetName(), mode, 0))
	}
	return errors.Join(errs...)
}
