package k3supdate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const maxFiles = 64 // of a directory, as k3scerts reads

// kept has a directory for the last reset, named by its Unix time: there are the files that were
// moved aside, with their names and directories.
const kept = "server/tls-before-reset"

// layout is what k3s has in each directory of a server: certificates that it makes again where they
// are missing, for the keys that stay.
var layout = []struct{ dir, leaves, others string }{
	{
		"server/tls",
		"client-admin client-auth-proxy client-controller client-k3s-cloud-controller client-k3s-controller client-kube-apiserver client-kube-proxy client-scheduler client-supervisor serving-kube-apiserver",
		"server-ca client-ca request-header-ca server-ca.nochain client-ca.nochain request-header-ca.nochain",
	},
	{"server/tls/etcd", "client server-client peer-server-client", "server-ca peer-ca server-ca.nochain peer-ca.nochain"},
	{"server/tls/kube-scheduler", "kube-scheduler", ""},
	{"server/tls/kube-controller-manager", "kube-controller-manager", ""},
}

// LeafFiles are the certificates of k3s on this disk.
type LeafFiles struct {
	Dirs []string // where k3s has its files; the first that is there counts
}

func (l LeafFiles) dir() (dir string, err error) {
	for _, dir = range l.Dirs {
		if _, err = os.Stat(dir); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("find the certificates of k3s: %w", cmp.Or(err, fs.ErrNotExist))
}

// find lists the files that may be moved aside, below dir. A worker has none: its
// certificates come from a server at each start.
func (l LeafFiles) find() (dir string, files []string, err error) {
	if dir, err = l.dir(); err != nil {
		return "", nil, err
	}
	for _, part := range layout {
		names, err := safefile.Names(filepath.Join(dir, part.dir), maxFiles)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("find the certificates of k3s: %w", err)
		}
		for _, file := range names {
			name, is := strings.CutSuffix(file, ".crt")
			switch {
			case !is, slices.Contains(strings.Fields(part.others), name):
			case slices.Contains(strings.Fields(part.leaves), name):
				files = append(files, filepath.Join(part.dir, file))
			default:
				return "", nil, fmt.Errorf("file %s is not one that zedkube knows", filepath.Join(dir, part.dir, file))
			}
		}
	}
	return dir, files, nil
}

// Files lists the certificates that a reset with force moves aside; none where the layout is not known.
func (l LeafFiles) Files() []string {
	_, files, _ := l.find()
	return files
}

// Unknown says why no file may be moved, "" where all of them are known.
func (l LeafFiles) Unknown(server bool) string {
	_, files, err := l.find()
	if err == nil && server && len(files) == 0 {
		err = errors.New("a server has some, and there are none")
	}
	if err != nil {
		return "the layout of the certificates of k3s is not the known one: " + err.Error()
	}
	return ""
}

// Aside moves the certificates aside for the reset of that time, and removes those of a former
// one. It may be called again for what is left.
func (l LeafFiles) Aside(reset time.Time) error {
	dir, files, err := l.find()
	if err != nil {
		return err
	}
	to := keptOf(dir, reset)
	if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
		old := filepath.Join(dir, kept)
		if err := failpoint.Do("remove", old, func() error { return os.RemoveAll(old) }); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := move(filepath.Join(dir, file), filepath.Join(to, file)); err != nil {
			return err
		}
	}
	return nil
}

// Back puts the certificates back that were moved aside for that reset.
func (l LeafFiles) Back(reset time.Time) error {
	dir, err := l.dir()
	if err != nil {
		return err
	}
	for _, part := range layout {
		for name := range strings.FieldsSeq(part.leaves) {
			file := filepath.Join(part.dir, name+".crt")
			to := filepath.Join(dir, file)
			err := failpoint.Do("restore", to, func() error { return os.Rename(filepath.Join(keptOf(dir, reset), file), to) })
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	left := keptOf(dir, reset)
	return failpoint.Do("remove", left, func() error { return os.RemoveAll(left) })
}

// Kept reports whether certificates are aside for that reset.
func (l LeafFiles) Kept(reset time.Time) bool {
	dir, err := l.dir()
	if err == nil {
		_, err = os.Lstat(keptOf(dir, reset))
	}
	return err == nil
}

func keptOf(dir string, reset time.Time) string {
	return filepath.Join(dir, kept, strconv.FormatInt(reset.Unix(), 10))
}

func move(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return failpoint.Do("move", from, func() error { return os.Rename(from, to) })
}
