package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// CommandRecord is where commands record what they do to the cluster themselves.
func CommandRecord(p Paths) *audit.Record {
	info := &pubsub.Table[types.EdgeNodeInfo]{}
	if own, err := OwnName(p); err == nil {
		_ = info.Publish(types.Global, own)
	}
	return &audit.Record{Log: Silent(), Info: info, Dir: p.Audit, Segment: audit.DefaultSegment, From: peer.Self().Who()}
}

// Silent is the logger of commands: what fails comes back as an error.
func Silent() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// OwnName reads who this device is from zedagent's word in root.
func OwnName(p Paths) (types.EdgeNodeInfo, error) {
	info, _, err := ReadRecord[types.EdgeNodeInfo](p.TopicFile("zedagent", "EdgeNodeInfo"))
	if err != nil {
		return info, fmt.Errorf("read the name of this device: %w", err)
	}
	return info, nil
}

// OwnNode finds the Node of this device among nodes.
func OwnNode(nodes []types.Node, info types.EdgeNodeInfo) (types.Node, error) {
	byName := map[string]types.Node{}
	for _, n := range nodes {
		byName[n.Name] = n
	}
	own, ok := types.OwnNode(byName, info)
	if !ok {
		return own, fmt.Errorf("the cluster has no node for this device (%s, %s)", terminal.Clean(info.NodeName()), info.DeviceID)
	}
	return own, nil
}

// NodesAndOwn lists the nodes, as the API server has them now, and finds the one
// of this device.
func NodesAndOwn(ctx context.Context, kube nodeLister, info types.EdgeNodeInfo) (nodes []types.Node, own types.Node, err error) {
	if nodes, err = kube.FreshNodes(ctx); err != nil {
		return nil, own, err
	}
	own, err = OwnNode(nodes, info)
	return nodes, own, err
}

// nodeLister lists the nodes, past all caches.
type nodeLister interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
}

// WithAPI runs do with a connection to the API server.
func WithAPI(ctx context.Context, p Paths, do func(*kubeapi.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, DialWithin)
	defer cancel()
	kube, done, err := kubeapi.Dial(ctx, Silent(), p.Kubeconfig, CommandRecord(p))
	if err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	defer done()
	return APIError(do(kube))
}

// DialWithin is for the connection alone: each verb has a bound of its own.
const DialWithin = 20 * time.Second

// APIError gives errors of the API server's their exit code.
func APIError(err error) error {
	for _, kind := range []error{types.ErrNoAPI, types.ErrNoAnswer, types.ErrRefused, types.ErrConflict, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return terminal.ExitWith(terminal.ExitNotPublished, err)
		}
	}
	if request := (*url.Error)(nil); errors.As(err, &request) { // one that was not answered
		return terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	return err
}

// The kube container waits for the command, so it waits for the agent briefly.
const (
	GreetingTimeout = time.Second     // until no answer on the socket means that no agent runs
	DeliveryTimeout = 5 * time.Second // until a running agent must have passed a report on
)
