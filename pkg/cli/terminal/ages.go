package terminal

import (
	"fmt"
	"time"
)

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
