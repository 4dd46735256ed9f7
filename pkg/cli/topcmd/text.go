package topcmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// ageText is how old a row is, with a mark where that is too old.
func ageText(r topRow, now time.Time) string {
	if r.At.IsZero() {
		return terminal.Unknown
	}
	d := now.Sub(r.At)
	text := ""
	switch past := d.Abs(); {
	case past < 100*time.Second:
		text = fmt.Sprintf("%ds", past/time.Second)
	case past < 100*time.Minute:
		text = fmt.Sprintf("%dm", past/time.Minute)
	case past < 100*time.Hour:
		text = fmt.Sprintf("%dh", past/time.Hour)
	case past < 1000*24*time.Hour:
		text = fmt.Sprintf("%dd", past/(24*time.Hour))
	default:
		text = ">999d"
	}
	if d <= -time.Second {
		text = "+" + text
	}
	if r.Old {
		text += "!"
	}
	return text
}

// The steps of a sparkline, from nothing to all.
const (
	sparkBlocks = "▁▂▃▄▅▆▇█"
	sparkDigits = "01234567"
)

// spark draws samples, the newest at the right: a part of whole, or where that
// is unknown of their largest.
func (l topLook) spark(samples []sample, whole float64) string {
	steps := []rune(sparkBlocks)
	if l.ascii {
		steps = []rune(sparkDigits)
	}
	samples = lastOf(samples)
	if whole <= 0 {
		for _, s := range samples {
			whole = max(whole, terminal.Number(s))
		}
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", topSamples-len(samples)))
	for _, s := range samples {
		switch {
		case s == nil:
			b.WriteString(terminal.Unknown)
		case whole <= 0:
			b.WriteRune(steps[0])
		default:
			b.WriteRune(steps[int(min(terminal.Number(s)/whole, 1)*float64(len(steps)-1)+0.5)])
		}
	}
	return b.String()
}
