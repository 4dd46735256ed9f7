// Package terminal is how all commands print: what a terminal can do, screens and
// tables that fit it, the forms of -o, watching, help, and exit codes. It knows no
// device and no command.
package terminal

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Terminal is where output goes, and what that can do.
type Terminal struct {
	io.Writer
	Fd     int // -1 for no terminal
	Live   bool
	Colour bool
	Typed  <-chan rune // the keys that are pressed; nil for those of the keyboard
}

// Of finds out what out can do. Colour and a live screen are for
// terminals that obey, which a "dumb" one does not.
func Of(out io.Writer) Terminal {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Terminal{Writer: out, Fd: -1}
	}
	able := cmp.Or(os.Getenv("TERM"), "dumb") != "dumb"
	return Terminal{Writer: out, Fd: int(f.Fd()), Live: able, Colour: able && os.Getenv("NO_COLOR") == ""}
}

// The size of a terminal that does not tell, as over a serial line; and where
// there is none lines stay whole, for those who search them.
const (
	usualWidth  = 80
	usualHeight = 24
	wholeLines  = 10000
)

// Size is asked for at each drawing: windows change.
func (t Terminal) Size() (width, height int) {
	if t.Fd < 0 {
		return wholeLines, usualHeight
	}
	width, height, err := term.GetSize(t.Fd)
	if err != nil || width < 20 || height < 4 {
		return usualWidth, usualHeight
	}
	return width, height
}

// Confirm asks a question that only want answers. ask is false where nobody can be asked.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, ask bool, question, want string) error {
	if !ask {
		return errors.New("this is not a terminal, so nobody can confirm: add --yes; nothing was changed")
	}
	fmt.Fprint(out, question)
	answer, err := ReadAnswer(ctx, in)
	if err == nil && answer != want {
		err = fmt.Errorf("the answer is not %s: nothing was changed", want)
	}
	return err
}

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
