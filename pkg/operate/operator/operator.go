// Package operator takes over the socket what commands ask the agent for, and
// leaves it in the topics where the components read it (docs/wire.md,
// "Requests"). It is the one way by which anything is asked for at the device
// while the agent runs. Who may ask is the local server's to check.
//
//	writes: the topics that it is given, as files of zedkube-cli
package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// Path is below which the topics are: Path + "NodeDrainRequest/global".
	Path = "/requests/"
	// Agent is in whose name the topics are.
	Agent       = "zedkube-cli"
	maxBody     = 64 << 10        // more than a value of a topic may have
	bodyTimeout = 5 * time.Second // how long a command may take to send it
)

// Topic is one in which a command may leave what it asks for.
type Topic struct {
	name    string
	write   func(root, method, key string, body []byte) error // PUT publishes the body, DELETE withdraws the value
	renewed bool
}

// String is the name of the topic.
func (t Topic) String() string { return t.name }

// TopicOf is the topic of T.
func TopicOf[T any]() Topic {
	return Topic{
		name: reflect.TypeFor[T]().Name(),
		write: func(root, method, key string, body []byte) error {
			var v T
			var err error
			if method == http.MethodPut {
				if v, err = decode[T](body); err != nil {
					return fmt.Errorf("%w: %w", errBody, err)
				}
			}
			topic, err := Open[T](root)
			if err != nil {
				return err
			}
			if method == http.MethodPut {
				return topic.Publish(key, v)
			}
			return topic.Unpublish(key)
		},
	}
}

// Renewed is a topic that a command renews every few seconds for as long as it
// runs, and that changes nothing but how often the agent looks: it is not in the
// audit.
func Renewed(t Topic) Topic {
	t.renewed = true
	return t
}

var (
	errBody = errors.New("it is not a valid value of its topic")
	errKey  = errors.New("invalid key: only letters, digits, dots and dashes are allowed")
)

// keys are what commands use as keys, of 128 characters at most: "global" and UUIDs.
var keys = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// decode reads one value, which has no fields that are not T's.
func decode[T any](body []byte) (v T, err error) {
	if bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		return v, errors.New("the value is null")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, errors.New("more than one value")
	}
	return v, nil
}

// Open opens the topic of T below root, as files alone: the writer may end
// before anyone could connect. What lies there is as of now.
func Open[T any](root string) (*pubsub.Publication[T], error) {
	log := logrus.New()
	log.SetOutput(io.Discard) // a file that cannot be read is reported by those who read the topic
	bus := pubsub.NewBus(root, log)
	topic := pubsub.NewPublication[T](bus, Agent, pubsub.FilesOnly())
	if err := bus.Open(); err != nil {
		return nil, fmt.Errorf("open pubsub: %w", err)
	}
	return topic, nil
}

// Handler answers PUT and DELETE of Path + topic + "/" + key. Every field is
// required.
type Handler struct {
	Root       string
	Operations types.OperationLog // is told who asks for what, before it is done
	Topics     []Topic

	mu sync.Mutex // one request at a time: each writes files
}

// ServeHTTP implements http.Handler. The answer is 204; 404 for a topic that is
// not one of them, 400 for a key or a value that cannot be, 413 for one that is
// too long, 500 where it cannot be written.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Path), "/")
	at := slices.IndexFunc(h.Topics, func(t Topic) bool { return t.name == name })
	if at < 0 {
		http.Error(w, "unknown request: another version of zedkube may support it", http.StatusNotFound)
		return
	}
	var body []byte
	if r.Method == http.MethodPut {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // one without deadlines has a bound of its own
		var err error
		if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
			http.Error(w, "read request: "+err.Error(), codeOf(err))
			return
		}
	}
	if err := h.do(r, r.Method, h.Topics[at], key, body); err != nil {
		http.Error(w, err.Error(), codeOf(err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Request makes a request for who sent r, or withdraws it for a value of nil, as a PUT
// or a DELETE of the topic's key "global" does.
func (h *Handler) Request(r *http.Request, topic string, value any) error {
	at := slices.IndexFunc(h.Topics, func(t Topic) bool { return t.name == topic })
	if at < 0 {
		return fmt.Errorf("request %s: it is not one that operators make", topic)
	}
	method, body := http.MethodDelete, []byte(nil)
	if value != nil {
		method = http.MethodPut
		var err error
		if body, err = json.Marshal(value); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	return h.do(r, method, h.Topics[at], types.Global, body)
}

// Fulfilled removes the request under a topic's key "global" that has had its effect. Nobody
// asks for that, so it is not in the audit.
func (h *Handler) Fulfilled(topic string) error {
	at := slices.IndexFunc(h.Topics, func(t Topic) bool { return t.name == topic })
	if at < 0 {
		return fmt.Errorf("remove request %s: it is not one that operators make", topic)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Topics[at].write(h.Root, http.MethodDelete, types.Global, nil)
}

// do writes the topic, and beforehand into the audit who asks for it.
func (h *Handler) do(r *http.Request, method string, topic Topic, key string, body []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(key) > 128 || !keys.MatchString(key) {
		return errKey
	}
	who, _ := peer.FromContext(r.Context())
	end := topic.Begin(h.Operations, method, key, who)
	var err error
	if cause := context.Cause(r.Context()); method == http.MethodPut && errors.Is(cause, context.Canceled) {
		err = cause // the command has given up, and has said so: nobody would expect it
	}
	if err == nil {
		err = topic.write(h.Root, method, key, body)
	}
	outcome := types.OperationOK
	if err != nil {
		outcome = types.OperationFailed
	}
	end(outcome, err)
	return err
}

// Begin says in the audit who asks for what by method, PUT or DELETE, before it is done.
func (t Topic) Begin(audit types.OperationLog, method, key string, who peer.Peer) (end func(types.OperationOutcome, error)) {
	if t.renewed {
		return func(types.OperationOutcome, error) {}
	}
	o := types.Operation{Component: "command", Op: "ask", Target: "topic/" + t.name + "/" + key, By: "OPERATOR", From: who.Who()}
	if method == http.MethodDelete {
		o.Op = "ask no more"
	}
	return audit.Begin(o)
}

func codeOf(err error) int {
	tooLong := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &tooLong), errors.Is(err, pubsub.ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errBody), errors.Is(err, errKey):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}
