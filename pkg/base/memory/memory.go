// Package memory sets how much memory the agent takes before it collects garbage.
package memory

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// growth is how much of the live memory may be garbage, in percent. It is half of the
// runtime's default: the agent allocates little, and memory is what devices lack.
const growth = 50

// Tune sets growth, and the soft limit of the runtime to nine tenths of what the control
// groups of the process may take. GOGC and GOMEMLIMIT in the environment hold instead.
// root is where /proc and /sys are, "/" outside of tests.
func Tune(log logrus.FieldLogger, root string) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	if limit, ok := Limit(root); ok && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 10 * 9)
		log.WithField("bytes", limit).Info("the control group limits memory")
	}
}

// Limit is the least of the limits on the memory of this process' control groups, in
// bytes; false where there is none. See cgroups(7) and the kernel's documents
// admin-guide/cgroup-v2.rst and admin-guide/cgroup-v1/memory.rst.
func Limit(root string) (int64, bool) {
	groups, err := safefile.Read(filepath.Join(root, "proc/self/cgroup"), safefile.Small)
	if err != nil {
		return 0, false
	}
	least := int64(math.MaxInt64)
	for line := range bytes.Lines(groups) {
		parts := bytes.SplitN(bytes.TrimSpace(line), []byte(":"), 3) // number, controllers, path
		if len(parts) != 3 {
			continue
		}
		top, file := "sys/fs/cgroup", "memory.max"
		switch controllers := string(parts[1]); controllers {
		case "":
		case "memory":
			top, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// In a container the path may be the host's: what is not there is passed over.
		for dir := filepath.Join("/", string(parts[2])); ; dir = filepath.Dir(dir) {
			content, err := safefile.Read(filepath.Join(root, top, dir, file), safefile.Small)
			if err == nil {
				if n, err := strconv.ParseInt(string(bytes.TrimSpace(content)), 10, 64); err == nil && n > 0 {
					least = min(least, n)
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return least, least < unlimited
}

// unlimited is more than any device has: version 1 says so where there is no limit, in
// whole pages below the largest number.
const unlimited = 1 << 60
