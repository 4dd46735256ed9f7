package kubeapi

import (
	"context"
	"errors"

	"github.com/zedkube/zedkube/types"
)

var errUnbuilt = errors.New("not carried out yet")

func (c *Client) ForceDeletePod(ctx context.Context, pod types.Pod) error { return errUnbuilt }
func (c *Client) DeleteVMI(ctx context.Context, vmi types.VMI) error      { return errUnbuilt }
func (c *Client) ForgetVMI(ctx context.Context, vmi types.VMI) error      { return errUnbuilt }
func (c *Client) SetWanted(ctx context.Context, set types.AppSet, replicas int32) error {
	return errUnbuilt
}

func (c *Client) SetAffinity(ctx context.Context, set types.AppSet, node string, required bool) error {
	return errUnbuilt
}

func (c *Client) NoteRepair(ctx context.Context, set types.AppSet, note types.RepairNote) error {
	return errUnbuilt
}

func (c *Client) NodeAttachments(ctx context.Context, node string) ([]types.Attachment, error) {
	return nil, errUnbuilt
}
func (c *Client) DeleteAttachment(ctx context.Context, a types.Attachment) error { return errUnbuilt }
func (c *Client) Fence(ctx context.Context, node types.Node, fence types.Fence) error {
	return errUnbuilt
}
func (c *Client) Unfence(ctx context.Context, node types.Node) error { return errUnbuilt }
func (c *Client) RunningPods(ctx context.Context, node string) ([]types.PodRef, error) {
	return nil, errUnbuilt
}

func (c *Client) Witness(ctx context.Context, node string, w types.Witness) error {
	return errUnbuilt
}
