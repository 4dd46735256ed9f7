package topcmd

import (
	"bytes"
	"slices"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

func TestTheLocaleDecidesBetweenBlocksAndDigits(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false},
		{"", "", "C", false},
		{"", "", "de_DE.UTF-8", true},
		{"", "", "C.utf8", true},
		{"POSIX", "", "en_US.UTF-8", false},
		{"", "en_US.UTF-8", "C", true},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.ctype)
		t.Setenv("LANG", c.lang)
		if got := localeIsUTF8(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestTopRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, args := range [][]string{{"top", "volumes"}, {"top", "pods", "nodes"}, {"top", "--sort", "age"}, {"top", "--all"}, {"top", "nodes", "--all"}} {
		c := device.NewRoot(&device.Options{}, NewTopCommand)
		c.SetArgs(slices.Concat([]string{"--root", t.TempDir()}, args))
		c.SetOut(&bytes.Buffer{})
		if code := terminal.ExitCode(c.ExecuteContext(t.Context())); code != terminal.ExitUsage {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}
