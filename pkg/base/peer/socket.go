package peer

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is what fits sockaddr_un beside its final zero byte.
const maxSocketPath = 107

// Reach calls f with a path to the socket at path that fits a socket address: one
// that is too long leads through the open directory, so that a root may lie
// anywhere.
func Reach(path string, f func(short string) error) error {
	if len(path) <= maxSocketPath {
		return f(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// Dial connects to the stream socket at path.
func Dial(ctx context.Context, path string) (conn net.Conn, err error) {
	err = Reach(path, func(short string) error {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}
