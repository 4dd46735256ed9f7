//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// host is what becomes of the namespaces that the first process finds itself in.
type host struct {
	name  string
	disk  string   // its var is the host's
	over  string   // each file in it is laid over the one of the same path
	ready string   // the file that says our process id outside, when all is done
	keep  []string // directories that stay what they are, wherever they are
}

// runInit makes the namespaces of this process a host and then waits for the
// end, which is that of all processes there. Orphans are nobody's sorrow.
func runInit(args []string) error {
	var h host
	flags := flag.NewFlagSet("init", flag.ContinueOnError)
	flags.StringVar(&h.name, "name", "", "host name")
	flags.StringVar(&h.disk, "disk", "", "directory that holds the host's /var")
	flags.StringVar(&h.over, "over", "", "directory of the files that replace others")
	flags.StringVar(&h.ready, "ready", "", "file to write when the host is there")
	if err := flags.Parse(args); err != nil {
		return err
	}
	h.keep = flags.Args()
	signal.Ignore(syscall.SIGCHLD) // so the kernel buries the dead
	end := told()
	if err := h.build(); err != nil {
		return err
	}
	<-end
	return nil
}

func (h host) build() error {
	// This /proc is still that of who started us, and knows us by our number there.
	outside, err := os.Readlink("/proc/self")
	if err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", 0); err != nil {
		return err
	}
	if err := h.cover(); err != nil {
		return err
	}
	if err := h.replace(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(h.name)); err != nil {
		return fmt.Errorf("name the host: %w", err)
	}
	// The kubelet wants to see the mounts that containers make.
	if err := mount("", "/", "", unix.MS_SHARED|unix.MS_REC); err != nil {
		return err
	}
	if err := os.WriteFile(h.ready+".tmp", []byte(outside), 0o600); err != nil {
		return err
	}
	return os.Rename(h.ready+".tmp", h.ready)
}

// cover gives the host a /var and a /run of its own. What shall stay and lies
// below comes back in its old place.
func (h host) cover() error {
	kept := map[string]string{}
	for _, dir := range h.keep {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("keep %s: %w", dir, err)
		}
		defer unix.Close(fd)
		kept[dir] = fmt.Sprintf("/proc/self/fd/%d", fd)
	}
	err := errors.Join(
		mount(filepath.Join(h.disk, "var"), "/var", "", unix.MS_BIND),
		mount("tmpfs", "/run", "tmpfs", 0),
	)
	if err != nil {
		return err
	}
	for dir, old := range kept {
		if _, err := os.Stat(dir); err == nil {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := mount(old, dir, "", unix.MS_BIND); err != nil {
			return err
		}
	}
	return nil
}

// replace lays files over those of the machine, which all hosts would share.
func (h host) replace() error {
	return filepath.WalkDir(h.over, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return mount(path, path[len(h.over):], "", unix.MS_BIND)
	})
}

func mount(what, where, kind string, flags uintptr) error {
	if err := unix.Mount(what, where, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %q at %s: %w", what, where, err)
	}
	return nil
}
