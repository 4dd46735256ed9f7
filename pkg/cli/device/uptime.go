package device

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// Uptime is the time since the boot, suspended time included. Nobody sets that
// clock, and it begins anew with each boot.
func Uptime() time.Duration {
	var t unix.Timespec
	// It fails for a clock or an address that does not exist, neither of which this is.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}

// bootIDFile is where the kernel names the boot; a kubelet reads the same into
// its Node's nodeInfo.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// ReadBootID names this boot. A file below --root stands for a machine of its
// own and comes first; where there is none it is this machine's boot. With an
// error it is "": nobody can tell then whether the device has rebooted but by
// the uptime, which is shorter after a reboot than what was noted before it. To
// take every start for a reboot would end a drain, and let another node go down
// beside this one, because an agent was restarted.
func ReadBootID(file string) (string, error) {
	content, err := safefile.Read(file, safefile.Small)
	if errors.Is(err, os.ErrNotExist) {
		file = bootIDFile
		content, err = safefile.Read(file, safefile.Small)
	}
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	id := strings.TrimSpace(string(content))
	if id == "" {
		return "", fmt.Errorf("read boot id: %s is empty", file)
	}
	return id, nil
}
