// Package redact takes secrets out of what people are shown and what leaves the
// device: tokens, passwords, private keys, cipher data and the credentials of a
// kubeconfig.
package redact

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	// Hidden stands where a secret was.
	Hidden = "(redacted)"
	// HiddenBytes stands where secret bytes were, which are base64 in JSON: who
	// decodes the value still can.
	HiddenBytes = "KHJlZGFjdGVkKQ=="
)

// name is a word before the sign behind which a secret stands, and flag one
// before a blank; user is what curl has before a user and a password, and schemes
// before the credentials in a header.
const (
	name = `(?:token|passw(?:or)?d|pwd|passphrase|psk|secret|authorization|cookie|signature|credentials?|` +
		`(?:api|access|encryption|shared|private)[-_]?key|client-key-data|user[-_]?data|cloud[-_]?init|env[-_]?variables)[\w-]*\\*["']?\s*`
	flag = `--?[a-z-]*(?:token|password|secret|key)\s+`
	user = `\B(?:-u[ \t]*|--(?:proxy-)?user[ \t=]*)`

	schemes = `(?:(?:bearer|basic|negotiate|token)\s+)?`
)

// onUse compiles a large pattern when it is first used: together these take half a
// megabyte, and most agents hide nothing for days.
func onUse(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// secret finds what looks like a token of k3s or a JWT, like the value of a
// secret, quoted or not, or a block of YAML, all variables of an application, or like
// a password in a URL. What is in braces or on the next line is no value if it is a name
// with a colon: that has its own value. What its groups hold stays: what ends a value
// behind it, the others in front.
var secret = onUse(`(?i)\bK1[0-9a-f]{10,}(?:::[^\s"'\\]+)?` +
	`|\beyJ[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}\.[a-z0-9_-]*` +
	`|(` + name + `[:=]\s*")(?:[^"\\]|\\.)+` +
	`|(` + name + `[:=]\s*')(?:[^'\n]|'')+` +
	`|(` + name + `:[ \t]*[|>][-+0-9]*[ \t\r]*\n)\s*?[ \t]+[^\n]*(?:\n\s*?[ \t]+[^\n]*)*` +
	`|(env[-_]?variables\\*["']?\s*[:=]\s*(?:map\[|\{))(?:\\.|"(?:[^"\\\n]|\\.)*"?|[^\]}"\\\n])+` +
	`|(` + name + `(?::=|[:=])[ \t]*(?:-[ \t]+)?` + schemes + `)[^\s"',;{}\[\]\\][^\s"',;]*` +
	`|((?:` + flag + `|\bbearer\s+)\\*["'])[^"'\\\n]+` +
	`|(` + flag + `|\bbearer\s+)[^\s"',;\\-][^\s"',;]*` +
	`|([?&]sig=)[^\s"'&]+` +
	`|(://)[^/\s@"']+@` +
	`|(/import/)[^\s/"'?\\]+\.ya?ml\b` + // the token of a cluster that registers
	`|(` + user + `(?:\\*["']\s*,\s*)?\\*["'][^\s:"'\\]+:)(?:[^"'\\\n]|\\[^"'\n])+` +
	`|(` + user + `[^\s:"'\\]+:\\*["']?)(?:[^\s"'\\]|\\[^"'nrt\s])+` +
	`|(` + name + `[:=]\s*\\+")[^\n]*?(\\+"\s*[,}\]]|\n|$)` +
	`|(` + name + `(?::=|[:=])\s*(?:\n\s*(?:-\s+)?|[{\[])[{\[]*\s*` + schemes + `)[^\s"',;{}\[\]\\:=][^\s"',;:=\]})]*(?:([\s"',;]|$)|[=\]})][^\s"',;]*|:+[^\s"',;:][^\s"',;]*)`)

// weak finds what looks like a secret by the prefix that its maker gives it, by its
// form, or as the parameter of a command. The groups in front stay.
var weak = onUse(`(?i)(authorization\\*["']?\s*[:=]\s*\\*["']?(?:ntlm|digest|aws4-hmac-sha256)\s+)[^\n]+` +
	`|(\bsnmp[\w-]*\s+community\s+|\br[ow]community6?\s+)\S+` +
	`|(\b(?:sshpass|mysql|mysqldump|mysqladmin|mariadb|(?:docker|podman|nerdctl|helm registry|buildah|skopeo)\s+login)\b[^\n|;&]*?\s-p\s*\\*["']?)[^\s"'\\]+` +
	`|(\bk3s (?:server|agent)\b[^\n|;&]*?\s-t\s*\\*["']?)[^\s"'\\]+` +
	`|(\bredis-cli\b[^\n|;&]*?\s-a\s*\\*["']?)[^\s"'\\]+` +
	`|(\bldap[a-z]+\b[^\n|;&]*?\s-w\s*\\*["']?)[^\s"'\\]+` +
	`|(\b(?:smbclient|smbget|rpcclient)\b[^\n|;&]*?\s(?:-U|--user)[ \t=]*\\*["']?[^\s"'\\%]+%)[^\s"'\\]+` +
	`|(\s-pass(?:in|out)\s+\\*["']?pass:)[^\s"'\\]+` +
	`|(\bhooks\.slack\.com/services/)[^\s"'\\]+` +
	`|\b(?:gh[pousr]_[a-z0-9]{8,}|github_pat_\w{8,}|glpat-[\w-]{8,}|a[ks]ia[0-9a-z]{12,}|xox[abeprs]-[\w-]{8,}|sk-[\w-]{8,}|hvs\.[\w-]{8,}|aiza[\w-]{16,}` +
	`|npm_[a-z0-9]{20,}|dckr_pat_[\w-]{8,}|age-secret-key-1[a-z0-9]{8,}|ya29\.[\w-]{8,})` +
	`|\$(?:1|2[aby]?|5|6|7|y|apr1|pbkdf2[a-z0-9-]*|argon2(?:id|i|d))\$[^\s:"']+` +
	`|\{s?(?:sha|md5|sha256|sha384|sha512|crypt|pbkdf2[a-z0-9-]*)\}[a-z0-9+/=$.]{8,}`)

const weakStays = "${1}${2}${3}${4}${5}${6}${7}${8}${9}" + Hidden

// hash is that of a password for NTLM: two beside each other, or one at the end of
// an account in a dump.
var hash = onUse(`(?i)(:|\b)[0-9a-f]{32}:[0-9a-f]{32}\b|(:)[0-9a-f]{32}:::`)

// digitsBehindColon are in every text in which hash finds something. Most texts have
// none, and this is fast: each match begins with the same character.
var digitsBehindColon = onUse(`:[0-9a-fA-F]{32}`)

func plainHashes(text string) string {
	if !digitsBehindColon().MatchString(text) {
		return text
	}
	return hash().ReplaceAllString(text, "${1}${2}"+Hidden)
}

// stays is what secret leaves, around what stands for the rest.
const stays = "${1}${2}${3}${4}${5}${6}${7}${8}${9}${10}${11}${12}${13}${15}" + Hidden + "${14}${16}"

// private finds private keys as PEM, also in JSON, where line ends are escaped,
// and one whose end was cut off; rest what is left of one whose front was.
var (
	private = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)`)
	rest    = regexp.MustCompile(`\A[A-Za-z0-9+/=\s\\]*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
)

// Of a key that has a line of JSON for each of its own, begins and ends find the
// first and the last, and keyLine what is between.
var (
	begins  = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	ends    = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	keyLine = regexp.MustCompile(`(\\(?:u[0-9a-fA-F]{4}|.))?[A-Za-z0-9+/]{16,}={0,2}`)
)

const longestKey = 128

// hints are in every text in which secret finds something, in lower case: that
// expression is slow, and most lines of a log have none of them.
var hints = []string{
	"token", "passw", "pwd", "passphrase", "psk", "secret", "authorization", "cookie", "signature", "sig=", "credential",
	"apikey", "api-key", "api_key", "accesskey", "access-key", "access_key", "encryptionkey", "encryption-key", "encryption_key",
	"sharedkey", "shared-key", "shared_key", "privatekey", "private-key", "private_key", "client-key",
	"userdata", "user-data", "user_data", "cloudinit", "cloud-init", "cloud_init", "envvariables", "env-variables", "env_variables", "bearer", "key ", "k1", "eyj", "/import/", "-u",
	"community", "k3s server", "k3s agent", "sshpass", "mysql", "mariadb", "login", "redis-cli", "ldap", "smbclient", "smbget", "rpcclient", "-passin", "-passout", "hooks.slack",
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "akia", "asia", "xox", "sk-", "hvs.", "aiza", "npm_", "dckr_pat_", "ya29.", "$",
	"{sha", "{ssha", "{md5", "{smd5", "{crypt", "{pbkdf2",
}

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

// reach is how many lines behind a hint a secret may end: a quoted one may have
// several. A block of YAML ends before a line that is indented no deeper than its name.
const reach = 8

// blockOf finds in a line, in front of the name of a block of YAML that begins behind it, what
// indents that.
var blockOf = regexp.MustCompile(`^([ \t]*(?:-[ \t]+)*).*:[ \t]*[|>][-+0-9]*\s*$`)

// below reports that a line is of a block whose name is indented by so many characters.
func below(indent int, line string) bool {
	rest := strings.TrimLeft(line, " \t")
	return len(line)-len(rest) > indent || strings.TrimSpace(rest) == ""
}

func plain(text string) string {
	text = rest.ReplaceAllString(private.ReplaceAllString(text, Hidden), Hidden)
	text = plainPairs(plainHashes(text))
	var out strings.Builder
	var hinted strings.Builder // lines that are looked at together
	left := 0                  // lines that are still in reach
	block := -1                // how the name of the block is indented that the line may be of; -1 for none
	empty := false             // no line of that block has come yet
	flush := func() {
		out.WriteString(secret().ReplaceAllString(weak().ReplaceAllString(hinted.String(), weakStays), stays))
		hinted.Reset()
	}
	for line := range strings.Lines(text) {
		if block >= 0 && below(block, line) {
			left, empty = max(left, 1), empty && strings.TrimSpace(line) == ""
		} else if block >= 0 {
			block = -1
			if !empty { // else it is indented wrongly, and goes with what follows
				flush() // the expression would take what is behind a block for a part of it
			}
		}
		if hint(line) {
			left = reach
			if begins := blockOf.FindStringSubmatch(line); begins != nil && block < 0 {
				block, empty = len(begins[1]), true
			}
		}
		if left > 0 {
			left--
			hinted.WriteString(line)
			continue
		}
		flush()
		out.WriteString(line)
	}
	flush()
	return out.String()
}

func hint(line string) bool {
	if strings.Contains(line, "://") && strings.Contains(line, "@") {
		return true
	}
	line = strings.ToLower(line)
	return slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(line, h) })
}

// leastEncoded is how long a word has to be to be taken for base64: shorter ones
// are names and numbers.
const leastEncoded = 24

// inBase64 replaces the words of text that are base64 of a text with secrets.
func inBase64(text string, plain func(string) string) string {
	var out strings.Builder
	from := 0 // of what is not in out yet
	for at := 0; at < len(text); {
		end := at
		for end < len(text) && isBase64(text[end]) {
			end++
		}
		if word := text[at:end]; len(word) >= leastEncoded && encodesSecret(word, plain) {
			for end < len(text) && text[end] == '=' {
				end++
			}
			out.WriteString(text[from:at] + HiddenBytes)
			from = end
		}
		at = max(end, at+1)
	}
	if from == 0 {
		return text
	}
	return out.String() + text[from:]
}

func isBase64(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/'
}

func encodesSecret(word string, plain func(string) string) bool {
	if len(word)%4 == 1 {
		word = word[:len(word)-1] // cut off, or no base64
	}
	raw, err := base64.RawStdEncoding.DecodeString(word)
	return err == nil && plain(string(raw)) != string(raw)
}

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

type kept int

const (
	nothing kept = iota // nothing that is secret
	aValue              // a secret
	aKey                // a secret, unless it looks like a name
	words               // a secret of several words
)

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
var names = onUse(`^(?:global|zedagent|[0-9]{1,4}|[a-z]+-[0-9]{1,3}` +
	`|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
	`|(?:[a-z0-9][a-z0-9-]*\.)+[a-z0-9-]+(?:/[A-Za-z0-9][\w.-]*)?` + // a setting, a host, a label
	`|[a-z0-9-]+/[a-z0-9.-]+` + // namespace/name
	`|(?:[a-z0-9.-]+(?::[0-9]+)?/)+[a-z0-9._-]+(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?` + // an image
	`|(?:/[\w.:@-]+){2,}/?)$`)

// beside is what a name looks like where something beside it says that it is one.
var beside = onUse(`^[A-Za-z][\w.-]{0,62}(?:/[\w.-]+)?$`)

// nameOfSomething tells a name from a key of a cipher and from a passphrase.
func nameOfSomething(s string) bool { return s == "" || names().MatchString(s) && !encoded(s) }

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
