package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

var (
	errGivenUp  = errors.New("given up")
	errNoReader = errors.New("write: nobody reads the output any more")
)

// Until writes to w until ctx is done. A write to a full pipe that nobody reads cannot be
// interrupted: it is given up then, and ends with the process.
func Until(ctx context.Context, w io.Writer) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		done, own := make(chan error, 1), bytes.Clone(b) // the caller uses its own again
		go func() {
			_, err := w.Write(own)
			done <- err
		}()
		select {
		case err := <-done:
			return len(b), err
		case <-ctx.Done():
			return 0, errGivenUp
		}
	})
}

type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// whileRead is done, too, when SIGPIPE comes or nobody reads w any more. The next write alone
// would notice that late: the next change may be hours away.
func whileRead(ctx context.Context, w io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	file, ok := w.(*os.File)
	if !ok {
		return ctx, cancel
	}
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE) // for good: a write that was given up must not kill the process at its end
	go func() {
		select {
		case <-broken:
			cancel()
		case <-ctx.Done():
		}
	}()
	go func() {
		for ctx.Err() == nil {
			ends := []unix.PollFd{{Fd: int32(file.Fd())}} //nolint:gosec // no events: it waits for errors
			if n, err := unix.Poll(ends, 1000); n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				cancel()
			}
		}
	}()
	return ctx, cancel
}
