// Package memory sets how much memory the agent takes before it collects garbage.
package memory

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// growth is how much of the live memory may be garbage, in percent. It is half of the
// runtime's default: the agent allocates little, and memory is what devices lack.
const growth = 50

// least is below which no limit is set: with less than it needs the agent would do
// nothing but collect garbage. It has an anonymous 30 MB with 300 applications.
const least = 48 << 20

// Tune sets growth, and the soft limit of the runtime to nine tenths of what the control
// groups of the process may take, which others may share. GOGC and GOMEMLIMIT in the environment hold instead.
// root is where /proc and /sys are, "/" outside of tests.
func Tune(log logrus.FieldLogger, root string) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	if limit, ok := Limit(root); ok && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(limit/10*9, least))
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
	lowest := int64(math.MaxInt64)
	for line := range bytes.Lines(groups) {
		parts := bytes.SplitN(bytes.TrimSpace(line), []byte(":"), 3) // number, controllers, path
		if len(parts) != 3 {
			continue
		}
		top, file := "sys/fs/cgroup", "memory.max"
		switch controllers := string(parts[1]); {
		case controllers == "":
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			top, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// In a container the path may be the host's: what is not there is passed over.
		for dir := filepath.Join("/", string(parts[2])); ; dir = filepath.Dir(dir) {
			content, err := safefile.Read(filepath.Join(root, top, dir, file), safefile.Small)
			if err == nil {
				if n, err := strconv.ParseInt(string(bytes.TrimSpace(content)), 10, 64); err == nil && n > 0 {
					lowest = min(lowest, n)
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return lowest, lowest < unlimited
}

// unlimited is more than any device has: version 1 says so where there is no limit, in
// whole pages below the largest number.
const unlimited = 1 << 60
