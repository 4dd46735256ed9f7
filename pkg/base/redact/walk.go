package redact

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

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
			return w.number(v)
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
	return slices.ContainsFunc(besideNames, func(field string) bool { return m[field] != nil }) && beside.MatchString(key) && !encoded(key)
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

func (w walker) number(n json.Number) json.Number {
	if n == "0" {
		return n
	}
	w.hide(n.String(), "0")
	return "0"
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
