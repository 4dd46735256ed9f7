package appscmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

const (
	// edgeSilent is how long an edge node may say nothing of a log: one whose tunnel is cut says nothing for ever.
	edgeSilent = 10 * time.Second
	// nodeWithin is for a look at its Node meanwhile.
	nodeWithin = 2 * time.Second
)

// online returns nil where the node of a pod is one of KubeEdge that is not known to be out of reach.
func online(ctx context.Context, kube logsAsker, p device.Paths, pod types.Pod) error {
	if pod.NodeName == "" {
		return fmt.Errorf("pod %s has no node yet: there is no log", terminal.Clean(pod.Key()))
	}
	node, edge, err := kube.EdgeNode(ctx, pod.NodeName)
	switch {
	case err != nil:
		return device.APIError(err)
	case !edge:
		return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("pod %s runs on %s, which is no edge node: zedkube logs --pod %s",
			terminal.Clean(pod.Key()), terminal.Clean(pod.NodeName), terminal.Clean(pod.Key())))
	case node.Ready != types.ConditionTrue:
		return offline(ctx, p, node, types.OfflineSince(node))
	}
	return nil
}

// offline says what of an edge node is known of before.
func offline(ctx context.Context, p device.Paths, node types.Node, what string) error {
	said := fmt.Sprintf("edge node %s is %s: its log can be read when it is back", terminal.Clean(node.Name), what)
	client := boundedhttp.NewSocketClient(p.Socket)
	defer client.CloseIdleConnections()
	all, err := device.EdgeMeasured(ctx, client)
	if err != nil {
		return errors.New(said + "; the agent of this device does not say what was known of before")
	}
	for _, m := range all {
		if m.Node != node.Name || m.At.IsZero() {
			continue
		}
		var pods []string
		for _, pod := range m.Pods {
			pods = append(pods, terminal.Clean(pod.Namespace+"/"+pod.Name))
		}
		return fmt.Errorf("%s; known of before, %s: %s CPU, %s memory, pods %s", said, terminal.Stamp(m.At, device.Now(p.Root)),
			terminal.CoresText(m.Metrics.CPU), terminal.BytesText(m.Metrics.MemoryWorking), terminal.OrNone(phrase.Few(pods, 5)))
	}
	return errors.New(said + "; this device has not measured it before")
}

// readEdge is read of a pod at the edge. Where its node says nothing for edgeSilent it ends; a log that is followed
// only where the node is offline: its pod may have nothing to say.
func (s source) readEdge(ctx context.Context, kube logsAsker, p device.Paths, o logsOptions, lines chan<- loggedLine) error {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	waits, ended := make(chan bool), make(chan error, 1)
	go func() { ended <- s.read(reading, kube, o, lines, func(now bool) { waits <- now }) }()
	silence := time.NewTimer(edgeSilent)
	defer silence.Stop()
	for {
		select {
		case err := <-ended:
			if why := context.Cause(reading); err != nil && why != nil && ctx.Err() == nil {
				return why
			}
			return err
		case waiting := <-waits: // who reads slowly, such as a pager, makes no silence
			if silence.Stop(); waiting {
				silence.Reset(edgeSilent)
			}
		case <-silence.C:
			err := s.silent(ctx, kube, p)
			if err == nil && o.follow {
				silence.Reset(edgeSilent)
				continue
			}
			if err == nil {
				err = fmt.Errorf("edge node %s has not answered within %s: it may be cut off", terminal.Clean(s.pod.NodeName), edgeSilent)
			}
			cancel(err)
		}
	}
}

// silent says whether a node that says nothing is known to be out of reach; nil for no.
func (s source) silent(ctx context.Context, kube logsAsker, p device.Paths) error {
	ctx, cancel := context.WithTimeout(ctx, nodeWithin)
	defer cancel()
	node, edge, err := kube.EdgeNode(ctx, s.pod.NodeName)
	if err != nil || !edge || node.Ready == types.ConditionTrue {
		return nil // the API server has its own sentence for that, and a log that goes on is none
	}
	return offline(ctx, p, node, types.OfflineSince(node))
}

// waitedReader tells when somebody begins to wait for it, and ends.
type waitedReader struct {
	io.Reader
	waits func(bool)
}

func (r waitedReader) Read(p []byte) (int, error) {
	r.waits(true)
	defer r.waits(false)
	return r.Reader.Read(p)
}
