package supportcmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lf-edge/eve-api/go/info"
	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

const exportApp = "9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"

// watchStage is a watch on a device without a kubeconfig whose agent runs.
type watchStage struct {
	*testing.T
	w    *exportWatch
	said bytes.Buffer
}

func newWatchStage(t *testing.T, names ...string) *watchStage {
	s := &watchStage{T: t}
	p := device.Options{Root: t.TempDir()}.Paths()
	s.w = &exportWatch{paths: p, names: names, form: &terminal.Outputs{Watch: true}, said: &s.said}
	cmdtest.Lay(t, p.TopicFile("zedagent", "EdgeNodeInfo"), `{"DeviceName":"Node_1","DeviceID":"`+exportDevice.String()+`"}`)
	cmdtest.Lay(t, p.PersistentFile(device.Self, "ClusterMembership"), `{"State":"never"}`)
	cmdtest.Lay(t, p.TopicFile(device.Self, "KubeLeaderElectInfo"), `{"LeaderIdentity":"node-2"}`)
	s.agent(true)
	return s
}

func (s *watchStage) agent(runs bool) {
	s.Helper()
	cmdtest.Lay(s.T, s.w.paths.Touch, "")
	if runs {
		cmdtest.Lay(s.T, s.w.paths.PID, fmt.Sprint(os.Getpid()))
	} else if err := os.Remove(s.w.paths.PID); err != nil {
		s.Fatal(err)
	}
}

func (s *watchStage) lay(topic, text string) {
	s.Helper()
	cmdtest.Lay(s.T, s.w.paths.TopicFile(device.Self, topic), text)
}

// prints wants one look to print messages of those names, and no others, and to say something
// that has what says, nothing for "".
func (s *watchStage) prints(says string, names ...string) (raw []byte) {
	s.Helper()
	s.said.Reset()
	v := s.w.look(s.Context())
	var got []string
	for _, e := range v.Events {
		raw = append(raw, e.Raw...)
		var d struct{ Name string }
		if !s.w.binary && (json.Unmarshal(e.Raw, &d) != nil || bytes.IndexByte(e.Raw, '\n') != len(e.Raw)-1) {
			s.Errorf("this is not one line of JSON: %q", e.Raw)
		}
		got = append(got, d.Name)
	}
	if !s.w.binary && !slices.Equal(got, names) || v.Ended {
		s.Errorf("printed %q, want %q; ended %v", got, names, v.Ended)
	}
	if said := s.said.String(); !strings.Contains(said, says) || (says == "") != (said == "") {
		s.Errorf("said %q, want %q", said, says)
	}
	return raw
}

func TestAWatchedMessageIsPrintedWhenItChanges(t *testing.T) {
	s := newWatchStage(t)
	s.lay("ClusterNodeStatus", `{"Status":1}`)
	s.prints("cluster: this node does not report for the cluster", messageNode)
	s.prints("")
	s.lay("ClusterNodeStatus", `{"Status":1,"Since":"2026-05-03T06:41:17Z"}`) // written again
	s.prints("")
	s.lay("ClusterNodeStatus", `{"Status":3}`)
	if line := s.prints("", messageNode); !bytes.Contains(line, []byte(`"Z_INFO_CLUSTER_NODE_STATUS_DOWN"`)) {
		t.Errorf("printed %s", line)
	}

	measured := `{"pubsub-large-Nodes":[{"Name":"n1","At":%q,"Cores":4,"CPU":1}],"pubsub-large-Apps":null,"pubsub-large-VMIs":null}`
	at := time.Now().UTC().Truncate(time.Second)
	s.lay("KubeClusterInfo", `{"Nodes":[{"Name":"n1"}]}`)
	s.lay("KubeReportHealth", `{"Reports":true}`)
	s.lay("KubeClusterMetrics", fmt.Sprintf(measured, at.Format(time.RFC3339)))
	s.prints("nothing is wrong any more", messageCluster, messageMetrics)
	s.prints("")
	s.lay("KubeClusterMetrics", fmt.Sprintf(measured, at.Add(time.Second).Format(time.RFC3339))) // measured again
	s.prints("", messageMetrics)
}

func TestOfAMalformedFileTheLastGoodMessageStays(t *testing.T) {
	s := newWatchStage(t, messageNode, messageApp)
	status := filepath.Join(s.w.paths.RunDir(), device.Self, "ENClusterAppStatus", exportApp+".json")
	config := filepath.Join(s.w.paths.RunDir(), "zedagent", "AppInstanceConfig", exportApp+".json")
	cmdtest.Lay(t, status, `{"ScheduledOnThisNode":true,"AppKubeStatus":4}`)
	cmdtest.Lay(t, config, `{"DisplayName":"Label_Printer"}`)
	s.lay("ClusterNodeStatus", `{"Status":1}`)
	app := messageApp + "/" + exportApp
	s.prints("", messageNode, app)

	s.lay("ClusterNodeStatus", `{"Status":`)
	cmdtest.Lay(t, config, `[]`)
	s.prints("ClusterNodeStatus/global.json cannot be read")
	if !strings.Contains(s.said.String(), "AppInstanceConfig/"+exportApp+".json cannot be read") {
		t.Errorf("said %q", s.said.String())
	}
	s.prints("") // once
	s.lay("ClusterNodeStatus", `{"Status":1}`)
	s.prints("cluster-node: nothing is wrong any more")
	cmdtest.Lay(t, status, `{"AppKubeStatus":2}`)
	s.prints("") // still with that configuration
	cmdtest.Lay(t, config, `{"DisplayName":"Label_Printer"}`)
	if line := s.prints("nothing is wrong any more", app); bytes.Contains(line, []byte("clusterAppRunning")) {
		t.Errorf("printed %s", line)
	}

	name := s.w.paths.TopicFile("zedagent", "EdgeNodeInfo") // whose messages they are
	cmdtest.Lay(t, name, `{`)
	s.lay("ClusterNodeStatus", `{"Status":2}`)
	s.prints("the device has no UUID")
	cmdtest.Lay(t, name, `{"DeviceName":"Node_1","DeviceID":"`+exportDevice.String()+`"}`)
	s.prints("nothing is wrong any more", messageNode)
}

func TestAWatchOutlastsTheAgent(t *testing.T) {
	s := newWatchStage(t, messageNode)
	s.lay("ClusterNodeStatus", `{"Status":1}`)
	s.prints("", messageNode)
	s.agent(false)
	s.prints("the agent is NOT running")
	s.prints("")
	s.agent(true)
	s.prints("nothing is wrong any more")
	at := time.Now().Add(-time.Hour)
	if err := os.Chtimes(s.w.paths.Touch, at, at); err != nil {
		t.Fatal(err)
	}
	s.prints("its last heartbeat was")
	if wrong := s.w.last[messageNode].wrong; strings.Contains(wrong, "ago") || !strings.Contains(wrong, "its last heartbeat was 2") {
		t.Errorf("an age is news: %q", wrong)
	}
	s.agent(true)
	s.lay("ClusterNodeStatus", `{"Status":2}`)
	s.prints("nothing is wrong any more", messageNode)
}

func TestAnApplicationThatComesAgainIsPrintedAgain(t *testing.T) {
	s := newWatchStage(t, messageApp)
	s.prints("no application has a status")
	status := filepath.Join(s.w.paths.RunDir(), device.Self, "ENClusterAppStatus", exportApp+".json")
	cmdtest.Lay(t, filepath.Join(s.w.paths.RunDir(), "zedagent", "AppInstanceConfig", exportApp+".json"), `{"DisplayName":"Label_Printer"}`)
	for range 2 {
		cmdtest.Lay(t, status, `{"ScheduledOnThisNode":true,"AppKubeStatus":4}`)
		s.prints("", messageApp+"/"+exportApp)
		if err := os.Remove(status); err != nil {
			t.Fatal(err)
		}
		s.prints("no application has a status")
		if len(s.w.last) != 1 {
			t.Errorf("it remembers %v", s.w.last)
		}
	}
}

func TestAReportIsPrintedAgainWhenThisNodeReportsAgain(t *testing.T) {
	s := newWatchStage(t, messageCluster)
	s.lay("KubeReportHealth", `{"Reports":true}`)
	for range 2 {
		s.lay("KubeClusterInfo", `{"Nodes":[{"Name":"n1"}]}`)
		s.prints(map[bool]string{true: "nothing is wrong any more"}[s.w.last != nil], messageCluster)
		if err := os.Remove(s.w.paths.TopicFile(device.Self, "KubeClusterInfo")); err != nil { // another node does
			t.Fatal(err)
		}
		s.prints("this node does not report for the cluster")
	}
}

func TestABinaryStreamIsReadMessageByMessage(t *testing.T) {
	s := newWatchStage(t, messageNode, messageApp)
	s.w.binary = true
	s.lay("ClusterNodeStatus", `{"Status":1}`)
	cmdtest.Lay(t, filepath.Join(s.w.paths.RunDir(), device.Self, "ENClusterAppStatus", exportApp+".json"), `{"ScheduledOnThisNode":true,"AppKubeStatus":4}`)
	cmdtest.Lay(t, filepath.Join(s.w.paths.RunDir(), "zedagent", "AppInstanceConfig", exportApp+".json"), `{"DisplayName":"Label_Printer"}`)
	stream := s.prints("")
	s.lay("ClusterNodeStatus", `{"Status":2}`)
	stream = append(stream, s.prints("")...)
	r := bufio.NewReader(bytes.NewReader(stream))
	var got []string
	for {
		var m info.ZInfoMsg
		err := protodelim.UnmarshalFrom(r, &m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || m.GetDevId() != exportDevice.String() {
			t.Fatalf("%v after %q: %v", &m, got, err)
		}
		got = append(got, fmt.Sprint(m.GetClusterNode().GetNodeStatus().Number(), m.GetAinfo().GetClusterAppRunning()))
	}
	if want := []string{"1 false", "0 true", "2 false"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func TestABinaryStreamIsOfOneType(t *testing.T) {
	for names, good := range map[string]bool{
		"metrics": true, "cluster": true, "cluster,cluster-node,app": true, "": false, "metrics,cluster": false, "app,metrics": false,
	} {
		list := slices.DeleteFunc(strings.Split(names, ","), func(n string) bool { return n == "" })
		if err := checkExport(list, "binary", true); (err == nil) != good {
			t.Errorf("%q: %v", names, err)
		}
		if err := checkExport(list, "json", true); err != nil {
			t.Errorf("%q as JSON: %v", names, err)
		}
	}
}

func TestTheStatusOfTheOwnNodeIsNotAskedForAgainAndAgain(t *testing.T) {
	e := exportStage(t, func() ([]types.Node, error) {
		t.Error("the API server was asked")
		return nil, nil
	})
	e.watch = true
	if x := e.node(t.Context()); x.message != nil || !strings.Contains(x.missing, "ClusterNodeStatus") {
		t.Errorf("without the topic: %+v", x)
	}
}
