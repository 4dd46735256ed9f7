// Package k3sprocess finds the k3s server of this device, and restarts it
// (docs/wire.md, "Restart of k3s").
package k3sprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// Where a device has them, and bounds.
const (
	DefaultPID    = "/run/k3s.pid"
	DefaultSocket = "/run/k3s-supervisor.sock"
	DefaultMarker = "/run/kube/k3s-start"

	// askFor is how long the supervisor may take: it answers before it restarts k3s.
	askFor  = 10 * time.Second
	maxText = 4 << 10 // bytes that are read of an answer or of a file of /proc
)

// ErrNothingDone is wrapped by errors of Restart after which k3s certainly goes on as before.
var ErrNothingDone = errors.New("nothing was done")

// supervisors are the programs of the kube container that start k3s again when it has ended.
var supervisors = []string{"kube-init", "cluster-init.sh"}

// K3s is the k3s of a device.
type K3s struct {
	PID    string // file with its process ID, written by its supervisor
	Proc   string
	Socket string // of the supervisor, where that is kube-init
	Marker string // file whose presence resets the back-off of the other supervisor
}

// Process is one process. A later one with the same ID has another start.
type Process struct {
	PID, Parent int
	Start       time.Duration // since the boot, with the time asleep; in ticks of 10 ms
}

// ReadPID reads a file with a process ID.
func ReadPID(file string) (int, error) {
	raw, err := safefile.Read(file, 32)
	pid, invalid := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 22) // the kernel gives no higher one
	if err == nil && invalid != nil {
		err = fmt.Errorf("%s has no process ID", file) // what it has may be a secret, where it is a link
	}
	return int(pid), err
}

// Find returns the process of the k3s server, if its supervisor starts it again when it has
// ended; zero where that is not known, but the supervisor can be asked.
func (k K3s) Find() (Process, error) {
	var p Process
	pid, err := ReadPID(k.PID)
	if err == nil {
		p, err = k.examine(pid)
	}
	if err == nil || k.HasSupervisor() {
		return p, nil
	}
	return p, fmt.Errorf("find k3s: %w", err)
}

// Runs reports whether the process that the supervisor started last is there, also on a worker.
// Another one with its ID counts as well: nothing is begun then.
func (k K3s) Runs() bool {
	pid, err := ReadPID(k.PID)
	return err == nil && k.read(pid, "stat") != ""
}

// HasSupervisor reports whether the supervisor is kube-init, which can be asked.
func (k K3s) HasSupervisor() bool {
	info, err := os.Stat(k.Socket)
	return err == nil && info.Mode()&fs.ModeSocket != 0
}

// Supervisor is the process of kube-init, which goes on while k3s does not; 0 where none listens.
func (k K3s) Supervisor() int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	if unix.Connect(fd, &unix.SockaddrUnix{Name: k.Socket}) != nil { // nothing is asked
		return 0
	}
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || cred.Uid != 0 && int(cred.Uid) != os.Geteuid() || !k.supervises(int(cred.Pid)) {
		return 0
	}
	return int(cred.Pid)
}

// supervises reports whether a process is one of supervisors. An interpreter and its option come before a script.
func (k K3s) supervises(pid int) bool {
	args := strings.Fields(k.read(pid, "cmdline"))
	return slices.ContainsFunc(args[:min(3, len(args))], func(arg string) bool { return slices.Contains(supervisors, filepath.Base(arg)) })
}

// examine says nothing of another program's arguments, which may hold secrets.
func (k K3s) examine(pid int) (Process, error) {
	if args := strings.Fields(k.read(pid, "cmdline")); len(args) < 2 || filepath.Base(args[0]) != "k3s" || args[1] != "server" {
		return Process{}, fmt.Errorf("process %d of %s is not k3s server", pid, k.PID)
	}
	stat := k.read(pid, "stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:]) // from the third on, proc(5)
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("the state of process %d cannot be read", pid)
	}
	parent, err := strconv.Atoi(fields[1])
	ticks, err2 := strconv.ParseUint(fields[19], 10, 48)
	if err := errors.Join(err, err2); err != nil {
		return Process{}, fmt.Errorf("the state of process %d: %w", pid, err)
	}
	if !k.supervises(parent) {
		return Process{}, fmt.Errorf("the parent of k3s, process %d, is not %s: nothing would start k3s again", parent, strings.Join(supervisors, " or "))
	}
	return Process{PID: pid, Parent: parent, Start: time.Duration(ticks) * 10 * time.Millisecond}, nil
}

// read is the beginning of a file of a process, with blanks for zero bytes; "" where it
// cannot be read. The command line of k3s is one string with a blank in it.
func (k K3s) read(pid int, name string) string {
	f, err := safefile.Open(filepath.Join(k.Proc, strconv.Itoa(pid), name))
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, _ := safefile.Head(f, maxText)
	return strings.ReplaceAll(string(raw), "\x00", " ")
}

// Restart has k3s restarted by its supervisor. Only where none listens it ends k3s itself,
// if that is still what Find returned. Restart does not wait for k3s.
func (k K3s) Restart(ctx context.Context, found Process) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	conn, err := peer.Dial(ctx, k.Socket)
	switch none := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED); {
	case err == nil:
		err = failpoint.As(ctx, "ask supervisor", func() error { return ask(ctx, conn) })
	case none && found.PID != 0:
		err = failpoint.As(ctx, "end k3s", func() error { return nothingDone(k.terminate(found)) })
	default:
		err = nothingDone(err)
	}
	if err != nil {
		return fmt.Errorf("restart k3s: %w", err)
	}
	return nil
}

func nothingDone(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNothingDone, err)
}

// terminate opens the process before it looks at it, so that the signal cannot meet
// another one that has been given its ID.
func (k K3s) terminate(found Process) error {
	fd, err := unix.PidfdOpen(found.PID, 0)
	if err != nil {
		return fmt.Errorf("open process %d: %w", found.PID, err)
	}
	defer unix.Close(fd)
	switch now, err := k.examine(found.PID); {
	case err != nil:
		return err
	case now != found:
		return fmt.Errorf("process %d is another one than before", found.PID)
	}
	if err := os.MkdirAll(filepath.Dir(k.Marker), 0o755); err != nil { //nolint:gosec // the kube container reads the marker in it
		return err
	}
	marker, _, err := safefile.OpenFile(k.Marker, os.O_CREATE|os.O_WRONLY|safefile.NoFollow, 0o644)
	if err != nil {
		return err
	}
	if err := marker.Close(); err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
}

// ask asks the supervisor. ERR at the beginning of the last line of its answer is a refusal.
// Where it has answered, it may leave the connection open. One that does not answer may
// restart k3s all the same.
func ask(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, "restart\n"); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(conn, maxText))
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	last := lines[len(lines)-1]
	switch {
	case strings.HasPrefix(last, "ERR"):
		return nothingDone(fmt.Errorf("the supervisor answers %q", phrase.Cut(last, 200)))
	case last == "" && err != nil:
		return fmt.Errorf("the supervisor does not answer: %w", err)
	case last == "":
		return errors.New("the supervisor does not answer")
	}
	return nil
}
