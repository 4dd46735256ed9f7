package kubeapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubelet"
	"github.com/zedkube/zedkube/types"
)

var keptPod = types.Pod{Namespace: access.Namespace, Name: "web-1", UID: "7e0f", NodeName: "n1"}

// keptLogs serves files of a container as a kubelet does.
func keptLogs(t *testing.T, files map[string]string) *Client {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "pods/eve-kube-app_web-1_7e0f/c")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, _ = io.WriteString(w, text)
			_ = w.Close()
			text = b.String()
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	serve := http.StripPrefix("/logs/", http.FileServer(http.Dir(root)))
	return running(t, func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); accept != "*/*" { // kubelets say so, too
			http.Error(w, accept, http.StatusNotAcceptable)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

func TestWhichFilesAKubeletKeepsOfALog(t *testing.T) {
	c := keptLogs(t, map[string]string{
		"0.log": "", "0.log.20261122-102030.gz": "", "1.log.20261122-103000": "", "1.log": "", "10.log": "",
		"1.log.20261122-102959": "", "1.log.20261122-102959.gz": "", "1.log.20261122-102930": "", "1.log.20261122-102930.tmp": "",
		"9999999999.log": "", "x.log": "", "0.log.evil": "", "<a>.log": "",
	})
	files, err := c.LogFiles(t.Context(), askedNode, keptPod, "c")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	want := "0.log.20261122-102030.gz 0.log 1.log.20261122-102930 1.log.20261122-102959.gz 1.log.20261122-103000 1.log 10.log"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if f := files[3]; f.Run != 1 || !f.Rotated || files[5].Rotated || files[6].Run != 10 {
		t.Errorf("%+v", files)
	}
	if _, err := c.LogFiles(t.Context(), askedNode, keptPod, "other"); !errors.Is(err, types.ErrNoLog) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestAKeptFileReadsAsTheLog(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	text := "2026-11-22T10:20:30.000000001Z stdout F one\n" +
		"2026-11-22T10:20:31Z stderr P two, \n2026-11-22T10:20:32Z stderr P and two, \n2026-11-22T10:20:33Z stderr F its end\n" +
		"2026-11-22T10:20:34Z stdout F \n" +
		"2026-11-22T10:20:35Z stdout F:x " + long + "\n" +
		"2026-11-22T10:20:36Z stdout F  half"
	want := "2026-11-22T10:20:30.000000001Z one\n" +
		"2026-11-22T10:20:31Z two, and two, its end\n" +
		"2026-11-22T10:20:34Z \n" +
		"2026-11-22T10:20:35Z " + long + "\n" +
		"2026-11-22T10:20:36Z  half"
	c := keptLogs(t, map[string]string{"0.log.20261122-102030": text, "0.log.20261122-102029.gz": text, "0.log.20261122-102028": "what is this\n"})
	for _, name := range []string{"0.log.20261122-102030", "0.log.20261122-102029.gz"} {
		body, err := c.LogFile(t.Context(), askedNode, keptPod, "c", types.LogFile{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(iotest.OneByteReader(body))
		if string(got) != want || err != nil {
			t.Errorf("%s: %.300q, %v", name, got, err)
		}
		_ = body.Close()
	}
	body, err := c.LogFile(t.Context(), askedNode, keptPod, "c", types.LogFile{Name: "0.log.20261122-102028"})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); len(got) > 0 && !errors.Is(err, kubelet.ErrNoCRI) {
		t.Errorf("a file of another kind: %q, %v", got, err)
	}
	if _, err := c.LogFile(t.Context(), askedNode, keptPod, "c", types.LogFile{Name: "0.log.20261122-102027"}); !errors.Is(err, types.ErrNoLog) {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestAKubeletThatKeepsItsFilesForItself(t *testing.T) {
	for code, want := range map[int]bool{403: true, 404: true, 405: true, 500: false, 503: false} {
		c := running(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) })
		if _, err := c.LogFiles(t.Context(), askedNode, keptPod, "c"); err == nil || errors.Is(err, types.ErrNoLog) != want {
			t.Errorf("HTTP %d: %v", code, err)
		}
	}
}
