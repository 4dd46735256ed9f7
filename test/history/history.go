// Package history holds what happened around several agents, as one list in the
// order in which it happened, and the rules that no such list may break. Who
// records it asserts nothing; who judges it has seen nothing else.
package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Kind says which of an Event's fields mean something.
type Kind string

// What may happen. Of what people and other agents do, the event comes before
// the act itself; of what the program does, after it.
const (
	AgentUp   Kind = "agent up"    // of Node
	AgentDown Kind = "agent down"  // killed or told to end; Text says how
	AgentBad  Kind = "agent bad"   // it ended by itself, or its log has a panic or a race: Text
	Rebooted  Kind = "rebooted"    // the device, before the next boot begins
	Alone     Kind = "alone"       // On: the node reaches no API server from now on
	Told      Kind = "told"        // Text by another agent of the device, By
	Asked     Kind = "asked"       // for a drain, by By
	TookBack  Kind = "took back"   // By its request
	Foreign   Kind = "foreign"     // On: someone else cordons the node; until then
	Fault     Kind = "fault"       // Text is what the node meets from now on at its API server
	Drain     Kind = "drain"       // the node says Drain
	Why       Kind = "why"         // the node says why its drain stands where it does: Text
	Leader    Kind = "leader"      // On: the node says that it reports for the cluster, by its clock since Since
	Reports   Kind = "reports"     // On: the node publishes a report on the cluster
	Claim     Kind = "claim"       // On: the node says that the application App is on it
	NodeIs    Kind = "node"        // the API server has Object
	PodIs     Kind = "pod"         // as above
	VolumeIs  Kind = "attachment"  // as above
	App       Kind = "application" // App has to run on one of Nodes, on none of them where there are none
	Looked    Kind = "looked"      // what was there at the API server after COMPLETE: Look
	LockIs    Kind = "lock"        // who held the drain lock after a cordon of ours, if that still stood then: Look
	Restored  Kind = "restored"    // etcd is set back to an earlier time
	Settled   Kind = "settled"     // nothing of a drain may be left: Look
	Called    Kind = "call"        // the agent called the API server: Text
)

// Event is one thing that happened.
type Event struct {
	At     time.Duration // since the history began
	Kind   Kind
	Node   string                 `json:",omitempty"`
	By     string                 `json:",omitempty"`
	On     bool                   `json:",omitempty"`
	Text   string                 `json:",omitempty"`
	App    string                 `json:",omitempty"`
	Nodes  []string               `json:",omitempty"`
	Since  time.Duration          `json:",omitempty"`
	Drain  *types.NodeDrainStatus `json:",omitempty"`
	Object *Object                `json:",omitempty"`
	Look   *Look                  `json:",omitempty"`
}

// Object is what matters of a Node, a pod or a VolumeAttachment. The node it is
// about, or is on, is that of the Event.
type Object struct {
	Name          string   // of the pod or of the attachment
	Gone          bool     `json:",omitempty"`
	Mark          string   `json:",omitempty"` // Node: our annotation on a node that is cordoned
	Unschedulable bool     `json:",omitempty"` // Node
	Ready         bool     `json:",omitempty"` // Node; a pod that runs
	Voter         bool     `json:",omitempty"` // Node: has a member of etcd that votes
	App           string   `json:",omitempty"` // pod: its label app
	Domain        string   `json:",omitempty"` // pod: App-Domain-Name of its application
	Claims        []string `json:",omitempty"` // pod: what it mounts
	Ending        bool     `json:",omitempty"` // pod: is being deleted
	Volume        string   `json:",omitempty"` // attachment
	Attached      bool     `json:",omitempty"` // attachment
}

// Look is what the API server answered to who asked it, beginning at From.
type Look struct {
	From          time.Duration
	Unschedulable bool     `json:",omitempty"`
	Pods          []string `json:",omitempty"` // on the node, which a drain has to remove
	Volumes       []string `json:",omitempty"` // attached to the node, or whole nowhere else
	Holder        string   `json:",omitempty"` // of the drain lock
	Left          []string `json:",omitempty"` // Settled: nodes that are cordoned
}

// Log is a history that grows. Its methods may be called from several goroutines.
type Log struct {
	began time.Time
	mu    sync.Mutex
	all   []Event
}

// New begins a history.
func New() *Log { return &Log{began: time.Now()} }

// Began is the time of the history's beginning.
func (l *Log) Began() time.Time { return l.began }

// Add notes that something happened now, and returns when that is.
func (l *Log) Add(e Event) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.At = time.Since(l.began)
	l.all = append(l.all, e)
	return e.At
}

// Insert notes what happened before, at its own time.
func (l *Log) Insert(events ...Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, events...)
	slices.SortStableFunc(l.all, func(a, b Event) int { return int(a.At - b.At) })
}

// Events are those so far.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// Write writes events as JSON, a line for each.
func Write(path string, events []Event) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	out := bufio.NewWriter(f)
	lines := json.NewEncoder(out)
	for _, e := range events {
		if err := lines.Encode(e); err != nil {
			return errors.Join(fmt.Errorf("write the history: %w", err), f.Close())
		}
	}
	return errors.Join(out.Flush(), f.Close())
}

// Read reads what Write has written.
func Read(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	defer f.Close()
	var events []Event
	for lines := json.NewDecoder(f); ; {
		var e Event
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return nil, fmt.Errorf("read the history: %w", err)
		}
		events = append(events, e)
	}
}
