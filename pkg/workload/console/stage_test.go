package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is the device around the component, in fake time on a real disk.
type node struct {
	*testing.T
	configs  late
	apps     pubsub.Table[types.ENClusterAppStatus]
	rows     pubsub.Table[types.AppConsoleStatus]
	root     string
	file     string
	old      string
	kubeInit string
	proc     string
	logs     *logtest.Hook
	stop     func()

	mu     sync.Mutex
	served map[uint32]bool // ports that are listened on
	alive  map[string]bool // machines that run here
}

// late is a table that may be incomplete yet.
type late struct {
	pubsub.Table[types.AppInstanceConfig]
	partly bool
}

func (l *late) Synced() bool { return !l.partly }

func tell(t *testing.T, play func(*node)) { tellIn(t, t.TempDir(), play) }

// tellIn does so on the disk of an earlier story.
func tellIn(t *testing.T, root string, play func(*node)) {
	n := &node{
		root: root, file: filepath.Join(root, DefaultFile), old: filepath.Join(root, DefaultOldFile), kubeInit: filepath.Join(root, DefaultKubeInit), proc: filepath.Join(root, "proc"),
		served: map[uint32]bool{}, alive: map[string]bool{},
	}
	if err := os.MkdirAll(filepath.Join(n.proc, "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	n.serve(0, false)
	synctest.Test(t, func(t *testing.T) {
		n.T = t
		play(n)
		n.stop()
	})
}

// start runs a new component, as a start of the agent does.
func (n *node) start() {
	log, hook := logtest.NewNullLogger()
	n.logs = hook
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Operations: types.NoOperations{}, Configs: &n.configs, Apps: &n.apps,
		File: n.file, OldFile: n.old, KubeInit: n.kubeInit, Proc: n.proc, Status: &n.rows,
	}
	ctx, cancel := context.WithCancel(n.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	n.stop = func() { cancel(); <-done }
	synctest.Wait()
}

// later lets time pass, and the component do what is due.
func (n *node) later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// runs says that the application's machine runs here, wants whether people
// want to see it. Both ring at once.
func (n *node) runs(id string, c types.VmiVNCConfig) {
	n.mu.Lock()
	n.alive[c.VMIName] = true
	n.mu.Unlock()
	_ = n.apps.Publish(id, running(id, c))
	synctest.Wait()
}

// leaves says that the application's machine is no more here.
func (n *node) leaves(id string, change func(*types.ENClusterAppStatus)) {
	s, _ := n.apps.Get(id)
	n.mu.Lock()
	delete(n.alive, s.VMIName)
	n.mu.Unlock()
	change(&s)
	_ = n.apps.Publish(id, s)
	synctest.Wait()
}

func (n *node) wants(id string, wanted bool) {
	c := configured(id, "app "+id[:2], 7)
	c.RemoteConsole = wanted
	_ = n.configs.Publish(id, c)
	synctest.Wait()
}

// serve opens or closes a port, as the kernel shows it.
func (n *node) serve(port uint32, open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.served[port] = open; !open {
		delete(n.served, port)
	}
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	for p := range n.served {
		table += fmt.Sprintf("   0: 0100007F:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n", p)
	}
	next := filepath.Join(n.proc, "net", "next")
	if err := errors.Join(os.WriteFile(next, []byte(table), 0o644), os.Rename(next, filepath.Join(n.proc, "net", "tcp"))); err != nil {
		panic(err)
	}
}

// process is there with a name, or is not where that is empty.
func (n *node) process(pid int, comm string) {
	dir := filepath.Join(n.proc, strconv.Itoa(pid))
	err := os.RemoveAll(dir)
	if comm != "" {
		err = errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "comm"), []byte(comm+"\n"), 0o644))
	}
	n.must(err)
}

// someone writes the console file, or removes it where text is empty. The
// disk gets the test's time: its own has hardly moved since the last change.
func (n *node) somebody(text string) {
	dir := filepath.Dir(n.file)
	if text == "" {
		n.must(os.Remove(n.file))
	} else {
		n.must(errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(n.file, []byte(text), 0o644), os.Chtimes(n.file, time.Now(), time.Now())))
	}
	n.must(os.Chtimes(dir, time.Now(), time.Now()))
}

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

func textOf(c types.VmiVNCConfig) string {
	raw, _ := json.Marshal(c)
	return string(raw)
}

// says wants the file to say that, "" for no file.
func (n *node) says(want string) {
	n.Helper()
	raw, err := os.ReadFile(n.file)
	if string(raw) != want || want == "" && !errors.Is(err, fs.ErrNotExist) {
		n.Errorf("after %s the file says %q (%v), want %q", sinceBegin(), raw, err, want)
	}
}

func sinceBegin() time.Duration {
	return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}

// because wants the row of the application to say why it is not open, "" for open.
func (n *node) because(id, why string) {
	n.Helper()
	row, ok := n.rows.Get(id)
	if !ok || row.Why != why || row.Open != (why == "") || row.AppUUID != uuid.MustParse(id) {
		n.Errorf("the row is %+v (%v), want %q", row, ok, why)
	}
}

// logged counts the lines that have text.
func (n *node) logged(text string) (count int) {
	for _, e := range n.logs.AllEntries() {
		if line, _ := e.String(); strings.Contains(line, text) {
			count++
		}
	}
	return count
}
