package redact

import (
	"regexp"
	"slices"
	"strings"
)

// plainPairs takes out the values behind names in text that hold secrets by the
// rules of fields: pass=x, "sim-pin": "x", key: x.
func plainPairs(text string) string {
	var out strings.Builder
	done := 0 // of what is in out
	for at := 0; ; {
		i := strings.IndexAny(text[at:], ":=")
		if i < 0 {
			break
		}
		at += i
		kind := keptBy(nameBefore(text[done:at]))
		if at++; kind == nothing {
			continue
		}
		from, to := valueAt(text, at, kind == words)
		if from == to || kind == aKey && nameOfSomething(text[from:to]) {
			continue
		}
		out.WriteString(text[done:from] + Hidden)
		done, at = to, to
	}
	if done == 0 {
		return text
	}
	return out.String() + text[done:]
}

// kept is what stands behind a name in a text.
type kept int

const (
	nothing kept = iota // nothing that is secret
	aValue              // a secret
	aKey                // a secret, unless it looks like a name
	words               // a secret of several words
)

// keptBy judges a name in text.
func keptBy(name string) kept {
	if len(name) < len("pw") || !strings.ContainsRune(lastLetters, rune(name[len(name)-1])) {
		return nothing
	}
	bare, last := bareName(name), lastPart(name)
	switch {
	case bare == "key":
		return aKey
	case last == "seed" || last == "mnemonic":
		return words
	case slices.Contains(secretWords, bare) || slices.Contains(secretWords, last) || secretEnd(bare):
		return aValue
	}
	return nothing
}

// lastLetters are the last ones of all names that keptBy knows.
var lastLetters = func() string {
	last := ""
	for _, name := range slices.Concat(secretWords, secretEnds) {
		last += name[len(name)-1:]
	}
	return last + strings.ToUpper(last)
}()

// nameBefore is the name that text ends with, without quotes.
func nameBefore(text string) string {
	text = strings.TrimRight(text, " \t")
	if n := len(text); n > 0 && (text[n-1] == '"' || text[n-1] == '\'') {
		text = strings.TrimRight(text[:n-1], `\`)
	}
	i := len(text)
	for i > 0 && nameByte(text[i-1]) {
		i--
	}
	return text[i:]
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// nextLine is what is before a value of YAML that is below its name.
var nextLine = regexp.MustCompile(`^(?:[|>][-+0-9]*[ \t]*)?\r?\n[ \t]+(?:-[ \t]+)?`)

// valueAt is where the value is that begins behind a sign, at or after from on its
// line, or below: what is between quotes, also such as are escaped themselves, the rest of
// the line if words, or a word.
func valueAt(text string, from int, words bool) (int, int) {
	if from < len(text) && text[from] == '=' && text[from-1] == ':' {
		from++
	}
	for from < len(text) && (text[from] == ' ' || text[from] == '\t') {
		from++
	}
	indent := nextLine.FindString(text[from:])
	from, below := from+len(indent), indent != ""
	quote := from
	for quote < len(text) && text[quote] == '\\' {
		quote++
	}
	if quote < len(text) && (text[quote] == '"' || text[quote] == '\'') {
		mark := text[from : quote+1]
		return quote + 1, quote + 1 + quoted(text[quote+1:], mark)
	}
	if from == len(text) || strings.IndexByte("=,;{}[]\\(", text[from]) >= 0 {
		return from, from
	}
	stop := " \t\r\n\"',;"
	if words {
		stop = "\n\"'"
	}
	to := from + len(scheme.FindString(text[from:]))
	if n := strings.IndexAny(text[to:], stop); n >= 0 {
		to += n
	} else {
		to = len(text)
	}
	if below && text[to-1] == ':' { // another name
		return from, from
	}
	return from, to
}

// scheme is before the credentials in a header.
var scheme = regexp.MustCompile(`^(?i:basic|bearer|negotiate|token|ntlm|digest)[ \t]+`)

// quoted is how long text is up to the mark that ends it, a quote with the
// backslashes before it; one with more of them is part of it. In double quotes there
// may be several lines. Where there is no end, it is the rest of the line.
func quoted(text, mark string) int {
	line, lines := len(text), 0 // the end of the first one
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], mark):
			return i
		case text[i] == '\\':
			run := i
			for run < len(text) && text[run] == '\\' {
				run++
			}
			if strings.HasPrefix(text[run:], mark[len(mark)-1:]) && run-i < len(mark) {
				return i
			}
			i = run // and what is escaped
		case text[i] == '\n':
			line = min(line, i)
			if lines++; mark != `"` || lines == reach {
				return line
			}
		}
	}
	return line
}

// What names of things look like where they are keys of maps, of a topic or of a
// workqueue, labels, files or images.
var names = regexp.MustCompile(`^(?:global|zedagent|[0-9]{1,4}|[a-z]+-[0-9]{1,3}` +
	`|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
	`|(?:[a-z0-9][a-z0-9-]*\.)+[a-z0-9-]+(?:/[A-Za-z0-9][\w.-]*)?` + // a setting, a host, a label
	`|[a-z0-9-]+/[a-z0-9.-]+` + // namespace/name
	`|(?:[a-z0-9.-]+(?::[0-9]+)?/)+[a-z0-9._-]+(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?` + // an image
	`|(?:/[\w.:@-]+){2,}/?)$`)

// beside is what a name looks like where something beside it says that it is one.
var beside = regexp.MustCompile(`^[A-Za-z][\w.-]{0,62}(?:/[\w.-]+)?$`)

// nameOfSomething tells a name from a key of a cipher and from a passphrase.
func nameOfSomething(s string) bool { return s == "" || names.MatchString(s) && !encoded(s) }

// encoded reports that a part of s mixes capitals, small letters and digits, as
// base64 does and names do not.
func encoded(s string) bool {
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("/.:@_-", r) }) {
		if len(part) >= 6 && strings.ContainsAny(part, "0123456789") && strings.ToLower(part) != part && strings.ToUpper(part) != part {
			return true
		}
	}
	return false
}
