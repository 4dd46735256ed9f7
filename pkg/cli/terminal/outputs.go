package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// The forms in which a command shows things.
const (
	formTable    = "table" // for people
	formJSON     = "json"
	formYAML     = "yaml"
	formJSONPath = "jsonpath" // jsonpath=EXPR, as kubectl has it
)

// Outputs is what -o and --watch of a command say.
type Outputs struct {
	asked string // the word after -o
	Watch bool

	form string
	path *jsonpath.JSONPath
}

// Flag adds -o to a command.
func (o *Outputs) Flag(c *cobra.Command) {
	c.Flags().StringVarP(&o.asked, "output", "o", formTable, "`FORM` of what is printed: table, json, yaml or jsonpath=EXPR")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(
		[]string{formTable, formJSON, formYAML, formJSONPath + "="}, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
}

// WatchFlag adds --watch, for commands whose look costs little.
func (o *Outputs) WatchFlag(c *cobra.Command) {
	c.Flags().BoolVarP(&o.Watch, "watch", "w", false, "keep watching: a screen that is kept up to date; into a pipe a line or document for each change")
}

// bareExpression is an expression without braces, which kubectl takes, too.
var bareExpression = regexp.MustCompile(`^(\.|\[)?[A-Za-z_*?@'"]`)

// Parse checks the word after -o.
func (o *Outputs) Parse() error {
	form, expr, has := strings.Cut(o.asked, "=")
	switch form {
	case "", formTable:
		o.form = formTable
	case formJSON, formYAML:
		o.form = form
	case formJSONPath:
		o.form = formJSONPath
	default:
		return ExitWith(ExitUsage, fmt.Errorf("output %q: want table, json, yaml or jsonpath=EXPR", Clean(o.asked)))
	}
	if has != (o.form == formJSONPath) || has && expr == "" {
		return ExitWith(ExitUsage, fmt.Errorf("output %q: want table, json, yaml or jsonpath=EXPR", Clean(o.asked)))
	}
	if !has {
		return nil
	}
	if bareExpression.MatchString(expr) {
		expr = "{." + strings.TrimPrefix(expr, ".") + "}"
	}
	o.path = jsonpath.New("output").AllowMissingKeys(true)
	if err := o.path.Parse(expr); err != nil {
		return ExitWith(ExitUsage, fmt.Errorf("output %q: %w", Clean(o.asked), err))
	}
	return nil
}

// JSON asks for JSON where no other form of data is asked for.
func (o *Outputs) JSON() {
	if o.People() {
		o.form = formJSON
	}
}

// People reports that a table is wanted.
func (o *Outputs) People() bool { return o.form == formTable || o.form == "" }

// marshalYAML is data as YAML. Characters that YAML does not allow as they are,
// in a name that anybody may have given, are escaped.
func marshalYAML(data any) ([]byte, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	var escaped strings.Builder
	for _, r := range string(raw) { // outside of strings JSON is ASCII
		switch {
		case unicode.IsPrint(r) || r == utf8.RuneError:
			escaped.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&escaped, `\U%08x`, r) // which YAML knows, unlike pairs of surrogates
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	return yaml.JSONToYAML([]byte(escaped.String()))
}

// Encode writes data in the form that was asked for; nothing in it is obeyed by
// a terminal.
func (o *Outputs) Encode(w io.Writer, data any, indent string) error {
	var text string
	switch o.form {
	case formJSON, formTable, "": // there are no lines for people
		return WriteJSON(w, data, indent)
	case formYAML:
		raw, err := marshalYAML(data)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		text = string(raw)
		if indent == "" {
			text = "---\n" + text // one of several documents
		}
	default:
		found, err := o.find(data)
		if err != nil {
			return err
		}
		text = strings.TrimSuffix(found, "\n") + "\n"
	}
	_, err := io.WriteString(w, strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text))
	return err
}

// Document writes one of several documents, in lines that people can read.
func (o *Outputs) Document(w io.Writer, data any) error {
	if o.form == formYAML {
		return o.Encode(w, data, "")
	}
	return o.Encode(w, data, "  ")
}

// find evaluates the expression on data as its JSON is.
func (o *Outputs) find(data any) (string, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	var found strings.Builder
	if err := o.path.Execute(&found, whole(v)); err != nil {
		return "", ExitWith(ExitUsage, errors.New("jsonpath: "+Clean(err.Error())))
	}
	return found.String(), nil
}

// whole makes whole numbers integers, which print as they are.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = whole(e)
		}
	case []any:
		for i, e := range v {
			v[i] = whole(e)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}
