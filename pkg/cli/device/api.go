package device

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/operator"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// CommandRecord is where commands record what they do to the cluster themselves.
func CommandRecord(p Paths) *audit.Record {
	own, _ := OwnName(p) // without it a line names no node
	return audit.OfCommand(own, p.Audit)
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

// FreshNodes lists the nodes, as the API server has them now.
func FreshNodes(ctx context.Context, p Paths) (nodes []types.Node, err error) {
	err = WithAPI(ctx, p, func(kube *kubeapi.Client) error {
		nodes, err = kube.FreshNodes(ctx)
		return err
	})
	return nodes, err
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

// CommandAgent is in whose name commands speak to the running agent.
const CommandAgent = operator.Agent

// OperatorTopics are all that commands may ask the agent for. To add one, add
// its type here and open it in the command by OperatorTopic.
func OperatorTopics() []operator.Topic {
	return []operator.Topic{
		operator.TopicOf[types.NodeDrainRequest](),
		operator.TopicOf[types.ClusterLeaveRequest](),
		operator.TopicOf[types.AppDetachRequest](),
		operator.TopicOf[types.K3sReleaseRequest](),
		operator.TopicOf[types.K3sRetryRequest](),
		operator.TopicOf[types.K3sRollbackRequest](),
		operator.TopicOf[types.WorkloadsRequest](),
		operator.TopicOf[types.CertsResetRequest](),
		operator.Renewed(operator.TopicOf[types.MetricsLook]()),
	}
}

// OperatorTopic opens a topic in which commands leave what an operator asks the
// agent for.
func OperatorTopic[T any](p Paths) (Requested[T], error) {
	topic, err := operator.Open[T](p.Root)
	if err != nil {
		return Requested[T]{}, terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	a := Requested[T]{Publication: topic, paths: p, Within: askTimeout}
	for _, t := range OperatorTopics() {
		if t.String() == reflect.TypeFor[T]().Name() {
			a.topic = t
		}
	}
	return a, nil
}

// AskAgent leaves v in the topic of its type, under the key for the whole device.
func AskAgent[T any](p Paths, v T) error {
	topic, err := OperatorTopic[T](p)
	if err != nil {
		return err
	}
	return topic.Publish(types.Global, v)
}

// Requested is such a topic. It is read as it lay there when it was opened, and
// written by the running agent, which notes who asks. Where no agent runs, the
// command writes it itself, as root, and notes that: the agent finds it at its
// start, and a device without a running agent can still be told what to do.
type Requested[T any] struct {
	*pubsub.Publication[T]
	topic  operator.Topic
	paths  Paths
	Within time.Duration // how long the agent may take
}

// askTimeout is how long an agent may take that listens.
const askTimeout = 10 * time.Second

// Publish asks for v.
func (a Requested[T]) Publish(key string, v T) error {
	body, err := json.Marshal(v)
	if err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("ask the agent: %w", err))
	}
	return a.change(http.MethodPut, key, body, func() error { return a.Publication.Publish(key, v) })
}

// Unpublish takes it back.
func (a Requested[T]) Unpublish(key string) error {
	return a.change(http.MethodDelete, key, nil, func() error { return a.Publication.Unpublish(key) })
}

// change asks the agent, again where it ended before it answered, as in a restart:
// to ask twice is to ask once, unless another command has asked for something else meanwhile.
func (a Requested[T]) change(method, key string, body []byte, alone func() error) error {
	until, before := time.Now().Add(a.Within), a.lies(key)
	err := a.ask(method, key, body, a.Within)
	for errors.Is(err, errNoAnswer) && !bytes.Equal(before, body) && bytes.Equal(a.lies(key), before) && time.Until(until) > askAgain {
		<-time.After(askAgain)
		err = a.ask(method, key, body, max(time.Until(until), askAgain)) // 0 would be no limit
	}
	lies := a.lies(key)
	switch {
	case errors.Is(err, errNoAnswer) && bytes.Equal(lies, body):
		return nil // by an agent that ended then
	case errors.Is(err, errNoAnswer) && method == http.MethodDelete && !bytes.Equal(lies, before):
		return nil // what lies there is a later command's
	case errors.Is(err, errNoAnswer) && !bytes.Equal(lies, before):
		err = errors.New("another command has asked for something else meanwhile")
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		end := a.topic.Begin(CommandRecord(a.paths), method, key, peer.Self())
		outcome := types.OperationOK
		if err = alone(); err != nil {
			outcome = types.OperationFailed
		}
		end(outcome, err)
	}
	if err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	return nil
}

// errNoAnswer is of an agent that was reached and did not answer: nobody knows
// whether it has done what it was asked for.
var errNoAnswer = errors.New("it did not answer")

// askAgain is how long a command waits before it asks the next agent.
const askAgain = 200 * time.Millisecond

// lies is the request that lies there for the agent, as it is sent, or why it cannot be read; nil for none.
func (a Requested[T]) lies(key string) []byte {
	v, _, err := ReadRecord[T](filepath.Join(a.paths.RunDir(), CommandAgent, reflect.TypeFor[T]().Name(), key+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	raw, failed := json.Marshal(v)
	if err = errors.Join(err, failed); err != nil {
		return []byte(err.Error())
	}
	return raw
}

// ask sends a request to the agent. Its error wraps fs.ErrNotExist or
// syscall.ECONNREFUSED where none runs.
func (a Requested[T]) ask(method, key string, body []byte, within time.Duration) error {
	client := boundedhttp.NewSocketClient(a.paths.Socket)
	defer client.CloseIdleConnections()
	client.Timeout = within
	path := operator.Path + reflect.TypeFor[T]().Name() + "/" + url.PathEscape(key)
	r, err := http.NewRequest(method, "http://zedkube"+path, bytes.NewReader(body)) //nolint:noctx // a request that has begun is not broken off, and the client has a timeout
	if err != nil {
		return fmt.Errorf("ask the agent: %w", err)
	}
	answer, err := boundedhttp.Do(client, r, 1024)
	if answer.Code == 0 {
		if dialed := (*net.OpError)(nil); errors.As(err, &dialed) && dialed.Op == "dial" {
			return fmt.Errorf("ask the agent: %w", err)
		}
		return fmt.Errorf("ask the agent: %w: %w", errNoAnswer, err)
	}
	switch answer.Code { // it says what matters, also where the text was cut off
	case http.StatusNoContent:
		return nil
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return errors.New("the running agent has another version, which does not support this: nothing was requested. Restart it with this version")
	}
	return fmt.Errorf("the agent did not accept the request: %s", terminal.Clean(strings.TrimSpace(string(answer.Body))))
}

// Self is the name of this agent in pubsub.
const Self = "zedkube"

// Withdraw removes an operator's request, and says whether there was one. A file
// that cannot be read counts: it goes too.
func Withdraw[T any](p Paths, name string) (bool, error) {
	if _, err := os.Lstat(p.TopicFile(CommandAgent, name)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	topic, err := OperatorTopic[T](p)
	if err != nil {
		return false, err
	}
	err = topic.Unpublish(types.Global)
	return err == nil, err
}
