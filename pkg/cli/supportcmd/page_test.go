package supportcmd

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
)

func TestPageSaysWhereItIsWithoutOne(t *testing.T) {
	p := device.Options{Root: t.TempDir()}.Paths()
	found, err := findPage(p)
	if all := strings.Join(terminal.Draw(80, false, found.put), "\n"); err != nil || found.Token != "" || !strings.Contains(all, "ssh -L 12347:"+p.Socket) || !strings.Contains(all, "not served") {
		t.Errorf("%s, %v", all, err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.PageToken), 0o755), os.WriteFile(p.PageToken, []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := findPage(p); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that makes no sense: %v", err)
	}
	hostile, _ := json.Marshal(localserver.TokenFile{Address: "127.0.0.1:1\x1b[2J", Token: "\x1b]0;x"})
	if err := os.WriteFile(p.PageToken, hostile, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err = findPage(p); err != nil || strings.Contains(strings.Join(terminal.Draw(80, false, found.put), ""), "\x1b") {
		t.Errorf("%q, %v", terminal.Draw(80, false, found.put), err)
	}
}
