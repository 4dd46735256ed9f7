//go:build linux

package devcluster

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestARestoredEtcdHasOldObjectsAndOldResourceVersions(t *testing.T) {
	c := start(t, Options{Nodes: 1})
	ctx := t.Context()
	if err := c.RestoreEtcd(ctx); err == nil {
		t.Error("something was restored, and nothing had been kept")
	}
	if err := c.KeepEtcd(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.SetBootID(ctx, 0, "rebooted"); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateNode(ctx, "later"); err != nil {
		t.Fatal(err)
	}
	var made *corev1.Node
	for i := range 300 { // far more than the control plane writes as it starts
		var err error
		note := fmt.Appendf(nil, `{"metadata":{"annotations":{"test/note":"%d"}}}`, i)
		if made, err = c.Client().CoreV1().Nodes().Patch(ctx, "later", types.MergePatchType, note, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.RestoreEtcd(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().CoreV1().Nodes().Get(ctx, "later", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was made after the copy: %v", err)
	}
	if own, err := c.Client().CoreV1().Nodes().Get(ctx, c.Nodes[0].Name, metav1.GetOptions{}); err != nil || own.Status.NodeInfo.BootID != "rebooted" {
		t.Errorf("the kubelet, which has been restarted since, says boot %q, %v", own.Status.NodeInfo.BootID, err)
	}
	if err := c.CreateNode(ctx, "anew"); err != nil {
		t.Fatal(err)
	}
	again, err := c.Client().CoreV1().Nodes().Get(ctx, "anew", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	was, err := strconv.Atoi(made.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	if is, err := strconv.Atoi(again.ResourceVersion); err != nil || is >= was {
		t.Errorf("the resource version is %d (%v), it was %d before", is, err, was)
	}
}
