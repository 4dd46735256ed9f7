package appscmd

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/operator"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

const (
	detachApp    = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	detachDomain = detachApp + ".1.1"
)

// detachStage is a device whose agent is played.
type detachStage struct {
	*testing.T
	root     string
	requests *pubsub.Subscription[types.AppDetachRequest]
	repairs  *pubsub.Publication[types.AppRepairStatus]
	heard    chan types.AppDetachRequest

	mu       sync.Mutex
	out, err bytes.Buffer
}

// detachWith runs an agent that answers each request with what it is told to say,
// in this order.
func detachWith(t *testing.T, say ...types.AppRepairStatus) *detachStage {
	s := &detachStage{T: t, root: t.TempDir(), heard: make(chan types.AppDetachRequest, 10)}
	bus := pubsub.NewBus(s.root, device.Silent())
	s.requests = pubsub.NewSubscription[types.AppDetachRequest](bus, device.CommandAgent)
	s.repairs = pubsub.NewPublication[types.AppRepairStatus](bus, device.Self)
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	bell := make(chan struct{}, 1)
	s.requests.Notify(bell)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { bus.Run(ctx) })
	running.Go(func() {
		var last uuid.UUID
		for {
			select {
			case <-ctx.Done():
				return
			case <-bell:
			}
			if r, ok := s.requests.Get(detachApp); ok && r.ID != last {
				last = r.ID
				s.heard <- r
				for _, status := range say {
					status.Heard = r.ID
					s.says(status)
				}
			}
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// agent plays the agent at its socket: answer says what comes of a request, and carryOut does what that asks for.
func (s *detachStage) agent(answer func(w http.ResponseWriter, r *http.Request, carryOut func())) {
	s.Helper()
	topic, err := operator.Open[types.AppDetachRequest](s.root)
	if err != nil {
		s.Fatal(err)
	}
	l, err := net.Listen("unix", device.Options{Root: s.root}.Paths().Socket)
	if err != nil {
		s.Fatal(err)
	}
	agent := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func() {
			if r.Method == http.MethodDelete {
				if err := topic.Unpublish(detachApp); err != nil {
					s.Error(err)
				}
				return
			}
			body, _ := io.ReadAll(r.Body)
			s.lay(string(body))
		})
	})}
	go func() { _ = agent.Serve(l) }()
	s.Cleanup(func() { _ = agent.Close() })
}

func (s *detachStage) file() string {
	return filepath.Join(s.root, "run", device.CommandAgent, "AppDetachRequest", detachApp+".json")
}

func (s *detachStage) lay(request string) { cmdtest.Lay(s.T, s.file(), request) }

func (s *detachStage) says(status types.AppRepairStatus) {
	if err := s.repairs.Publish(detachApp, status); err != nil {
		s.Error(err)
	}
}

// Write collects the command's output, which the stage may read meanwhile.
func (s *detachStage) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// run runs the command with these words.
func (s *detachStage) run(ctx context.Context, args ...string) (int, error) {
	c := device.NewRoot(&device.Options{}, NewVMIDetachCommand)
	c.SetArgs(append([]string{"--root", s.root, "vmiDetach"}, args...))
	c.SetOut(s)
	c.SetErr(&s.err)
	err := c.ExecuteContext(ctx)
	return terminal.ExitCode(err), err
}

var detachStamp = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ `)

// printed is the output without the times, which every line has.
func (s *detachStage) printed() string {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return withoutTimes(s.T, s.out.String())
}

func withoutTimes(t *testing.T, text string) string {
	t.Helper()
	if lines, times := strings.Count(text, "\n"), len(detachStamp.FindAllString(text, -1)); lines != times {
		t.Errorf("%d lines with %d times: %s", lines, times, text)
	}
	return detachStamp.ReplaceAllString(text, "")
}

// logFile is what the log file holds.
func (s *detachStage) logFile() string {
	s.Helper()
	content, err := os.ReadFile(filepath.Join(s.root, "persist/kubelog/detach.log"))
	if err != nil {
		s.Error(err)
	}
	return withoutTimes(s.T, string(content))
}

// lies are the requests that lie there for the agent.
func (s *detachStage) lies() []string {
	files, _ := filepath.Glob(filepath.Join(s.root, "run", device.CommandAgent, "AppDetachRequest", "*.json"))
	return files
}
