package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errNoReader ends a command as SIGPIPE ends any other program: without a word, and with the
// code that a shell gives for it.
var errNoReader = ExitWith(128+int(syscall.SIGPIPE), errors.New("write: nobody reads the output any more"))

// ErrInterrupted ends what is watched or followed as it ends all other commands that are interrupted, so
// that a shell does not go on after them. Who typed ^C need not be told.
var ErrInterrupted = ExitWith(ExitUsage, errors.New("interrupted"))

// lastWrite is for one who reads to get the whole of the last message.
const lastWrite = time.Second / 4

// Until writes to w until ctx is done. A write to a full pipe that nobody reads cannot be
// interrupted: it is given up a moment later, and ends with the process.
func Until(ctx context.Context, w io.Writer) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		if len(b) == 0 {
			return 0, nil
		}
		done, own := make(chan error, 1), bytes.Clone(b) // the caller uses its own again
		go func() {
			_, err := w.Write(own)
			done <- err
		}()
		select {
		case err := <-done:
			return len(b), err
		case <-ctx.Done():
		}
		select {
		case err := <-done:
			return len(b), err
		case <-time.After(lastWrite):
			return 0, ctx.Err()
		}
	})
}

type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// WhileRead is done, too, when nobody reads w any more. The next write alone would notice that
// late: the next change may be hours away. SIGPIPE does not tell: a broken connection to the API
// server raises it as well.
func WhileRead(ctx context.Context, w io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if file, ok := w.(*os.File); ok {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // for good: writes fail, those that were given up, too
		// No events: it waits for errors. The file may be closed before that ends.
		ends := []unix.PollFd{{Fd: int32(file.Fd())}} //nolint:gosec // a descriptor
		go func() {
			for ctx.Err() == nil {
				n, err := unix.Poll(ends, 1000)
				if n > 0 {
					cancel()
				} else if err != nil && !errors.Is(err, unix.EINTR) {
					return // the next write has to notice
				}
			}
		}()
	}
	return ctx, cancel
}
