// Package promtext reads a few series out of a long answer in the text format of
// Prometheus. Its own parser holds whole families in memory.
package promtext

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lineSize bounds a line. Of a longer one nothing is taken.
const lineSize = 16 << 10

// Sample is one line.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

var (
	line  = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?[ \t]+(\S+)`)
	label = regexp.MustCompile(`^,?([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

// Each hands out the samples with one of these names. A text that has more than most
// bytes, is in another format, or ends within a line is an error: a part of it does
// not say what is missing.
func Each(text io.Reader, most int64, names []string, do func(Sample)) error {
	rest := &io.LimitedReader{R: text, N: most + 1}
	lines := bufio.NewReaderSize(rest, lineSize)
	for long, first := false, true; ; first = false {
		raw, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = true
			continue
		case rest.N <= 0:
			return fmt.Errorf("the metrics have more than %d bytes", most)
		case errors.Is(err, io.EOF) && len(raw) == 0 && !long && !first:
			return nil
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case long:
			long = false
			continue
		}
		if name := raw[:max(0, slices.IndexFunc(raw, notOfName))]; !slices.Contains(names, string(name)) {
			continue
		}
		if s, ok := parse(string(raw)); ok {
			do(s)
		}
	}
}

func notOfName(b byte) bool { return b == '{' || b == ' ' || b == '\t' }

func parse(text string) (s Sample, ok bool) {
	m := line.FindStringSubmatch(text)
	if m == nil {
		return s, false
	}
	value, err := strconv.ParseFloat(m[3], 64)
	s = Sample{Name: m[1], Labels: map[string]string{}, Value: value}
	for rest := m[2]; rest != "" && rest != ","; {
		l := label.FindStringSubmatch(rest)
		if l == nil {
			return s, false
		}
		s.Labels[l[1]] = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(l[2])
		rest = rest[len(l[0]):]
	}
	return s, err == nil
}
