package console

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestTheFileIsForAllToReadWhateverTheUmask(t *testing.T) {
	umask := syscall.Umask(0o077)
	defer syscall.Umask(umask)
	tell(t, func(n *node) {
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.later(gap)
		for path, want := range map[string]os.FileMode{n.file: 0o644, filepath.Dir(n.file): 0o755 | os.ModeDir} {
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	})
}

func TestADirectoryThatCannotBeMadeIsToldOnce(t *testing.T) {
	tell(t, func(n *node) {
		n.must(os.MkdirAll(filepath.Join(n.root, "run"), 0o755))
		n.must(os.WriteFile(filepath.Join(n.root, "run/edgeview"), nil, 0o644))
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.later(time.Minute)
		if row, _ := n.rows.Get(first); row.Open || row.Why == "" || row.Why == opening {
			t.Errorf("the row says %q", row.Why)
		}
		n.must(os.Remove(filepath.Join(n.root, "run/edgeview")))
		n.later(time.Minute)
		n.says(textOf(own))
	})
}

func TestTheOlderPlaceIsServedWhereNoKubeInitIs(t *testing.T) {
	tell(t, func(n *node) {
		n.must(os.MkdirAll(filepath.Dir(n.old), 0o755))
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.serve(own.VNCPort, true)
		n.later(oldGap + soon)
		if raw, err := os.ReadFile(n.old); string(raw) != "VMINAME:label-printer-9f27b-4q8zt2\nVNCPORT:5907\n" {
			t.Errorf("it says %q, %v", raw, err)
		}
		n.must(os.MkdirAll(n.kubeInit, 0o755)) // the kube container was updated
		n.later(period)
		if left, _ := os.ReadDir(filepath.Dir(n.old)); len(left) > 0 {
			t.Error("left where nobody reads it:", left)
		}
		n.must(os.Remove(n.kubeInit))
		n.later(oldGap + period)
		if _, err := os.Stat(n.old); err != nil {
			t.Error(err)
		}
		n.wants(first, false)
		n.later(0)
		if left, _ := os.ReadDir(filepath.Dir(n.old)); len(left) > 0 {
			t.Error("left behind:", left)
		}
	})
}

func TestTheDirectoryOfTheOlderPlaceIsNotMade(t *testing.T) {
	tell(t, func(n *node) {
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.serve(own.VNCPort, true)
		n.later(oldGap + soon)
		if _, err := os.Stat(filepath.Dir(n.old)); !os.IsNotExist(err) {
			t.Error("the directory was made")
		}
		if n.logged("step failed") > 0 {
			t.Error("that was called an error")
		}
	})
}
