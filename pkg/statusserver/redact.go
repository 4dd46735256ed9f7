package statusserver

import (
	"regexp"
	"strings"
)

const (
	redactedText = "(redacted)"
	maxText      = 4 << 10 // of one field of a report
	maxLogText   = maxTail // of the log's end
)

// secret finds what looks like a token of k3s, like the value of a secret, or
// like a password in a URL. What its groups hold stays.
var secret = regexp.MustCompile(`(?i)\bK1[0-9a-f]{10,}(?:::[^\s"']+)?` +
	`|((?:token|passw(?:or)?d|secret|authorization)["']?\s*[:=]\s*["']?(?:(?:bearer|basic)\s+)?|--?[a-z-]*(?:token|password|secret)\s+|\bbearer\s+)[^\s"',;]+` +
	`|(://)[^/\s@:]+:[^/\s@]+@`)

// redact takes secrets out of text: the token itself wherever it stands, and
// what looks like one.
func redact(text, token string) string {
	if token != "" {
		text = strings.ReplaceAll(text, token, redactedText)
	}
	return secret.ReplaceAllString(text, "${1}${2}"+redactedText)
}

// redacted is r without secrets, and every text of it within bounds; it leaves
// r as it is.
func (r report) redacted(token string) report {
	short := func(text string) string { return cut(redact(text, token), maxText) }
	out := report{Hostname: short(r.Hostname), CollectTime: short(r.CollectTime), AppInfo: make([]entry, 0, len(r.AppInfo))}
	for _, e := range r.AppInfo {
		v := e.Value
		for _, field := range []*string{&v.UUID, &v.Name, &v.State, &v.Errors, (*string)(&v.Activated), (*string)(&v.DNidNode)} {
			*field = short(*field)
		}
		v.Content = cut(redact(v.Content, token), maxLogText)
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
