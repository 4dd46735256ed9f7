//go:build soak && failpoints

package keptfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/seeds"
)

const victim = "KEPTFILE_KILLED_IN" // names the directory in which a process that kills itself keeps a file

// kept are files of components that no scene has come to, by their kill points.
var kept = []string{
	"statusserver/write /persist/zedkube/all-prove", "statusserver/write /persist/zedkube/peers-with-tls",
	"k3sconfig/write /persist/vault/k3s-user-override.yaml.former", "k3sconfig/remove /persist/vault/k3s-user-override.yaml.former",
	"localserver/write /run/zedkube/page-token.json",
}

func TestSoakAKeptFileIsWholeWhereverTheAgentDies(t *testing.T) {
	if path := os.Getenv(victim); path != "" {
		want := Desired{Do: Write, Content: "new"}
		if strings.HasSuffix(path, ".goes") {
			path, want = strings.TrimSuffix(path, ".goes"), Desired{Do: Remove}
		}
		if _, err := (File{Path: path, Name: "a file"}).Keep(want); err != nil {
			t.Error(err)
		}
		return
	}
	for range seeds.Each(t, 1) {
		for _, effect := range kept {
			for _, after := range []bool{false, true} {
				dies(t, effect, after)
			}
		}
	}
}

// dies has a process keep a file until it dies, and then another one.
func dies(t *testing.T, effect string, after bool) {
	t.Helper()
	do, name, _ := strings.Cut(effect[strings.Index(effect, "/")+1:], " ")
	path := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("former"), 0o600); err != nil {
		t.Fatal(err)
	}
	point, found, file, want := effect+"/before", "former", path, Desired{Do: Write, Content: "new"}
	if after {
		point, found = effect+"/after", "new"
	}
	if do == "remove" {
		file, want = path+".goes", Desired{Do: Remove}
		if after {
			found = ""
		}
	}
	agent.DiesAt(t, "TestSoakAKeptFileIsWholeWhereverTheAgentDies", point, victim+"="+file)
	seeds.Killed(t, point)
	if content, _ := os.ReadFile(path); string(content) != found {
		t.Errorf("%s: the file is %q, not %q", point, content, found)
	}
	if _, err := (File{Path: path, Name: "a file"}).Keep(want); err != nil {
		t.Errorf("%s: %v", point, err)
	}
	content, _ := os.ReadFile(path)
	left, _ := os.ReadDir(filepath.Dir(path))
	if string(content) != want.Content || len(left) > 1 {
		t.Errorf("%s: kept again it is %q, beside %d files", point, content, len(left)-1)
	}
}
