package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/types"
)

const exitCodes = `Exit codes:
  0   done; with "status --watch": the drain is complete
  1   wrong usage, interrupted, or it failed
  2   it could not be written, or the API server cannot be asked
  3   "status --watch": the drain failed, or was taken back
  99  unknown command`

// newDrainCommand is the parent of what an operator may say about drains.
func newDrainCommand(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "drain",
		Short: "Empty this node, see how far that is and what is in its way",
		Long:  "Empty this node, see how far that is and what is in its way.\nEvery state and every remedy is in docs/operations.md.\n\n" + exitCodes,
		Args:  noCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		newDrainStatusCommand(o), newDrainPlanCommand(o), newDrainRequestCommand(o), newDrainCancelCommand(o),
		newKeepCordonCommand(o), newUnlockCommand(o),
	)
	return c
}

// silent is the logger of commands: what fails comes back as an error.
func silent() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// ownName reads who this device is from zedagent's word in root.
func ownName(p paths) (types.EdgeNodeInfo, error) {
	info, _, err := readRecord[types.EdgeNodeInfo](p.topicFile("zedagent", "EdgeNodeInfo"))
	if err != nil {
		return info, fmt.Errorf("learn who this device is: %w", err)
	}
	return info, nil
}

// topicFile is the file of a plain single-value topic.
func (p paths) topicFile(agent, topic string) string {
	return filepath.Join(p.runDir(), agent, topic, types.Global+".json")
}

// persistentFile is the file of a persistent single-value topic.
func (p paths) persistentFile(agent, topic string) string {
	return filepath.Join(filepath.Dir(p.runDir()), "persist/status", agent, topic, types.Global+".json")
}

// runDir is the directory of the plain topics.
func (p paths) runDir() string { return filepath.Dir(p.pid) }

// ownNode finds the Node of this device among nodes.
func ownNode(nodes []types.Node, info types.EdgeNodeInfo) (types.Node, error) {
	byName := map[string]types.Node{}
	for _, n := range nodes {
		byName[n.Name] = n
	}
	own, ok := types.OwnNode(byName, info)
	if !ok {
		return own, fmt.Errorf("the cluster has no node of this device (%s, %s)", clean(info.NodeName()), info.DeviceID)
	}
	return own, nil
}

// nodesAndOwn lists the nodes, as the API server has them now, and finds the one
// of this device.
func nodesAndOwn(ctx context.Context, kube nodeLister, info types.EdgeNodeInfo) (nodes []types.Node, own types.Node, err error) {
	if nodes, err = kube.FreshNodes(ctx); err != nil {
		return nil, own, err
	}
	own, err = ownNode(nodes, info)
	return nodes, own, err
}

// nodeLister lists the nodes, past all caches.
type nodeLister interface {
	FreshNodes(ctx context.Context) ([]types.Node, error)
}

// withAPI runs do with a connection to the API server.
func withAPI(ctx context.Context, p paths, do func(*kubeapi.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	kube, done, err := kubeapi.Dial(ctx, silent(), p.kubeconfig, commandRecord(p))
	if err != nil {
		return exitWith(exitNotPublished, err)
	}
	defer done()
	return apiError(do(kube))
}

// dialWithin is for the connection alone: each verb has a bound of its own.
const dialWithin = 20 * time.Second

// apiError gives errors of the API server's their exit code.
func apiError(err error) error {
	for _, kind := range []error{types.ErrNoAPI, types.ErrNoAnswer, types.ErrRefused, types.ErrConflict, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return exitWith(exitNotPublished, err)
		}
	}
	if request := (*url.Error)(nil); errors.As(err, &request) { // one that was not answered
		return exitWith(exitNotPublished, err)
	}
	return err
}
