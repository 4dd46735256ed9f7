package appscmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
)

func TestTheDetachLogIsWrittenToNothingButItsOwnFile(t *testing.T) {
	umask := syscall.Umask(0)
	defer syscall.Umask(umask)
	for name, row := range map[string]struct {
		there func(path, other string) error
		kept  bool // what is there takes the line
	}{
		"nothing":                  {func(string, string) error { return nil }, true},
		"a log that all may write": {func(path, _ string) error { return os.WriteFile(path, []byte("before\n"), 0o666) }, true},
		"a symlink":                {func(path, other string) error { return os.Symlink(other, path) }, false},
		"a hard link":              {func(path, other string) error { return os.Link(other, path) }, false},
		"a fifo":                   {func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }, false},
		"a directory":              {func(path, _ string) error { return os.Mkdir(path, 0o700) }, false},
	} {
		p := device.Options{Root: t.TempDir()}.Paths()
		path, other := detachLogFile(p), filepath.Join(t.TempDir(), "other")
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(other, nil, 0o600), row.there(path, other))
		if err != nil {
			t.Fatal(err)
		}
		var out, warn bytes.Buffer
		l := openDetachLog(p, &out, &terminal.Outputs{}, &warn)
		if err := l.say(time.Now(), "a line"); err != nil || !strings.Contains(out.String(), "a line") {
			t.Errorf("%s: printed %q, %v", name, out.String(), err)
		}
		l.close()
		if info, err := os.Stat(other); err != nil || info.Size() > 0 {
			t.Errorf("%s: another file has %v, %v", name, info, err)
		}
		if refused := strings.Contains(warn.String(), "could not be written"); refused == row.kept {
			t.Errorf("%s: said %q", name, warn.String())
		}
		if !row.kept {
			continue
		}
		text, err := os.ReadFile(path)
		if info, _ := os.Stat(path); err != nil || !strings.HasSuffix(string(text), " a line\n") || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: the log has %q, %v, mode %v", name, text, err, info.Mode())
		}
	}
}

func TestALineOfADetachIsADocument(t *testing.T) {
	var out bytes.Buffer
	var o terminal.Outputs
	if err := cmdtest.Output("json", o.Flag, o.Parse); err != nil {
		t.Fatal(err)
	}
	l := openDetachLog(device.Options{Root: t.TempDir()}.Paths(), &out, &o, &out)
	defer l.close()
	if err := l.say(cmdtest.Now.Add(time.Millisecond), "done: it %s", "runs"); err != nil {
		t.Fatal(err)
	}
	var got detachLine
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != (detachLine{cmdtest.Now, "done: it runs"}) {
		t.Errorf("%s: %+v, %v", out.String(), got, err)
	}
}
