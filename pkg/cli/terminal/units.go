package terminal

import (
	"cmp"
	"fmt"
	"strconv"
	"time"
)

// OrNone is a text, or the sign that there is none.
func OrNone(text string) string { return cmp.Or(text, Unknown) }

// Unknown is what nobody knows, which is not 0.
const Unknown = "-"

// Number is v, or 0 for unknown.
func Number(v *uint64) float64 {
	if v == nil {
		return 0
	}
	return float64(*v)
}

// CoresText is nanocores in at most five columns: thousandths of a core below
// ten, then cores.
func CoresText(v *uint64) string {
	if v == nil {
		return Unknown
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

// BytesText is bytes in at most six columns.
func BytesText(v *uint64) string {
	if v == nil {
		return Unknown
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
	return Unknown
}

// Percent is a part of a whole in at most four columns.
func Percent(part *uint64, whole float64) string {
	if part == nil || whole <= 0 {
		return Unknown
	}
	return fmt.Sprintf("%.0f%%", min(float64(*part)/whole*100, 999))
}

// short is a duration in at most four columns: 5s, 12m, 3h, 2d, 999d.
func short(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 1000*24*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return fmt.Sprintf("%dy", min(d/(365*24*time.Hour), 999))
}

// ShortAge is how old something is; - for a time that is not known.
func ShortAge(at, now time.Time) string {
	if at.IsZero() {
		return Unknown
	}
	return short(now.Sub(at))
}
