package statusserver

import (
	"strings"

	"github.com/zedkube/zedkube/pkg/base/redact"
)

const (
	maxText    = 4 << 10 // of one field of a report
	maxLogText = maxTail // of the log's end
)

// redacted is r without secrets, and every text of it within bounds; it leaves
// r as it is.
func (r report) redacted(token string) report {
	short := func(text string) string { return cut(redact.Text(text, token), maxText) }
	out := report{Hostname: short(r.Hostname), CollectTime: short(r.CollectTime), AppInfo: make([]entry, 0, len(r.AppInfo))}
	for _, e := range r.AppInfo {
		v := e.Value
		for _, field := range []*string{&v.UUID, &v.Name, &v.State, &v.Errors, (*string)(&v.Activated), (*string)(&v.DNidNode)} {
			*field = short(*field)
		}
		v.Content = cut(redact.Text(v.Content, token), maxLogText)
		out.AppInfo = append(out.AppInfo, entry{short(e.Key), v})
	}
	return out
}

// cut is the front of text. It comes after redact: half a secret is not found.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
