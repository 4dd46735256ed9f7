package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// unknown is what nobody knows, which is not 0.
const unknown = "-"

// number is v, or 0 for unknown.
func number(v *uint64) float64 {
	if v == nil {
		return 0
	}
	return float64(*v)
}

// coresText is nanocores in at most five columns: thousandths of a core below
// ten, then cores.
func coresText(v *uint64) string {
	if v == nil {
		return unknown
	}
	switch cores := float64(*v) / 1e9; {
	case cores < 9.9995:
		return strconv.FormatInt(int64(cores*1e3+0.5), 10) + "m"
	case cores < 99.95:
		return strconv.FormatFloat(cores, 'f', 1, 64)
	case cores < 99999:
		return strconv.FormatFloat(cores, 'f', 0, 64)
	}
	return ">99k"
}

// bytesText is bytes in at most six columns.
func bytesText(v *uint64) string {
	if v == nil {
		return unknown
	}
	n := float64(*v)
	for _, unit := range []string{"B", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
		switch {
		case unit != "B" && n < 9.95:
			return strconv.FormatFloat(n, 'f', 1, 64) + unit
		case n < 1023.5 || unit == "Ei":
			return strconv.FormatFloat(n, 'f', 0, 64) + unit
		}
		n /= 1024
	}
	return unknown
}

// percent is a part of a whole in at most four columns.
func percent(part *uint64, whole float64) string {
	if part == nil || whole <= 0 {
		return unknown
	}
	return fmt.Sprintf("%.0f%%", min(float64(*part)/whole*100, 999))
}

// ageText is how old a row is, with a mark where that is too old.
func ageText(r topRow, now time.Time) string {
	if r.At.IsZero() {
		return unknown
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
			whole = max(whole, number(s))
		}
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", topSamples-len(samples)))
	for _, s := range samples {
		switch {
		case s == nil:
			b.WriteString(unknown)
		case whole <= 0:
			b.WriteRune(steps[0])
		default:
			b.WriteRune(steps[int(min(number(s)/whole, 1)*float64(len(steps)-1)+0.5)])
		}
	}
	return b.String()
}
