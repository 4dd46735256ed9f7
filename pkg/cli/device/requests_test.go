package device

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/operator"
	"github.com/zedkube/zedkube/types"
)

// TestTheAgentTakesEveryRequestOfACommand holds the table of the agent against
// the commands: all that they open is there.
func TestTheAgentTakesEveryRequestOfACommand(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	source := func(file string) string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	table := source("api.go")
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, part := range strings.Split(source(file), "OperatorTopic[")[1:] {
			topic, _, _ := strings.Cut(part, "]")
			if !strings.HasPrefix(topic, "types.") {
				continue
			}
			found++
			if !strings.Contains(table, "operator.TopicOf["+topic+"]") {
				t.Errorf("%s asks for %s, which OperatorTopics lacks", file, topic)
			}
		}
	}
	if found == 0 {
		t.Error("no command asks for anything")
	}
}

// The agent is restarted while a command asks it: it ends before it answers, and the next
// one listens at once, later, or not within the time.
func TestARequestWhoseAnswerIsLostIsAsItWasAsked(t *testing.T) {
	for name, c := range map[string]struct {
		writes bool  // before it ends
		lost   int32 // so many answers
		alone  bool  // no next one
		fails  bool
	}{
		"written before":     {writes: true, lost: 1},
		"not written":        {lost: 1},
		"and again":          {lost: 3},
		"and no agent after": {lost: 1, alone: true},
		"never":              {lost: 1000, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, err := os.MkdirTemp("", "z")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(root)
			p := Options{Root: root}.Paths()
			file := p.TopicFile(CommandAgent, "NodeDrainRequest")
			topic, err := operator.Open[types.NodeDrainRequest](root)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(p.Socket), 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("unix", p.Socket)
			if err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int32
			write := func(r *http.Request) {
				var v types.NodeDrainRequest
				var err error
				if r.Method == http.MethodDelete {
					err = topic.Unpublish(types.Global)
				} else if err = json.NewDecoder(r.Body).Decode(&v); err == nil {
					err = topic.Publish(types.Global, v)
				}
				if err != nil {
					t.Error(err)
				}
			}
			agent := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ends := asked.Add(1) <= c.lost
				if !ends || c.writes {
					write(r)
				}
				switch {
				case !ends:
					w.WriteHeader(http.StatusNoContent)
				case c.alone:
					_ = l.Close()
					fallthrough
				default:
					panic(http.ErrAbortHandler)
				}
			})}
			go func() { _ = agent.Serve(l) }()
			defer agent.Close()
			requests, err := OperatorTopic[types.NodeDrainRequest](p)
			if err != nil {
				t.Fatal(err)
			}
			if c.fails {
				requests.Within = 2 * askAgain
			}
			for _, withdraw := range []bool{false, true} {
				asked.Store(0)
				if withdraw {
					if err = requests.Unpublish(types.Global); c.fails {
						err = nil // there was none
					}
				} else {
					err = requests.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Now().UTC(), Context: "new disk"})
				}
				if _, _, lies := ReadRecord[types.NodeDrainRequest](file); (err != nil) != c.fails && !withdraw || errors.Is(lies, fs.ErrNotExist) != (c.fails || withdraw) {
					t.Errorf("withdrawn %v: %v, and there lies: %v", withdraw, err, lies)
				}
			}
		})
	}
}

// zedkube top asks every five seconds, also where no agent runs.
func TestWhatIsRenewedIsNotInTheAuditWithoutAnAgentEither(t *testing.T) {
	p := Options{Root: t.TempDir()}.Paths()
	looks, err := OperatorTopic[types.MetricsLook](p)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := errors.Join(looks.Publish("key", types.MetricsLook{At: time.Now().UTC()}), AskAgent(p, types.WorkloadsRequest{}), looks.Unpublish("key")); err != nil {
			t.Fatal(err)
		}
	}
	trail, _, err := audit.Read(p.Audit)
	if err != nil || len(trail) == 0 {
		t.Errorf("%+v %v", trail, err)
	}
	for _, o := range trail {
		if o.Target != "topic/WorkloadsRequest/global" {
			t.Errorf("%+v", o)
		}
	}
}
