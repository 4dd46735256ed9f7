package pubsub

import (
	"bytes"
	"encoding/json"
	"strings"
)

// members cuts a JSON object into its members, whose values stay as they stand
// there. It is for what encoding/json has made or read already: that goes over
// each byte several times, and there may be megabytes. What it cannot cut is
// left to encoding/json, which says why.
func members(object []byte) (values map[string]json.RawMessage, ok bool) {
	values = map[string]json.RawMessage{}
	rest := bytes.TrimSpace(object)
	for len(rest) > 0 && (rest[0] == '{' || rest[0] == ',') {
		rest = rest[1:]
		colon := outside(rest, ":")
		if colon < 0 {
			return nil, false
		}
		name, value := "", rest[colon+1:]
		end := outside(value, ",}")
		if end < 0 || json.Unmarshal(rest[:colon], &name) != nil {
			return nil, false
		}
		values[name], rest = bytes.TrimSpace(value[:end]), value[end:]
	}
	return values, string(rest) == "}"
}

// outside is where the first of stops stands in JSON, outside of all strings
// and brackets; -1 for nowhere.
func outside(text []byte, stops string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case depth == 0 && strings.IndexByte(stops, c) >= 0:
			return i
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}
