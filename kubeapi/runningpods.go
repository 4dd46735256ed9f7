package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/zedkube/zedkube/types"
)

var errNoNode = errors.New("no node is named")

// RunningPods returns the pods that the node's container runtime runs, as its
// kubelet says, whatever the API server knows of them. It is everything or an
// error.
func (c *Client) RunningPods(ctx context.Context, node string) ([]types.PodRef, error) {
	act := "ask node " + node + " which pods run"
	if node == "" {
		return nil, fmt.Errorf("%s: %w", act, errNoNode)
	}
	var pods []types.PodRef
	err := c.verb(ctx, func(ctx context.Context, conn *connection) error {
		text, err := conn.raw(ctx, "/api/v1/nodes/"+url.PathEscape(node)+"/proxy/runningpods/")
		if err != nil {
			return err
		}
		var list struct {
			Kind  string
			Items []struct {
				Metadata struct{ Namespace, Name, UID string }
			}
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		if list.Kind != "PodList" {
			return errOther
		}
		for _, p := range list.Items {
			if p.Metadata.Name == "" || p.Metadata.UID == "" {
				return errNoName
			}
			pods = append(pods, types.PodRef(p.Metadata))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", act, err)
	}
	return pods, nil
}
