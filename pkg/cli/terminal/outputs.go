package terminal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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
	flag  string // the value of -o
	Watch bool

	form    string
	args    []string // of the command
	path    *jsonpath.JSONPath
	kind    string // of the documents; "" leaves them as they are
	list    *listing
	foreign bool                // the documents are of a form that others define
	rooted  func(string) string // adds --root to the commands in a text; nil for as they are
}

// Flag adds -o to a command, which is checked before the command runs, and returns the command.
func (o *Outputs) Flag(c *cobra.Command) *cobra.Command {
	c.PreRunE = func(c *cobra.Command, args []string) error {
		o.kind, o.rooted = kindOf(c), rootedFor(c)
		o.args = args
		return o.Parse()
	}
	c.Flags().StringVarP(&o.flag, "output", "o", formTable, "`FORM` of what is printed: "+o.wanted())
	forms := append(o.forms(), formJSONPath+"=")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	return c
}

// forms are those that -o knows, but for jsonpath.
func (o *Outputs) forms() []string {
	if o.list == nil {
		return []string{formTable, formJSON, formYAML}
	}
	return []string{formTable, formWide, formName, formJSON, formYAML}
}

func (o *Outputs) wanted() string { return strings.Join(o.forms(), ", ") + " or jsonpath=EXPR" }

// WatchFlag adds --watch, for commands whose look costs little.
func (o *Outputs) WatchFlag(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVarP(&o.Watch, "watch", "w", false, "keep watching: redraw the screen; in a pipe, print a line or document for each change")
	return c
}

// bareExpression is an expression without braces, which kubectl takes, too.
var bareExpression = regexp.MustCompile(`^(\.|\[)?[A-Za-z_*?@'"]`)

// Parse checks the word after -o, and of a list what else is said of its form.
func (o *Outputs) Parse() error {
	form, expr, has := strings.Cut(o.flag, "=")
	o.form = cmp.Or(form, formTable)
	known := slices.Contains(append(o.forms(), formJSONPath), o.form)
	if !known || has != (o.form == formJSONPath) || has && expr == "" {
		return ExitWith(ExitUsage, fmt.Errorf("output %q: want %s", Clean(o.flag), o.wanted()))
	}
	if o.list != nil {
		if err := o.list.parse(o.form, o.Watch, o.args); err != nil {
			return ExitWith(ExitUsage, err)
		}
	}
	if !has {
		return nil
	}
	if bareExpression.MatchString(expr) {
		expr = "{." + strings.TrimPrefix(expr, ".") + "}"
	}
	o.path = jsonpath.New("output").AllowMissingKeys(true)
	if err := o.path.Parse(expr); err != nil {
		return ExitWith(ExitUsage, fmt.Errorf("output %q: %w", Clean(o.flag), err))
	}
	return nil
}

// JSON asks for JSON where no other form of data is asked for.
func (o *Outputs) JSON() {
	if o.People() {
		o.form = formJSON
	}
}

// Foreign leaves the documents as they are: others define their form.
func (o *Outputs) Foreign() { o.foreign = true }

// People reports that a table is wanted.
func (o *Outputs) People() bool { return slices.Contains([]string{"", formTable, formWide}, o.form) }

// Names reports that only the names of what is listed are wanted.
func (o *Outputs) Names() bool { return o.form == formName }

// marshalYAML is data as YAML. Characters that YAML does not allow as they are,
// in a name that anybody may have given, are escaped.
func marshalYAML(data any) ([]byte, error) {
	raw, err := marshal(data)
	if err != nil {
		return nil, err
	}
	escaped := escape(string(raw), func(r rune) string { return fmt.Sprintf(`\U%08x`, r) }) // which YAML knows, unlike pairs of surrogates
	return yaml.JSONToYAML([]byte(escaped))
}

// Encode writes data in the form that was asked for; nothing in it is acted upon by
// a terminal.
func (o *Outputs) Encode(w io.Writer, data any, indent string) error {
	data, err := o.document(data)
	if err != nil {
		return err
	}
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
	_, err = io.WriteString(w, strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text))
	return err
}

// Document writes one of several documents, in lines that people can read, or in one line where
// each that changes is printed.
func (o *Outputs) Document(w io.Writer, data any) error {
	if o.form == formYAML || o.Watch {
		return o.Encode(w, data, "")
	}
	return o.Encode(w, data, "  ")
}

// find evaluates the expression on data as its JSON is.
func (o *Outputs) find(data any) (string, error) {
	raw, err := marshal(data)
	if err != nil {
		return "", err
	}
	var v any
	if err := utiljson.Unmarshal(raw, &v); err != nil { // whole numbers are integers, which print as they are
		return "", fmt.Errorf("decode: %w", err)
	}
	if document, is := v.(map[string]any); is && document["Items"] != nil {
		document["items"] = document["Items"] // as who uses kubectl writes it
	}
	var found strings.Builder
	if err := o.path.Execute(&found, v); err != nil {
		return "", ExitWith(ExitUsage, errors.New("jsonpath: "+Clean(err.Error())))
	}
	return found.String(), nil
}

// outcome is what a command that does something tells programs.
type outcome struct {
	At       time.Time
	Command  string
	Said     []string // what people are told, a line each
	Error    string   // "" for none
	ExitCode int
}

// RunAction runs what a command does. What it says is for people as it comes; for
// programs it is one document at the end, with how it ended.
func (o *Outputs) RunAction(c *cobra.Command, do func(w io.Writer) error) error {
	if o.People() {
		kubectl := false
		err := do(writerFunc(func(b []byte) (int, error) {
			text := string(b)
			kubectl = kubectl || typesKubectl.MatchString(text)
			if o.rooted != nil {
				text = o.rooted(text)
			}
			_, err := io.WriteString(c.OutOrStdout(), text)
			return len(b), err
		}))
		if kubectl {
			fmt.Fprintln(c.OutOrStdout(), InKube+".")
		}
		return err
	}
	var said bytes.Buffer
	err := do(&said)
	r := outcome{At: time.Now().UTC(), Command: c.CommandPath(), Said: []string{}, ExitCode: ExitCode(err)}
	for line := range strings.Lines(said.String()) {
		r.Said = append(r.Said, strings.TrimRight(line, "\n"))
	}
	if err != nil {
		r.Error = err.Error()
	}
	return errors.Join(err, o.Encode(c.OutOrStdout(), r, "  "))
}

// Completed gives the values of a flag to the shell.
func Completed(c *cobra.Command, flag string, values ...string) {
	CompletedFrom(c, flag, func(context.Context) []string { return values })
}

// CompletedFrom does so with those that there are at that moment. Of a flag that takes several,
// the last is completed.
func CompletedFrom(c *cobra.Command, flag string, of func(context.Context) []string) {
	_ = c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, begun string) (list []string, _ cobra.ShellCompDirective) {
		before := ""
		if f := c.Flags().Lookup(flag); f != nil && f.Value.Type() == "stringSlice" {
			before = begun[:strings.LastIndex(begun, ",")+1]
		}
		for _, value := range of(c.Context()) {
			list = append(list, before+value)
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteArgs gives what stands at each place to the shell.
func CompleteArgs(of ...func(ctx context.Context) []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of[len(args)](c.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}
