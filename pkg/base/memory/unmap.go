package memory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// Unmap unmaps the pages of the program's own file. More than half of them are used at the
// start only, when each package sets up its types and tables. What is used again is mapped
// again, from the page cache: it keeps the file while memory is free, so the disk is not read
// for it. Unmap returns how many bytes were mapped. root is where /proc is, "/" outside of tests.
func Unmap(root string) (resident int64, err error) {
	program, err := os.Readlink(filepath.Join(root, "proc/self/exe"))
	if err != nil {
		return 0, fmt.Errorf("find the program: %w", err)
	}
	maps, err := safefile.Read(filepath.Join(root, "proc/self/smaps"), safefile.Small)
	if err != nil {
		return 0, fmt.Errorf("list what is mapped: %w", err)
	}
	for _, m := range unwritten(maps, program) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.begin, m.end-m.begin, unix.MADV_DONTNEED); errno != 0 {
			return resident, os.NewSyscallError("madvise", errno)
		}
		resident += m.resident
	}
	return resident, nil
}

// mapping is a part of a file in memory, of which so many bytes are there.
type mapping struct {
	begin, end uintptr
	resident   int64
}

// unwritten finds, in the text of proc/self/smaps, the mappings of a file that are as the file is: they
// cannot be written, and no page of them was, as a linker or a debugger does.
func unwritten(smaps []byte, file string) []mapping {
	var found []mapping
	var last mapping
	read := false
	for line := range strings.Lines(string(bytes.TrimSpace(smaps))) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		if begin, end, ok := addresses(fields[0]); ok { // begin-end rights offset device inode path
			_, path, _ := strings.Cut(line, " /")
			read = (fields[1] == "r-xp" || fields[1] == "r--p") && "/"+strings.TrimSpace(path) == file
			last = mapping{begin: begin, end: end}
			continue
		}
		kB, err := strconv.ParseInt(fields[1], 10, 64)
		switch {
		case err != nil || !read:
		case fields[0] == "Rss:":
			last.resident = kB << 10
		case fields[0] == "Anonymous:" && kB == 0:
			found = append(found, last)
		}
	}
	return found
}

// addresses parses begin-end in hexadecimal.
func addresses(text string) (begin, end uintptr, ok bool) {
	from, to, ok := strings.Cut(text, "-")
	b, err := strconv.ParseUint(from, 16, strconv.IntSize)
	if err != nil || !ok {
		return 0, 0, false
	}
	e, err := strconv.ParseUint(to, 16, strconv.IntSize)
	return uintptr(b), uintptr(e), err == nil && b < e
}
