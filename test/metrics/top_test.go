//go:build linux

package metrics

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// onlooker is a person who runs "zedkube top" on a device.
type onlooker struct {
	cmd   *exec.Cmd
	ended chan struct{}
	lines chan []byte // the JSON it prints, the newest; older ones are dropped
}

func (s *stage) looks(t *testing.T, i int, args ...string) *onlooker {
	t.Helper()
	m := s.Fleet.Members[i]
	args = append(append(m.Program[1:len(m.Program):len(m.Program)], "--root", m.Root, "top"), args...)
	o := &onlooker{cmd: exec.Command(m.Program[0], args...), ended: make(chan struct{}), lines: make(chan []byte, 1)}
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := o.cmd.StdoutPipe()
	if err == nil {
		err = o.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(o.ended)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				_ = o.cmd.Wait()
				return
			}
			select {
			case <-o.lines:
			default:
			}
			o.lines <- line
		}
	}()
	t.Cleanup(o.kill)
	return o
}

// kill ends it as nobody should.
func (o *onlooker) kill() {
	_ = syscall.Kill(-o.cmd.Process.Pid, syscall.SIGKILL)
	<-o.ended
}

// shown is what the command says of one row.
type shown struct {
	Name   string
	At     time.Time
	Old    bool
	CPU    *uint64
	Memory *uint64
	CPUs   []*uint64
}

// sees is the newest table that the command prints from now on, by name.
func (o *onlooker) sees(t *testing.T) map[string]shown {
	t.Helper()
	select {
	case <-o.lines:
	default:
	}
	select {
	case line := <-o.lines:
		return table(t, line)
	case <-o.ended:
		t.Fatal("zedkube top has ended")
	case <-time.After(30 * time.Second):
		t.Fatal("zedkube top prints nothing")
	}
	return nil
}

func table(t *testing.T, line []byte) map[string]shown {
	t.Helper()
	var doc struct{ Rows []shown }
	if err := json.Unmarshal(line, &doc); err != nil {
		t.Fatalf("%v: %.300s", err, line)
	}
	rows := map[string]shown{}
	for _, r := range doc.Rows {
		rows[r.Name] = r
	}
	return rows
}
