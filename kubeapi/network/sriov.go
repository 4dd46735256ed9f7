package network

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Where EVE runs the SR-IOV device plug-in (docs/wire.md, "SR-IOV").
const (
	SRIOVConfigMap     = "sriovdp-config"
	sriovPods          = access.LabelApp + "=sriovdp"
	sriovManager       = "zedkube-sriov"
	partAnnotation     = "zedkube.github.io/sriov-part"
	resourceAnnotation = "k8s.v1.cni.cncf.io/resourceName" // of a network attachment
)

// SRIOVConfig reads the ConfigMap of the SR-IOV device plug-in; it has no
// Version where there is none.
func (c *Client) SRIOVConfig(ctx context.Context) (types.SRIOVConfig, error) {
	act := fmt.Sprintf("get ConfigMap %s/%s", types.NamespaceSystem, SRIOVConfigMap)
	return access.Read(ctx, c.Session, act, func(ctx context.Context, conn *access.Connection) (types.SRIOVConfig, error) {
		m, err := conn.Kube.CoreV1().ConfigMaps(types.NamespaceSystem).Get(ctx, SRIOVConfigMap, metav1.GetOptions{})
		switch {
		case access.NotFound(err):
			return types.SRIOVConfig{}, nil
		case err != nil:
			return types.SRIOVConfig{}, err
		case m.Name != SRIOVConfigMap || m.ResourceVersion == "":
			return types.SRIOVConfig{}, access.ErrOther
		}
		return types.SRIOVConfig{Version: m.ResourceVersion, Data: m.Data}, nil
	})
}

// SetSRIOVConfig changes the keys of change.Data, "" to remove one, in one
// request: of the ConfigMap of change.Version, or of a new one where that is "".
// Its error wraps types.ErrConflict where that is not the present version.
func (c *Client) SetSRIOVConfig(ctx context.Context, change types.SRIOVConfig) error {
	act := fmt.Sprintf("set ConfigMap %s/%s", types.NamespaceSystem, SRIOVConfigMap)
	op := access.Operation{Op: "set configmap", Target: "configmap/" + types.NamespaceSystem + "/" + SRIOVConfigMap}
	return c.Write(ctx, op, act, func(ctx context.Context, conn *access.Connection) error {
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
	api := conn.Kube.CoreV1().ConfigMaps(types.NamespaceSystem)
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
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: types.NamespaceSystem, Name: SRIOVConfigMap}, Data: made}
		return api.Create(ctx, m, metav1.CreateOptions{FieldManager: sriovManager})
	}
	return access.Merge(ctx, api, SRIOVConfigMap, sriovManager, access.ForVersion(change.Version, access.Values{"data": data}))
}

// SRIOVPlugins lists the pods of the SR-IOV device plug-in on the node.
func (c *Client) SRIOVPlugins(ctx context.Context, node string) ([]types.SRIOVPlugin, error) {
	act := "list pods of the SR-IOV device plug-in on node " + node
	return access.Read(ctx, c.Session, act, func(ctx context.Context, conn *access.Connection) (found []types.SRIOVPlugin, err error) {
		list, err := access.Whole(conn.Kube.CoreV1().Pods(types.NamespaceSystem).List(ctx, metav1.ListOptions{
			LabelSelector: sriovPods, FieldSelector: access.OnNode(node),
		}))
		if err != nil {
			return nil, err
		}
		for _, p := range list.Items {
			if p.Name == "" || p.UID == "" || p.Spec.NodeName != node {
				return nil, access.ErrOther
			}
			found = append(found, types.SRIOVPlugin{
				Name: p.Name, UID: string(p.UID), Created: p.CreationTimestamp.Time,
				Terminating: p.DeletionTimestamp != nil, Part: p.Annotations[partAnnotation],
			})
		}
		return found, nil
	})
}

// MarkSRIOVPlugin writes pod.Part on this very pod. It is an error where another
// object now has its name.
func (c *Client) MarkSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error {
	name := types.NamespaceSystem + "/" + pod.Name
	op := access.Operation{Op: "annotate pod", Target: "pod/" + name}
	return c.Write(ctx, op, "annotate pod "+name, func(ctx context.Context, conn *access.Connection) error {
		patch := access.AnnotationsPatch(access.Values{partAnnotation: pod.Part})
		patch["metadata"].(access.Values)["uid"] = pod.UID
		_, err := access.Merge(ctx, conn.Kube.CoreV1().Pods(types.NamespaceSystem), pod.Name, sriovManager, patch)
		return err
	})
}

// RestartSRIOVPlugin deletes this very pod; its DaemonSet makes another. It
// returns nil when the pod is gone.
func (c *Client) RestartSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error {
	name := types.NamespaceSystem + "/" + pod.Name
	op := access.Operation{Op: "delete pod", Target: "pod/" + name}
	return c.Write(ctx, op, "delete pod "+name, func(ctx context.Context, conn *access.Connection) error {
		return access.UnlessGone(conn.Kube.CoreV1().Pods(types.NamespaceSystem).Delete(ctx, pod.Name, access.Exactly(pod.UID)))
	})
}

// SRIOVNetworks lists the network attachments of Namespace that name a resource
// of a device plug-in; none where the server knows no attachments.
func (c *Client) SRIOVNetworks(ctx context.Context) ([]types.SRIOVNetwork, error) {
	list := func(ctx context.Context, conn *access.Connection) (found []types.SRIOVNetwork, err error) {
		err = eachNAD(ctx, conn, "", func(o *unstructured.Unstructured) {
			if resource := o.GetAnnotations()[resourceAnnotation]; resource != "" && o.GetDeletionTimestamp() == nil {
				found = append(found, types.SRIOVNetwork{
					Name: o.GetName(), UID: string(o.GetUID()), Version: o.GetResourceVersion(), Resource: resource,
				})
			}
		})
		return found, err
	}
	found, err := access.Read(ctx, c.Session, "list network attachments", list)
	if errors.Is(err, types.ErrNotInstalled) {
		return nil, nil
	}
	return found, err
}

// DeleteSRIOVNetwork deletes this very attachment in this very version. It
// returns nil when it is gone, and an error that wraps types.ErrConflict when it
// is another one by now.
func (c *Client) DeleteSRIOVNetwork(ctx context.Context, network types.SRIOVNetwork) error {
	op := access.Operation{Op: "delete nad", Target: "nad/" + access.Namespace + "/" + network.Name}
	return c.Write(ctx, op, "delete network attachment "+network.Name, func(ctx context.Context, conn *access.Connection) error {
		return access.UnlessGone(NadsOn(conn).Delete(ctx, network.Name, access.Exactly(network.UID, network.Version)))
	})
}
