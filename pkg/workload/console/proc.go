package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const (
	// maxSockets bounds what is read of one of the kernel's tables: 30000
	// sockets. Beyond, nothing is known of the port.
	maxSockets = 4 << 20
	// edgeview is what the kernel calls edgeview's process.
	edgeview = "edge-view"
	// The kernel's states of a socket that matter here.
	established = "01"
	listening   = "0A"
)

// portUse looks up whether a port is listened on or connected, without
// connecting: the proxy takes the first connection for its one client.
func portUse(proc string, port uint32) use {
	found := silent
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		is, err := inTable(filepath.Join(proc, table), port)
		switch {
		case is:
			return served
		case errors.Is(err, fs.ErrNotExist) && table == "net/tcp6": // a kernel without IPv6
		case err != nil:
			found = unknown
		}
	}
	return found
}

// inTable looks for the port in one table of sockets, in which those that
// listen come first.
func inTable(path string, port uint32) (bool, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	limited := &io.LimitedReader{R: f, N: maxSockets}
	lines := bufio.NewScanner(limited)
	suffix := fmt.Sprintf(":%04X", port)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		if len(field) > 3 && strings.HasSuffix(field[1], suffix) && (field[3] == listening || field[3] == established) {
			return true, nil
		}
	}
	if limited.N == 0 {
		return false, fmt.Errorf("%s is longer than %d bytes", path, maxSockets)
	}
	return false, lines.Err()
}

// edgeviewLives reports that the process is an edgeview, or that nobody can tell.
func edgeviewLives(proc string, pid int) bool {
	comm, err := readComm(filepath.Join(proc, strconv.Itoa(pid), "comm"))
	switch {
	case err == nil:
		return comm == edgeview
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		_, err := os.Stat(filepath.Join(proc, "net"))
		return err != nil // it is not the processes that are missing
	}
	return true
}

func readComm(path string) (string, error) {
	comm, err := safefile.Read(path, 64) // the kernel's longest has 15
	return strings.TrimSpace(string(comm)), err
}
