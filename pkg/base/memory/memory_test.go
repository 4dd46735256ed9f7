package memory

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/sirupsen/logrus"
)

// tree writes files below a directory.
func tree(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMemoryIsCollectedByTheLimitOfTheGroupUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	for name, test := range map[string]struct {
		environment map[string]string
		limit       string
		percent     int
		bytes       int64
	}{
		"no limit":                              {nil, "max", growth, math.MaxInt64},
		"a limit":                               {nil, "104857600", growth, 104857600 / 10 * 9},
		"one that is too low to live":           {nil, "8388608", growth, least},
		"a limit, and the environment's":        {map[string]string{"GOMEMLIMIT": "1GiB"}, "104857600", growth, math.MaxInt64},
		"a limit, and the environment's growth": {map[string]string{"GOGC": "200"}, "104857600", 100, 104857600 / 10 * 9},
	} {
		t.Run(name, func(t *testing.T) {
			percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
			t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}
			Tune(log, tree(t, map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": test.limit + "\n"}))
			if got := debug.SetMemoryLimit(-1); got != test.bytes {
				t.Errorf("the limit is %d, not %d", got, test.bytes)
			}
			if got := debug.SetGCPercent(100); got != test.percent {
				t.Errorf("collected at %d %%, not %d %%", got, test.percent)
			}
		})
	}
}

func TestTheLeastLimitOfTheControlGroupsHolds(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64 // 0: none
	}{
		{"version 2, own group", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "104857600\n"}, 104857600},
		{"version 2, the group above has less", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "104857600\n", "sys/fs/cgroup/a/memory.max": "4096\n"}, 4096},
		{"version 2, without a limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		{"version 1, in a container", map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/c\n3:memory:/docker/1\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "8192\n"}, 8192},
		{"version 1, with others in one directory", map[string]string{"proc/self/cgroup": "3:cpu,memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "8192\n"}, 8192},
		{"version 1, without a limit", map[string]string{"proc/self/cgroup": "3:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		{"a path that leads elsewhere", map[string]string{"proc/self/cgroup": "0::/../../x\n", "x/memory.max": "1\n"}, 0},
		{"numbers that are none", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "-5\n", "sys/fs/cgroup/memory.max": "99999999999999999999\n"}, 0},
		{"lines that are none", map[string]string{"proc/self/cgroup": "\n:\n0\n"}, 0},
		{"no such file", nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := Limit(tree(t, test.files))
			if ok != (test.want != 0) || ok && got != test.want {
				t.Errorf("limit %d, %v; want %d", got, ok, test.want)
			}
		})
	}
}
