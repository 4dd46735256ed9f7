package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
)

// giveBack leaves the control plane as a new one for the next story.
func giveBack(cluster *devcluster.Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := cluster.SetFault(devcluster.None); err != nil {
		return err
	}
	if err := cluster.Permit(ctx); err != nil {
		return err
	}
	for i := range cluster.Nodes {
		if err := giveBackNode(ctx, cluster, i); err != nil {
			return err
		}
	}
	if err := letGo(ctx, cluster); err != nil {
		return err
	}
	kubectl := func(args ...string) error {
		if out, err := cluster.Kubectl(ctx, args...); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	return errors.Join(
		kubectl("-n", devcluster.AppNamespace, "delete", "replicasets,vmirs,vmi,pdb,leases,events", "--all"),
		kubectl("-n", devcluster.AppNamespace, "delete", "pods", "--all", "--grace-period=0", "--force"),
		kubectl("-n", devcluster.LonghornNamespace, "delete", "lhv,lhr,lhe,lhs", "--all"),
		kubectl("delete", "volumeattachments", "--all"),
		kubectl("delete", "events", "--all"),
		kubectl("delete", "nodes", "-l", "story"),
	)
}

// giveBackNode makes a node schedulable, with nothing of zedkube's on it. One
// that was deleted registers again.
func giveBackNode(ctx context.Context, cluster *devcluster.Cluster, i int) error {
	nodes, name := cluster.Client().CoreV1().Nodes(), cluster.Nodes[i].Name
	if _, err := nodes.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		cluster.StopKubelet(i)
	} else if err != nil {
		return err
	}
	if err := cluster.StartKubelet(i); err != nil {
		return err
	}
	if err := cluster.SetKubeletVersion(ctx, i, devcluster.KubeletVersion); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"uncordon", name},
		{"annotate", "node", name, cordonMark + "-", "zedkube.github.io/keep-cordon-", "zedkube.github.io/agent-", "zedkube.github.io/k3s-"},
	} {
		if out, err := cluster.Kubectl(ctx, args...); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
}

// letGo takes the finalizers of the applications' pods away.
func letGo(ctx context.Context, cluster *devcluster.Cluster) error {
	pods := cluster.Client().CoreV1().Pods(devcluster.AppNamespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range list.Items {
		if len(p.Finalizers) == 0 {
			continue
		}
		_, err := pods.Patch(ctx, p.Name, k8stypes.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
