package statusserver

import (
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/redact"
)

const (
	maxText    = 4 << 10 // of one field of a report
	maxLogText = maxTail // of the log's end
)

// redacted is r without secrets, and then every text of it within bounds, since
// half a secret is not found; it leaves
// r as it is.
func (r report) redacted(token string) report {
	short := func(text string) string { return phrase.Cut(redact.Text(text, token), maxText) }
	out := report{Hostname: short(r.Hostname), CollectTime: short(r.CollectTime), AppInfo: make([]entry, 0, len(r.AppInfo))}
	for _, e := range r.AppInfo {
		v := e.Value
		for _, field := range []*string{&v.UUID, &v.Name, &v.State, &v.Errors, (*string)(&v.Activated), (*string)(&v.DNidNode)} {
			*field = short(*field)
		}
		v.Content = phrase.Cut(redact.Text(v.Content, token), maxLogText)
		out.AppInfo = append(out.AppInfo, entry{short(e.Key), v})
	}
	return out
}
