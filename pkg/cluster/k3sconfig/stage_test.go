package k3sconfig

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const boot = "boot-7"

const overrideYAML = "kubelet-arg:\n- max-pods=42\n"

// story is a component in fake time on a real disk.
type story struct {
	*testing.T
	settings  pubsub.Table[types.ConfigItemValueMap]
	kube      pubsub.Table[types.KubeConfig]
	status    pubsub.Table[types.K3sVersionStatus]
	override  pubsub.Table[types.K3sOverrideStatus]
	lifecycle pubsub.Table[types.KubeLifecycle]
	member    pubsub.Table[types.ClusterMembership]
	info      pubsub.Table[types.EdgeNodeInfo]
	nodes     pubsub.Table[types.Node]
	did       []types.Operation
	wrote     []types.Operation // files
	disk      string
	vault     string
	file      string
	work      func(keptfile.File, keptfile.Desired) (keptfile.Result, error)
	stop      func()
	logs      *logtest.Hook
}

func tell(t *testing.T, play func(*story)) {
	s := &story{disk: t.TempDir()}
	s.vault = filepath.Join(s.disk, "vault")
	_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipNever})
	s.file = filepath.Join(s.vault, "k3s-user-override.yaml")
	synctest.Test(t, func(t *testing.T) {
		s.T = t
		play(s)
		s.stop()
	})
}

// start runs a new component, as a start of the agent does.
func (s *story) start() {
	log, hook := logtest.NewNullLogger()
	s.logs = hook
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Operations: s, Settings: &s.settings, OverrideFile: s.file, KubeConfig: &s.kube,
		Lifecycle: &s.lifecycle, Membership: &s.member, Info: &s.info, Nodes: &s.nodes, BootID: boot, Status: &s.status, Override: &s.override,
		Files: k3sbinary.Files{VarLib: s.disk, K3s: k3sprocess.K3s{PID: filepath.Join(s.disk, "k3s.pid"), Proc: filepath.Join(s.disk, "proc")}},
	}
	c.file.Work = s.work
	go func() { defer close(done); c.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	s.settle()
}

// settle lets the component do what is due, its work on the disk included.
func (s *story) settle() {
	synctest.Wait()
	time.Sleep(time.Second)
	synctest.Wait()
}

func (s *story) say(version, events, override string) {
	_ = s.settings.Publish(types.Global, settings(version, events, base64.StdEncoding.EncodeToString([]byte(override))))
	s.settle()
}

func (s *story) mount() {
	if err := os.Mkdir(s.vault, 0o700); err != nil {
		s.Fatal(err)
	}
}

// expect wants the file to hold content, or "" for none.
func (s *story) expect(content string) {
	s.Helper()
	got, err := os.ReadFile(s.file)
	if string(got) != content || content == "" && !errors.Is(err, os.ErrNotExist) {
		s.Errorf("the file holds %q (%v), want %q", got, err, content)
	}
}

func (s *story) expectKube(want types.KubeConfig) {
	s.Helper()
	if got, _ := s.kube.Get(types.Global); got != want {
		s.Errorf("KubeConfig is %+v, want %+v", got, want)
	}
}

// logged counts the lines that have text.
func (s *story) logged(text string) (n int) {
	for _, e := range s.logs.AllEntries() {
		if line, _ := e.String(); strings.Contains(line, text) {
			n++
		}
	}
	return n
}
