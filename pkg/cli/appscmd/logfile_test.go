package appscmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
)

// fileStage is a device with logs of the kube container.
type fileStage struct {
	*testing.T
	root string
}

func (s fileStage) path(name string) string { return filepath.Join(s.root, "persist/kubelog", name) }

func (s fileStage) write(name, text string) {
	s.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(s.path(name)), 0o755), os.WriteFile(s.path(name), []byte(text), 0o600)); err != nil {
		s.Fatal(err)
	}
}

func (s fileStage) add(name, text string) {
	s.Helper()
	f, err := os.OpenFile(s.path(name), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s fileStage) logs(args ...string) (string, error) {
	var out bytes.Buffer
	c := device.NewRoot(&device.Options{}, NewLogsCommand)
	c.SetOut(&out)
	c.SetArgs(append([]string{"--root", s.root, "logs"}, args...))
	err := c.ExecuteContext(s.Context())
	return out.String(), err
}

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestTheEndOfALogFileIsPrinted(t *testing.T) {
	s := fileStage{t, t.TempDir()}
	s.write("k3s.log", numbered(4, 5)+"not ended")
	s.write("k3s.log.1", numbered(1, 3))
	s.write("k3s-install.log", "another log\n")
	s.write("upgrade-component.log", numbered(1, 2000))
	s.write("upgrade-component-2026-11-20T10-00-00.000.log", "older\n")
	s.write("upgrade-component-2026-11-21T10-00-00.000.log", "old\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{numbered(1, 5) + "not ended\n", []string{"k3s"}},
		{numbered(3, 5) + "not ended\n", []string{"k3s", "--tail", "3"}},
		{"not ended\n", []string{"k3s", "--tail", "0"}},
		{numbered(1001, 2000), []string{"upgrade-component"}},
		{"old\n" + numbered(1, 2000), []string{"upgrade-component", "--tail", "5000"}},
	} {
		if got, err := s.logs(c.args...); err != nil || got != c.want {
			t.Errorf("%q: %v\n%.200s", c.args, err, got)
		}
	}
	got, err := s.logs("k3s", "--tail", "1", "-o", "json")
	var line fileLine
	if err != nil || json.NewDecoder(strings.NewReader(got)).Decode(&line) != nil || line != (fileLine{"k3s", "line 5"}) {
		t.Errorf("%v: %s", err, got)
	}
}

func TestALogFileIsReadOnlyInPart(t *testing.T) {
	s := fileStage{t, t.TempDir()}
	line := strings.Repeat("x", 99) + "\n"
	s.write("k3s.log", strings.Repeat(line, fileBytes/len(line)*3))
	got, err := s.logs("k3s", "--tail", "1000000")
	if err != nil || len(got) > fileBytes || len(got)%len(line) != 0 || len(got) < fileBytes-len(line) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	s.write("upgrade-component.log", strings.Repeat("x", 2*fileBytes)) // no line ends
	if got, err := s.logs("upgrade-component"); err != nil || len(got) > fileBytes+1 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestWhatIsNoLogFileIsAnError(t *testing.T) {
	s := fileStage{t, t.TempDir()}
	if err := os.MkdirAll(s.path("k3s.log"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", s.path("upgrade-component.log")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"k3s", "upgrade-component"} {
		if got, err := s.logs(name); terminal.ExitCode(err) != terminal.ExitUsage || got != "" || !strings.Contains(err.Error(), "there is no log of "+name) {
			t.Errorf("%s: %v, %q", name, err, got)
		}
	}
	for _, args := range [][]string{{"k3s", "--previous"}, {"k3s", "-c", "x"}, {"k3s", "--since", "2h"}, {}, {"k3s", "--pod", "a/b"}, {"--pod", "ab"}, {"--pod", "a/b/c"}, {"--pod", "/b"}} {
		if _, err := s.logs(args...); terminal.ExitCode(err) != terminal.ExitUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// collected is what a command has printed so far.
type collected struct{ cmdtest.Printed }

func (c *collected) until(t *testing.T, want string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		got := c.String()
		if got == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestALogFileIsFollowedOverItsRotations(t *testing.T) {
	s := fileStage{t, t.TempDir()}
	s.write("k3s.log", numbered(1, 3)+"line")
	ctx, cancel := context.WithCancel(t.Context())
	var out collected
	c := device.NewRoot(&device.Options{}, NewLogsCommand)
	c.SetOut(&out)
	c.SetArgs([]string{"--root", s.root, "logs", "k3s", "-f", "--tail", "1"})
	ended := make(chan error)
	go func() { ended <- c.ExecuteContext(ctx) }()
	out.until(t, numbered(3, 3))
	s.add("k3s.log", " 4\n")
	out.until(t, numbered(3, 4))
	s.write("k3s.log", "line 5\n") // truncated, as EVE's scripts do
	out.until(t, numbered(3, 5))
	if err := os.Rename(s.path("k3s.log"), s.path("k3s.log.1")); err != nil { // or renamed
		t.Fatal(err)
	}
	s.add("k3s.log.1", "line 6\n")
	s.write("k3s.log", "line 7\n")
	out.until(t, numbered(3, 7))
	cancel()
	if err := <-ended; !errors.Is(err, terminal.ErrInterrupted) {
		t.Error(err)
	}
}

func TestThePodThatIsNamedIsPrinted(t *testing.T) {
	asked := ""
	root := logsDevice(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/log"):
			asked = r.URL.Path + "?" + r.URL.RawQuery
			serveLogs(w, r)
		case strings.HasSuffix(r.URL.Path, "/namespaces/kube-system/pods/dns"):
			w.Header().Set("Content-Type", "application/json")
			run := func(name string) string {
				return fmt.Sprintf(`{"name":%q,"containerID":"containerd://%s","state":{"running":{"startedAt":"2026-05-03T06:00:00Z"}}}`, name, name)
			}
			_, _ = fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"dns","namespace":"kube-system","uid":"u"},"spec":{"containers":[{"name":"dns"},{"name":"side"}]},"status":{"containerStatuses":[%s,%s]}}`, run("dns"), run("side"))
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"kind":"pods","name":"other"}}`))
		}
	})
	s := fileStage{t, root}
	got, err := s.logs("--pod", "kube-system/dns", "-c", "dns", "--tail", "20", "--since", "2026-01-31")
	if err != nil || got != "2026-05-03T06:09:30Z log of dns\n2026-05-03T06:09:31Z end\n" || !strings.Contains(asked, "/namespaces/kube-system/pods/dns/log?") || !strings.Contains(asked, "tailLines=20") || !strings.Contains(asked, "sinceTime=2026-01-31") {
		t.Errorf("%v: %s\n%s", err, asked, got)
	}
	if got, err := s.logs("--pod", "kube-system/dns"); err != nil || strings.Count(got, "\n") != 4 || !strings.Contains(got, "dns/side 2026") {
		t.Errorf("%v: %s", err, got)
	}
	for want, args := range map[string][]string{
		"there is no such pod":  {"--pod", "kube-system/other"},
		`it has dns, side`:      {"--pod", "kube-system/dns", "-c", "x"},
		"there is no log of an": {"--pod", "kube-system/dns", "--previous"},
	} {
		if _, err := s.logs(args...); err == nil || !strings.Contains(err.Error(), want) || terminal.ExitCode(err) != terminal.ExitUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
}
