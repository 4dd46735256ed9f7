package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// leastKnown is how short a secret may be to be looked for everywhere: shorter
// ones are also parts of words.
const leastKnown = 6

// Redactor takes secrets out, and knows by heart the ones it has learnt: these go
// wherever they stand. The zero value is ready and knows none. It is for one
// goroutine.
type Redactor struct {
	known    map[string]bool
	replacer *strings.Replacer // of known; nil where that has changed
	places   int
}

// Places is how many secrets were taken out so far, at least.
func (r *Redactor) Places() int { return r.places }

// Know has the redactor know a secret by heart, in each of the forms in which it
// may be written.
func (r *Redactor) Know(secret string) {
	secret = strings.TrimSpace(secret)
	if len(secret) < leastKnown || strings.Contains(secret, Hidden) || secret == HiddenBytes || r.known[secret] {
		return
	}
	if r.known == nil {
		r.known = map[string]bool{}
	}
	quoted, _ := json.Marshal(secret) // a string always can
	forms := []string{
		secret, string(quoted[1 : len(quoted)-1]), url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
	for _, form := range forms {
		r.known[form] = true
	}
	r.replacer = nil
}

// LearnJSON knows from now on what stands at the places of secrets in a document;
// one that does not parse teaches nothing.
func (r *Redactor) LearnJSON(raw []byte) {
	if v, err := decode(raw); err == nil {
		walker{learn: r.Know, text: func(s string) string { return s }}.walk("", v, false)
	}
}

// between is what separates documents of YAML in one text.
var between = regexp.MustCompile(`(?m)^(?:---|\.\.\.)(?:[ \t\r]|$)`)

// LearnYAML is LearnJSON for all documents of a text; one that does not parse
// teaches nothing.
func (r *Redactor) LearnYAML(raw []byte) {
	for _, document := range between.Split(string(raw), -1) {
		if asJSON, err := yaml.YAMLToJSON([]byte(document)); err == nil {
			r.LearnJSON(asJSON)
		}
	}
}

// Value is a copy of v, a value of encoding/json, without secrets. What is text
// stays text and a number a number, so that anyone who decodes it still can.
func (r *Redactor) Value(v any) any {
	return walker{text: r.Text, hidden: func() { r.places++ }}.walk("", v, false)
}

// JSON is a document without secrets. One that does not parse is treated as text.
func (r *Redactor) JSON(raw []byte) []byte {
	if v, err := decode(raw); err == nil {
		if out, err := encode(r.Value(v)); err == nil {
			return out
		}
	}
	return []byte(r.Text(string(raw)))
}

// YAML is a document without secrets. One that does not parse, or several in
// one, are treated as text.
func (r *Redactor) YAML(raw []byte) []byte {
	if asJSON, err := yaml.YAMLToJSON(raw); err == nil && !bytes.Contains(raw, []byte("\n---")) {
		if out, err := yaml.JSONToYAML(r.JSON(asJSON)); err == nil {
			return out
		}
	}
	return []byte(r.Text(string(raw)))
}

// Lines is a text of lines without secrets; a line that is an object of JSON
// stays one.
func (r *Redactor) Lines(raw []byte) []byte {
	var out bytes.Buffer
	var text strings.Builder // lines that are no JSON, together: a key has several
	flush := func() {
		out.WriteString(r.Text(text.String()))
		text.Reset()
	}
	key := 0 // lines that may still be of one
	for line := range bytes.Lines(raw) {
		line, key = r.keyLine(line, key)
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) < 2 || trimmed[0] != '{' || !json.Valid(trimmed) {
			text.Write(line)
			continue
		}
		flush()
		out.Write(bytes.TrimSpace(r.JSON(trimmed)))
		out.WriteByte('\n')
	}
	flush()
	return out.Bytes()
}

// keyLine is a line without what it has of a key that began in a line before it,
// if left is not 0; and how many of the next lines may have more of it.
func (r *Redactor) keyLine(line []byte, left int) ([]byte, int) {
	first, last := begins.FindAllIndex(line, -1), ends.FindIndex(line)
	if left > 0 {
		left--
		if without := keyLine.ReplaceAll(line, []byte("${1}"+Hidden)); len(first) == 0 && !bytes.Equal(without, line) {
			line = without
			r.places++
		}
	}
	switch {
	case len(first) > 0 && !ends.Match(line[first[len(first)-1][1]:]):
		left = longestKey
	case last != nil:
		left = 0
	}
	return line, left
}

// Text takes out of text what is known and what looks like a secret, in base64
// too.
func (r *Redactor) Text(text string) string {
	before := hiddenIn(text)
	text = inBase64(r.clear(text), r.clear)
	r.places += max(hiddenIn(text)-before, 0)
	return text
}

// clear is Text without a look into base64.
func (r *Redactor) clear(text string) string {
	if len(r.known) > 0 {
		if r.replacer == nil {
			r.replacer = r.compile()
		}
		text = r.replacer.Replace(text)
	}
	return plain(text)
}

// compile has the longest first: one secret may be the front of another.
func (r *Redactor) compile() *strings.Replacer {
	longest := func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }
	var pairs []string
	for _, form := range slices.SortedFunc(maps.Keys(r.known), longest) {
		pairs = append(pairs, form, Hidden)
	}
	return strings.NewReplacer(pairs...)
}

func hiddenIn(text string) int { return strings.Count(text, Hidden) + strings.Count(text, HiddenBytes) }

// decode keeps numbers as they are written.
func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("data after the end of the JSON value")
	}
	return v, nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
