// Package redact takes secrets out of what people are shown and what leaves the
// device: tokens, passwords, private keys, cipher data and the credentials of a
// kubeconfig.
package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
)

const (
	// Hidden stands where a secret was.
	Hidden = "(redacted)"
	// HiddenBytes stands where secret bytes were, which are base64 in JSON: who
	// decodes the value still can.
	HiddenBytes = "KHJlZGFjdGVkKQ=="
)

// name is a word before the sign behind which a secret stands.
const name = `(?:token|passw(?:or)?d|passphrase|secret|authorization|credentials?|api[-_]?key|private[-_]?key|client-key-data)[\w-]*`

// secret finds what looks like a token of k3s or a JWT, like the value of a
// secret, quoted or not, or like a password in a URL. What its groups hold stays:
// all but the last of them in front.
var secret = regexp.MustCompile(`(?i)\bK1[0-9a-f]{10,}(?:::[^\s"'\\]+)?` +
	`|\beyJ[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}\.[a-z0-9_-]*` +
	`|(` + name + `\\*["']?\s*[:=]\s*")(?:[^"\\]|\\.)+` +
	`|(` + name + `\\*["']?\s*[:=]\s*')[^'\n]+` +
	`|(` + name + `\\*["']?\s*[:=]\s*(?:(?:bearer|basic)\s+)?)[^\s"',;{\[\\][^\s"',;]*` +
	`|(--?[a-z-]*(?:token|password|secret|key)\s+|\bbearer\s+)[^\s"',;-][^\s"',;]*` +
	`|(://)[^/\s@"']+@` +
	`|(` + name + `\\*["']?\s*[:=]\s*\\+")[^\n]*?(\\+"\s*[,}\]]|\n|$)`)

// private finds private keys as PEM, also in JSON, where line ends are escaped,
// and what is left of one whose front or end was cut off.
var private = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)` +
	`|\A[A-Za-z0-9+/=\s\\]*-----END [A-Z0-9 ]*PRIVATE KEY-----`)

// encoded finds what may be text in base64.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/]{24,}={0,2}`)

// Text takes secrets out of text: the known ones wherever they stand, and what
// looks like one.
func Text(text string, known ...string) string {
	for _, k := range known {
		if k != "" {
			text = strings.ReplaceAll(text, k, Hidden)
		}
	}
	return plain(text)
}

// plain takes out what looks like a secret.
func plain(text string) string {
	text = private.ReplaceAllString(text, Hidden)
	return secret.ReplaceAllString(text, "${1}${2}${3}${4}${5}${6}"+Hidden+"${7}")
}

// inBase64 replaces the words of text that are base64 of a text with secrets.
func inBase64(text string, plain func(string) string) string {
	return encoded.ReplaceAllStringFunc(text, func(word string) string {
		bare := strings.TrimRight(word, "=")
		raw, err := base64.RawStdEncoding.DecodeString(bare[:len(bare)/4*4])
		if err != nil {
			return word
		}
		if clear := string(raw); plain(clear) != clear {
			return HiddenBytes
		}
		return word
	})
}
