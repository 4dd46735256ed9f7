package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Where EVE runs the SR-IOV device plug-in (docs/wire.md, "SR-IOV").
const (
	sriovNamespace     = types.NamespaceSystem
	SRIOVConfigMap     = "sriovdp-config"
	sriovPods          = access.LabelApp + "=sriovdp"
	sriovManager       = "zedkube-sriov"
	partAnnotation     = "zedkube.github.io/sriov-part"
	resourceAnnotation = "k8s.v1.cni.cncf.io/resourceName" // of a network attachment
)

// SRIOVConfig reads the ConfigMap of the SR-IOV device plug-in; it has no
// Version where there is none.
func (c *Client) SRIOVConfig(ctx context.Context) (types.SRIOVConfig, error) {
	var config types.SRIOVConfig
	err := c.Verb(ctx, func(ctx context.Context, conn *access.Connection) error {
		m, err := conn.Kube.CoreV1().ConfigMaps(sriovNamespace).Get(ctx, SRIOVConfigMap, metav1.GetOptions{})
		switch {
		case access.NotFound(err):
			return nil
		case err != nil:
			return err
		case m.Name != SRIOVConfigMap || m.ResourceVersion == "":
			return access.ErrOther
		}
		config = types.SRIOVConfig{Version: m.ResourceVersion, Data: m.Data}
		return nil
	})
	if err != nil {
		return types.SRIOVConfig{}, fmt.Errorf("get ConfigMap %s/%s: %w", sriovNamespace, SRIOVConfigMap, err)
	}
	return config, nil
}

// SetSRIOVConfig changes the keys of change.Data, "" to remove one, in one
// request: of the ConfigMap of change.Version, or of a new one where that is "".
// Its error wraps types.ErrConflict where that is not the present version.
func (c *Client) SetSRIOVConfig(ctx context.Context, change types.SRIOVConfig) error {
	act := fmt.Sprintf("set ConfigMap %s/%s", sriovNamespace, SRIOVConfigMap)
	return c.Write(ctx, access.Operation{Op: "set configmap", Target: "configmap/" + sriovNamespace + "/" + SRIOVConfigMap}, act, func(ctx context.Context, conn *access.Connection) error {
		m, err := writeSRIOV(ctx, conn, change)
		if access.NotFound(err) {
			return fmt.Errorf("%w: it is gone", types.ErrConflict)
		}
		if err == nil && m.Name != SRIOVConfigMap {
			return access.ErrOther
		}
		return err
	})
}

func writeSRIOV(ctx context.Context, conn *access.Connection, change types.SRIOVConfig) (*corev1.ConfigMap, error) {
	api := conn.Kube.CoreV1().ConfigMaps(sriovNamespace)
	data := access.Values{}
	made := map[string]string{}
	for key, text := range change.Data {
		if text == "" {
			data[key] = nil
			continue
		}
		data[key], made[key] = text, text
	}
	if change.Version == "" {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: sriovNamespace, Name: SRIOVConfigMap}, Data: made}
		return api.Create(ctx, m, metav1.CreateOptions{FieldManager: sriovManager})
	}
	patch, err := json.Marshal(access.ForVersion(change.Version, access.Values{"data": data}))
	if err != nil {
		return nil, err
	}
	return api.Patch(ctx, SRIOVConfigMap, ktypes.MergePatchType, patch, metav1.PatchOptions{FieldManager: sriovManager})
}

// SRIOVPlugins lists the pods of the SR-IOV device plug-in on the node.
func (c *Client) SRIOVPlugins(ctx context.Context, node string) ([]types.SRIOVPlugin, error) {
	var found []types.SRIOVPlugin
	err := c.Verb(ctx, func(ctx context.Context, conn *access.Connection) error {
		list, err := conn.Kube.CoreV1().Pods(sriovNamespace).List(ctx, metav1.ListOptions{
			LabelSelector: sriovPods, FieldSelector: "spec.nodeName=" + node,
		})
		if err == nil {
			err = access.IsWhole(list.ListMeta)
		}
		if err != nil {
			return err
		}
		for _, p := range list.Items {
			if p.Name == "" || p.UID == "" || p.Spec.NodeName != node {
				return access.ErrOther
			}
			found = append(found, types.SRIOVPlugin{
				Name: p.Name, UID: string(p.UID), Created: p.CreationTimestamp.Time,
				Terminating: p.DeletionTimestamp != nil, Part: p.Annotations[partAnnotation],
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list pods of the SR-IOV device plug-in on node %s: %w", node, err)
	}
	return found, nil
}

// MarkSRIOVPlugin writes pod.Part on this very pod. It is an error where another
// object now has its name.
func (c *Client) MarkSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error {
	return c.Write(ctx, access.Operation{Op: "annotate pod", Target: "pod/" + sriovNamespace + "/" + pod.Name}, "annotate pod "+sriovNamespace+"/"+pod.Name, func(ctx context.Context, conn *access.Connection) error {
		patch := access.AnnotationsPatch(access.Values{partAnnotation: pod.Part})
		patch["metadata"].(access.Values)["uid"] = pod.UID
		data, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		_, err = conn.Kube.CoreV1().Pods(sriovNamespace).Patch(ctx, pod.Name, ktypes.MergePatchType, data, metav1.PatchOptions{FieldManager: sriovManager})
		return err
	})
}

// RestartSRIOVPlugin deletes this very pod; its DaemonSet makes another. It
// returns nil when the pod is gone.
func (c *Client) RestartSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error {
	act := "delete pod " + sriovNamespace + "/" + pod.Name
	uid := ktypes.UID(pod.UID)
	return c.Write(ctx, access.Operation{Op: "delete pod", Target: "pod/" + sriovNamespace + "/" + pod.Name}, act, func(ctx context.Context, conn *access.Connection) error {
		err := conn.Kube.CoreV1().Pods(sriovNamespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if access.NotFound(err) {
			return nil
		}
		return err
	})
}

// SRIOVNetworks lists the network attachments of Namespace that name a resource
// of a device plug-in; none where the server knows no attachments.
func (c *Client) SRIOVNetworks(ctx context.Context) ([]types.SRIOVNetwork, error) {
	var found []types.SRIOVNetwork
	err := c.Verb(ctx, func(ctx context.Context, conn *access.Connection) error {
		return knownNADs(access.Pages(ctx, NadsOn(conn).List, func(l *unstructured.UnstructuredList) error {
			if l.GetKind() != NadKind+"List" {
				return access.ErrOther
			}
			for i := range l.Items {
				o := &l.Items[i]
				resource := o.GetAnnotations()[resourceAnnotation]
				if resource == "" || o.GetDeletionTimestamp() != nil {
					continue
				}
				found = append(found, types.SRIOVNetwork{
					Name: o.GetName(), UID: string(o.GetUID()), Version: o.GetResourceVersion(), Resource: resource,
				})
			}
			return nil
		}))
	})
	switch {
	case errors.Is(err, types.ErrNotInstalled):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list network attachments: %w", err)
	}
	return found, nil
}

// DeleteSRIOVNetwork deletes this very attachment in this very version. It
// returns nil when it is gone, and an error that wraps types.ErrConflict when it
// is another one by now.
func (c *Client) DeleteSRIOVNetwork(ctx context.Context, network types.SRIOVNetwork) error {
	act := "delete network attachment " + network.Name
	uid := ktypes.UID(network.UID)
	return c.Write(ctx, access.Operation{Op: "delete nad", Target: "nad/" + access.Namespace + "/" + network.Name}, act, func(ctx context.Context, conn *access.Connection) error {
		err := NadsOn(conn).Delete(ctx, network.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &network.Version},
		})
		if access.NotFound(err) {
			return nil
		}
		return err
	})
}
