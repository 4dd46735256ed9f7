package statusserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

func TestBadFilesAreToldAndHarmNothingElse(t *testing.T) {
	c := disk(t)
	at := func(name string) string { return filepath.Join(c.TopicDirs[0], name) }
	put(t, at("zedkube/EdgeNodeClusterStatus/global.json"), `{"ClusterInterface":`)
	put(t, at("domainmgr/DomainStatus/"+appUUID+".json"), strings.Repeat(" ", maxTopicFile)+"{}")
	fifo := at("domainmgr/DomainMetric/" + appUUID + ".json")
	if err := errors.Join(os.Remove(fifo), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	put(t, at("zedkube/ENClusterAppStatus/"+appUUID+".json"), `[1]`)
	got := c.collect(t.Context(), appUUID)
	for key, want := range map[string]string{
		"zedkube-EdgeNodeClusterStatus": "decode: unexpected end", "domainmgr-DomainStatus": "it is longer than",
		"domainmgr-DomainMetric": "not a regular file", "zedkube-ENClusterAppStatus": "decode: json",
	} {
		found := false
		for _, e := range got.AppInfo {
			found = found || e.Key == key && !e.Value.Exist && strings.Contains(e.Value.Errors, want)
		}
		if !found {
			t.Errorf("%s is not told as %q", key, want)
		}
	}
	if len(got.AppInfo) != 18 {
		t.Errorf("got %s", keys(got))
	}
}

func TestAFifoInThePlaceOfADirectoryIsNotWaitedFor(t *testing.T) {
	c := disk(t)
	dir := filepath.Join(c.TopicDirs[0], "zedagent/VolumeConfig")
	if err := errors.Join(os.RemoveAll(dir), syscall.Mkfifo(dir, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, e := range c.collect(t.Context(), appUUID).AppInfo {
		if e.Key == "zedagent-VolumeConfig" && e.Value.Exist {
			t.Errorf("got %+v", e)
		}
	}
}

func TestOfSeveralFilesTheFirstByNameIsTold(t *testing.T) {
	c := disk(t)
	for n := range 9 {
		put(t, filepath.Join(c.TopicDirs[0], "zedagent/VolumeConfig", fmt.Sprintf("%s#%d.json", volumeUUID, 1+n)), `{"DisplayName":"later"}`)
	}
	for _, e := range c.collect(t.Context(), appUUID).AppInfo {
		if strings.HasPrefix(e.Key, "zedagent-VolumeConfig") && e.Value.Name != "disk" {
			t.Errorf("told of %q", e.Value.Name)
		}
	}
}

func TestFrontOfAUUIDFindsTheOneApplication(t *testing.T) {
	c := disk(t)
	// Another application with the same front, whose other files come first by name.
	twin := filepath.Join(c.TopicDirs[0], "zedmanager/DomainConfig", "b3e2f000-0000-4000-8000-000000000000.json")
	put(t, twin, `{"DisplayName":"another"}`)
	got := c.collect(t.Context(), "b3e2f")
	for _, e := range got.AppInfo {
		if strings.HasPrefix(e.Key, "zedmanager-DomainConfig") && e.Value.Name != "Panel" {
			t.Errorf("told of %q", e.Value.Name)
		}
	}
	if len(got.AppInfo) != 18 {
		t.Errorf("got %s", keys(got))
	}
}

func TestPersistentTopicsAreFoundToo(t *testing.T) {
	c := disk(t, "zedagent/EdgeNodeInfo/global.json")
	put(t, filepath.Join(c.TopicDirs[1], "zedagent/EdgeNodeInfo/global.json"), `{"DeviceName":"Kept"}`)
	put(t, filepath.Join(c.TopicDirs[1], "zedkube/KubeLeaderElectInfo/global.json"), `{"LeaderIdentity":"old"}`)
	got := c.collect(t.Context(), "")
	if got.Hostname != "Kept" || got.AppInfo[2].Value.Name != "n2" {
		t.Errorf("got %+v", got)
	}
}

func TestEndOfALogIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("x", 5000)
	rows := map[string]struct {
		content string
		want    []string
	}{
		"empty":                         {"", []string{""}},
		"shorter than asked for":        {"a\nb\n", []string{"a", "b"}},
		"no newline at the end":         {"a\nb", []string{"a", "b"}},
		"longer than asked for":         {"0\n1\n2\n3\n4\n5\n", []string{"3", "4", "5"}},
		"long lines":                    {strings.Repeat(long+"\n", 10), []string{long, long, long}},
		"one endless word":              {strings.Repeat("x", 3*maxTail), []string{""}},
		"bytes that are no text":        {"a\xff\xfeb\n", []string{"a?b"}},
		"a word that began long before": {strings.Repeat("secret", maxTail) + " tail\n", []string{"tail"}},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			put(t, path, r.content)
			got, err := tail(path, 3)
			if diff := cmp.Diff(r.want, got); err != nil || diff != "" {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := tail(filepath.Dir(path), 3); !errors.Is(err, safefile.ErrNotRegular) {
		t.Errorf("a directory: %v", err)
	}
}
