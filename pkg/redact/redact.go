// Package redact takes secrets out of what people are shown and what leaves the
// device: tokens, passwords, keys, cipher data and the credentials of a kubeconfig.
package redact

import (
	"regexp"
	"strings"
)

// Hidden stands where a secret was.
const Hidden = "(redacted)"

// secret finds what looks like a token of k3s, like the value of a secret, or
// like a password in a URL. What its groups hold stays.
var secret = regexp.MustCompile(`(?i)\bK1[0-9a-f]{10,}(?:::[^\s"']+)?` +
	`|((?:token|passw(?:or)?d|secret|authorization)["']?\s*[:=]\s*["']?(?:(?:bearer|basic)\s+)?|--?[a-z-]*(?:token|password|secret)\s+|\bbearer\s+)[^\s"',;]+` +
	`|(://)[^/\s@:]+:[^/\s@]+@`)

// Text takes secrets out of text: the known ones wherever they stand, and what
// looks like one.
func Text(text string, known ...string) string {
	for _, k := range known {
		if k != "" {
			text = strings.ReplaceAll(text, k, Hidden)
		}
	}
	return secret.ReplaceAllString(text, "${1}${2}"+Hidden)
}
