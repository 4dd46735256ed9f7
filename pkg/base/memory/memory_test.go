package memory

import (
	"os"
	"path/filepath"
	"testing"
)

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
		{"version 1, without a limit", map[string]string{"proc/self/cgroup": "3:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		{"a path that leads elsewhere", map[string]string{"proc/self/cgroup": "0::/../../x\n", "x/memory.max": "1\n"}, 0},
		{"numbers that are none", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "-5\n", "sys/fs/cgroup/memory.max": "99999999999999999999\n"}, 0},
		{"lines that are none", map[string]string{"proc/self/cgroup": "\n:\n0\n"}, 0},
		{"no such file", nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, content := range test.files {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, ok := Limit(root)
			if ok != (test.want != 0) || ok && got != test.want {
				t.Errorf("limit %d, %v; want %d", got, ok, test.want)
			}
		})
	}
}
