package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ReadAnswer reads the line with which somebody answers, without blanks around it.
func ReadAnswer(ctx context.Context, in io.Reader) (string, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() { // a read cannot be interrupted; it ends with the process
		text, err := bufio.NewReader(io.LimitReader(in, 1<<10)).ReadString('\n')
		read <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", errors.New("interrupted: nothing was changed")
	case l := <-read:
		if l.err != nil && !errors.Is(l.err, io.EOF) {
			return "", fmt.Errorf("read the answer: %w", l.err)
		}
		return strings.TrimSpace(l.text), nil
	}
}
