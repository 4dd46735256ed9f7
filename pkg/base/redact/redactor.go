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
	"time"

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

// secretNames are what the name of a field contains that holds a secret, without
// regard to case and separators.
var secretNames = []string{
	"password", "passwd", "passphrase", "secret", "token", "credential", "authorization", "jwt", "cookie",
	"pwd", "apikey", "accesskey", "encryptionkey", "sharedkey", "privatekey", "privkey", "clientkeydata", "vaultkey", "encryptedkey",
	"userdata", "cloudinit", "envvariables",
}

// secretBytes are the fields of a cipher block, which are decoded as bytes, so
// that what stands in their place has to be base64 (docs/wire.md, "Token decryption").
var secretBytes = []string{"cipherdata", "initialvalue", "cleartexthash"}

// secretSettings are settings whose text may hold secrets (docs/wire.md, "Settings").
var secretSettings = []string{"k3s.config.override"}

// secretWords are what the whole name of a field is that holds a secret, or its last
// part (smtp_auth), and secretEnds what it ends with; unclosed end with the latter and hold none.
var (
	secretWords = []string{
		"otp", "totp", "hotp", "jwt", "seed", "mnemonic", "session", "sessionid", "auth", "auths", "ntlm", "nthash", "lmhash",
	}
	secretEnds = []string{"psk", "pass", "pw", "pin", "puk", "key", "pincode", "community"}
	unclosed   = []string{
		"bypass", "compass", "trespass", "publickey", "pubkey", "topologykey", "labelkey", "cachekey", "primarykey", "foreignkey", "monkey", "hotkey", "turkey",
		"spin", "gpiopin",
	}
)

func bareName(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "")) }

// lastPart is the last part of a name with separators, of one without all of it.
func lastPart(name string) string { return strings.ToLower(name[strings.LastIndexAny(name, "-_")+1:]) }

func hasEnd(bare string, ends []string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(bare, end) })
}

// secretEnd reports that a bare name ends as those do that hold a secret.
func secretEnd(bare string) bool { return hasEnd(bare, secretEnds) && !hasEnd(bare, unclosed) }

var separators = regexp.MustCompile(`^pubsub-large-|[-_. ]`)

type kind int

const (
	open kind = iota
	hide
	hideBytes
)

// kindOf says what a field of that name holds.
func kindOf(field string) kind {
	bare := bareName(field)
	contained := func(part string) bool { return strings.Contains(bare, part) }
	switch {
	case slices.ContainsFunc(secretBytes, contained):
		return hideBytes
	case slices.ContainsFunc(secretNames, contained), slices.Contains(secretWords, bare), slices.Contains(secretWords, lastPart(field)), slices.Contains(secretSettings, field):
		return hide
	case bare != "key" && secretEnd(bare): // what "key" holds is judged by itself
		return hide
	}
	return open
}

type walker struct {
	learn  func(secret string)
	text   func(string) string // what any other text becomes
	hidden func()
}

// walk copies v, the value of a field. inside says that a secret's field is
// around it.
func (w walker) walk(field string, v any, inside bool) any {
	switch v := v.(type) {
	case map[string]any:
		return w.object(v, inside || kindOf(field) != open)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = w.walk(field, x, inside)
		}
		return out
	case string:
		return w.string(field, v, inside)
	case json.Number:
		if inside || kindOf(field) != open {
			return json.Number(w.hide(v.String(), "0"))
		}
	}
	return v
}

func (w walker) object(m map[string]any, inside bool) map[string]any {
	pair := secretPair(m)
	if _, block := m["CipherBlockID"]; block || pair {
		inside = false // its name, and a block's error, are no secret, and help
	}
	object := m["kind"] == "Secret"
	out := make(map[string]any, len(m))
	for name, x := range m {
		if data := name == "data"; object && (data || name == "stringData") {
			if data {
				w.learnData(x)
			}
			out[name] = w.walk(name, x, true)
			continue
		}
		if pair && slices.Contains(pairValues, name) {
			out[w.text(name)] = w.walk("secret", x, true)
			continue
		}
		if key, ok := x.(string); ok && !inside && strings.EqualFold(name, "key") && keyOf(m, key) {
			out[name] = w.text(key)
			continue
		}
		out[w.text(name)] = w.walk(name, x, inside)
	}
	return out
}

// learnData learns what the fields of a Secret of Kubernetes encode whose name
// says that they hold one; all of them are hidden.
func (w walker) learnData(data any) {
	fields, _ := data.(map[string]any)
	for name, x := range fields {
		text, _ := x.(string)
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil && w.learn != nil && kindOf(name) != open {
			w.learn(string(raw))
		}
	}
}

// What the fields of pairs of a name and a value are called, as settings and
// variables are.
var (
	pairNames  = []string{"Key", "key", "Name", "name"}
	pairValues = []string{"StrValue", "Value", "value"}
)

// secretPair reports that an object is a name and a value, and the name that of
// a secret.
func secretPair(m map[string]any) bool {
	return slices.ContainsFunc(pairNames, func(field string) bool {
		name, ok := m[field].(string)
		return ok && kindOf(name) != open && slices.ContainsFunc(pairValues, func(value string) bool { return m[value] != nil })
	})
}

// besideNames are the fields beside a key that is a name: of a topic's value, of a
// setting, of a taint or a toleration, of a selector.
var besideNames = []string{"topic", "ItemType", "IntValue", "BoolValue", "StrValue", "TriStateValue", "operator", "effect", "values", "Value", "value"}

// keyOf reports that key, in the object m, names something.
func keyOf(m map[string]any, key string) bool {
	return slices.ContainsFunc(besideNames, func(field string) bool { return m[field] != nil }) && beside().MatchString(key) && !encoded(key)
}

func (w walker) string(field, s string, inside bool) string {
	k := kindOf(field)
	switch {
	case s == "" || harmless(s):
		return s
	case k == hideBytes:
		return w.hide(s, HiddenBytes)
	case inside || k == hide, strings.EqualFold(field, "key") && !nameOfSomething(s):
		return w.hide(s, Hidden)
	}
	if trimmed := strings.TrimSpace(s); len(trimmed) > 1 && (trimmed[0] == '{' || trimmed[0] == '[') {
		if inner, err := decode([]byte(s)); err == nil {
			if out, err := encode(w.walk("", inner, false)); err == nil {
				return strings.TrimSuffix(string(out), "\n")
			}
		}
	}
	return w.text(s)
}

func (w walker) hide(secret, in string) string {
	if w.learn != nil {
		w.learn(secret)
	}
	if w.hidden != nil && secret != in {
		w.hidden()
	}
	return in
}

// harmless texts are not hidden, whatever their field: a time is no secret, and
// has to stay one.
func harmless(s string) bool {
	if len(s) > 40 {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}
