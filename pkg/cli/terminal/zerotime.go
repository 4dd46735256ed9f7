package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

// A member whose value is Go's zero time, with the comma that separates it. What looks so
// within a string has a backslash before each quote, and does not match.
var (
	zeroTimeBefore = regexp.MustCompile(`"(?:[^"\\]|\\.)*":"0001-01-01T00:00:00Z",`)
	zeroTimeLast   = regexp.MustCompile(`,?"(?:[^"\\]|\\.)*":"0001-01-01T00:00:00Z"`)
)

// marshal is v as JSON, without the times that are not known: in Go they are in the year 1,
// which no program would take for "none".
func marshal(v any) ([]byte, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	text := bytes.TrimSuffix(raw.Bytes(), []byte("\n"))
	if !bytes.Contains(text, []byte(`:"0001-01-01T00:00:00Z"`)) {
		return text, nil
	}
	return zeroTimeLast.ReplaceAll(zeroTimeBefore.ReplaceAll(text, nil), nil), nil
}
