package memory

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// entry is a mapping as proc/self/smaps has it.
func entry(addresses, rights, path, rss, anonymous string) string {
	return addresses + " " + rights + " 00000000 fe:01 131 " + path + "\nSize: 100 kB\nRss: " + rss + " kB\nAnonymous: " + anonymous + " kB\nVmFlags: rd mr mw\n"
}

func TestOnlyWhatIsAsTheFileIsIsUnmapped(t *testing.T) {
	const program = "/opt/a program"
	for name, test := range map[string]struct {
		smaps string
		want  []mapping
	}{
		"text":                     {entry("00401000-00403000", "r-xp", program, "8", "0"), []mapping{{0x401000, 0x403000, 8 << 10}}},
		"constants":                {entry("00401000-00403000", "r--p", program, "4", "0"), []mapping{{0x401000, 0x403000, 4 << 10}}},
		"not variables":            {entry("00401000-00403000", "rw-p", program, "8", "0"), nil},
		"not what a linker wrote":  {entry("00401000-00403000", "r--p", program, "8", "4"), nil},
		"not what is shared":       {entry("00401000-00403000", "r--s", program, "8", "0"), nil},
		"not another file":         {entry("00401000-00403000", "r-xp", "/lib/ld.so", "8", "0"), nil},
		"not one with such an end": {entry("00401000-00403000", "r-xp", "/x"+program, "8", "0"), nil},
		"not what has no file":     {entry("00401000-00403000", "r--p", "", "8", "0"), nil},
		"not the one after it": {
			entry("00401000-00403000", "r-xp", program, "8", "0") + entry("00403000-00405000", "rw-p", "", "8", "0"),
			[]mapping{{0x401000, 0x403000, 8 << 10}},
		},
		"nothing of another form": {"00401000 r-xp " + program + "\nAnonymous: 0 kB\n00403000-00401000 r-xp 0 0 0 " + program + "\nAnonymous: 0 kB\n", nil},
	} {
		if got := unwritten([]byte(test.smaps), program); !slices.Equal(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// fileKB is how much of files this process has in memory.
func fileKB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	kB, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kB
}

func TestAProgramRunsOnWithoutThePagesOfItsStart(t *testing.T) {
	before := fileKB(t)
	resident, err := Unmap("/")
	if err != nil || resident <= 0 {
		t.Fatalf("%d bytes, %v", resident, err)
	}
	if after := fileKB(t); after >= before {
		t.Errorf("%d kB of files are in memory, %d before", after, before)
	}
}

func TestNothingIsUnmappedThatCannotBeRead(t *testing.T) {
	root := t.TempDir()
	if n, err := Unmap(root); n != 0 || err == nil {
		t.Errorf("without /proc: %d, %v", n, err)
	}
	dir := filepath.Join(root, "proc/self")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/opt/p", filepath.Join(dir, "exe")); err != nil {
		t.Fatal(err)
	}
	if n, err := Unmap(root); n != 0 || err == nil {
		t.Errorf("without a list: %d, %v", n, err)
	}
}
