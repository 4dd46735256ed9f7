package golden

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatChanceMadeIsMaskedAndNothingElse(t *testing.T) {
	for text, want := range map[string]string{
		"cam-a6fbd-0-zkd89 runs on node-2 for 1m3s":              "cam-a6fbd-0-RANDOM runs on node-2 for SPAN\n",
		"at 2026-11-21T22:48:44.33Z, 06:41:17Z":                  "at TIME, TIME\n",
		"  https://127.3.2.1:16443, 10.42.4.1 and 192.0.2.2  \n": "  https://ADDRESS:PORT, ADDRESS and 192.0.2.2\n",
		"NAME      N\nx    7%     12Mi  0B   17Gi":               "NAME  N\nx  N%  SIZE  SIZE  SIZE\n",
		`    "id": "isp5-1", "took": 77, "Restarts": 3`:          "    \"id\": \"ID\", \"took\": N, \"Restarts\": 3\n",
		"3 of 5 pods, 2 masters, attempt 1":                      "3 of 5 pods, 2 masters, attempt 1\n",
		"zedkube devel, Kubernetes v1.34.4+k3s1, process 4711":   "zedkube devel, Kubernetes VERSION, process PID\n",
		"430d16199ea4529a493a2fc60814c6b0.json, 50 files in a":   "HASH.json, N files in a\n",
	} {
		if got := Steady(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestAFileThatDiffersOrIsMissingIsTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "test/golden")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := Check("status", "all is well\n"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if err := Write("status", "all is well\n"); err != nil {
		t.Fatal(err)
	}
	if err := Check("status", "all is well\n"); err != nil {
		t.Error(err)
	}
	if err := Check("status", "all is lost\n"); err == nil || !strings.Contains(err.Error(), "all is lost") {
		t.Errorf("what differs: %v", err)
	}
}
