package health

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// limit is how much of something is in use.
type limit struct {
	what     string
	used     uint64
	most     uint64 // 0 for no limit, or one that is not known
	toChange string // the kernel's setting; "" for none
}

// lookAtLimits reads the kernel's limits below proc, and those of the agent.
func lookAtLimits(ctx context.Context, proc string, agent int) (limits []limit) {
	if used, most, ok := fileTable(proc); ok {
		limits = append(limits, limit{"open files of the machine", used, most, "fs.file-max"})
	}
	instances, watches, whole := inotify(ctx, proc)
	if most, err := number(filepath.Join(proc, "sys/fs/inotify/max_user_instances")); err == nil && whole {
		limits = append(limits, limit{"inotify instances of root", instances, most, "fs.inotify.max_user_instances"})
	}
	if most, err := number(filepath.Join(proc, "sys/fs/inotify/max_user_watches")); err == nil && whole {
		limits = append(limits, limit{"inotify watches of root", watches, most, "fs.inotify.max_user_watches"})
	}
	if agent > 0 {
		own := filepath.Join(proc, strconv.Itoa(agent))
		files, err := os.ReadDir(filepath.Join(own, "fd"))
		if most := openFiles(filepath.Join(own, "limits")); err == nil && most > 0 {
			limits = append(limits, limit{"open files of the agent", uint64(len(files)), most, ""})
		}
	}
	return limits
}

// fileTable is how many files the machine has open, and may have.
func fileTable(proc string) (used, most uint64, ok bool) {
	text, err := readSmall(filepath.Join(proc, "sys/fs/file-nr"))
	n, serr := fmt.Sscan(text, &used, new(uint64), &most)
	return used, most, err == nil && serr == nil && n == 3
}

func number(path string) (uint64, error) {
	text, err := readSmall(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// openFiles is a process's own limit, 0 for none that is known.
func openFiles(path string) (most uint64) {
	text, _ := readSmall(path) // then there is no such line
	for line := range strings.Lines(text) {
		if rest, is := strings.CutPrefix(line, "Max open files"); is {
			_, _ = fmt.Sscan(rest, &most) // "unlimited" leaves 0
		}
	}
	return most
}

// inotify counts what processes of root have; whole is false where not all could
// be counted in time.
func inotify(ctx context.Context, proc string) (instances, watches uint64, whole bool) {
	processes, err := os.ReadDir(proc)
	if err != nil {
		return 0, 0, false
	}
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		if ctx.Err() != nil {
			return instances, watches, false
		}
		dir := filepath.Join(proc, p.Name(), "fd")
		files, _ := os.ReadDir(dir) // of a process that has ended, or another user's
		for _, f := range files {
			target, _ := os.Readlink(filepath.Join(dir, f.Name()))
			if target != "anon_inode:inotify" && target != "inotify" {
				continue
			}
			instances++
			info, _ := readSmall(filepath.Join(proc, p.Name(), "fdinfo", f.Name()))
			watches += uint64(strings.Count(info, "inotify wd:"))
		}
	}
	return instances, watches, true
}
