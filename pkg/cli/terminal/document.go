package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// APIVersion is that of the documents of -o json and yaml (docs/json.md). It changes when a field
// goes or means something else.
const APIVersion = "zedkube/v1"

// kindOf is what the documents of a command are called: DrainStatus for "zedkube drain status".
func kindOf(c *cobra.Command) (kind string) {
	path := c.CommandPath()
	if now, moved := c.Annotations[movedTo]; moved {
		path = now
	}
	for _, word := range strings.FieldsFunc(strings.TrimPrefix(path, c.Root().Name()), func(r rune) bool { return r == ' ' || r == '-' }) {
		kind += strings.ToUpper(word[:1]) + word[1:]
	}
	return kind
}

// document is data with its version and kind before all else, and a list as its Items. An
// object of Kubernetes' form has its own.
func (o *Outputs) document(data any) (any, error) {
	if o.kind == "" || o.foreign {
		return data, nil
	}
	text, err := marshal(data)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(text, []byte(`{"apiVersion":`)) {
		return json.RawMessage(text), nil
	}
	head := fmt.Sprintf(`{"APIVersion":%q,"Kind":%q`, APIVersion, o.kind)
	rest, object := bytes.CutPrefix(text, []byte("{"))
	switch {
	case !object && string(text) == "null":
		head += "}"
		rest = nil
	case !object:
		head += `,"Items":`
		rest = append(text, '}')
	case len(rest) > 1:
		head += ","
	}
	return json.RawMessage(head + string(rest)), nil
}

// rootedFor adds --root to the commands that a text tells, where it was given, so that they can
// be pasted; nil where it was not.
func rootedFor(c *cobra.Command) func(string) string {
	flag := c.Root().PersistentFlags().Lookup("root")
	if flag == nil || flag.Value.String() == "" {
		return nil
	}
	program := Program(flag.Value.String())
	var names []string
	for _, sub := range c.Root().Commands() {
		names = append(names, regexp.QuoteMeta(sub.Name()))
	}
	command := regexp.MustCompile(`\bzedkube (` + strings.Join(names, "|") + `)\b`)
	return func(text string) string {
		return command.ReplaceAllStringFunc(text, func(found string) string { return strings.Replace(found, "zedkube", program, 1) })
	}
}

// Program is how a command of this program begins, so that it can be pasted: with --root, where it has one.
func Program(root string) string {
	if root = Clean(root); root == "" {
		return "zedkube"
	}
	if !plainWord.MatchString(root) {
		root = "'" + strings.ReplaceAll(root, "'", `'\''`) + "'"
	}
	return "zedkube --root " + root
}

// plainWord is one that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./-]+$`)
