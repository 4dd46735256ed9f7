package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// The forms that lists have besides those of every command.
const (
	formWide = "wide" // all columns, however wide the terminal
	formName = "name" // a line OBJECT/NAME for each
)

// listing is what the flags of a list say.
type listing struct {
	object    string // what -o name calls one
	columns   []string
	fields    []string // that -l may name
	sortBy    string
	noHeaders bool
	wide      bool
	selector  string
	terms     []condition
}

// condition is one condition of -l.
type condition struct {
	field, value string
	not          bool
}

// List adds what kubectl's lists have to a command that prints a table of T: -o wide and -o
// name, --sort-by, --no-headers and -l. object is what -o name calls one; where it is "" nothing
// has a name. It stands in for Flag.
func List[T any](o *Outputs, c *cobra.Command, object string, t Table) *cobra.Command {
	l := &listing{object: object}
	for _, column := range t.Columns {
		l.columns = append(l.columns, column.Title)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if f.IsExported() && !f.Anonymous {
			l.fields = append(l.fields, f.Name)
		}
	}
	o.list = l
	o.Flag(c)
	flags := c.Flags()
	flags.StringVar(&l.sortBy, "sort-by", "", "sort the rows by this `COLUMN`, such as "+l.columns[0])
	flags.BoolVar(&l.noHeaders, "no-headers", false, "leave out the titles of the columns")
	flags.StringVarP(&l.selector, "selector", "l", "", "only those with these values: `FIELD=VALUE`,FIELD!=VALUE; the fields are those of -o json")
	Completed(c, "sort-by", l.columns...)
	var fields []string
	for _, f := range l.fields {
		fields = append(fields, f+"=")
	}
	_ = c.RegisterFlagCompletionFunc("selector", cobra.FixedCompletions(fields, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	return c
}

// parse checks what was given, and that it goes with the form.
func (l *listing) parse(form string, watch bool) error {
	l.wide = form == formWide
	switch {
	case form == formName && l.object == "":
		return errors.New("-o name: what this command lists has no names")
	case form == formName && watch:
		return errors.New("-o name cannot be combined with --watch")
	case l.sortBy != "" && !slices.Contains([]string{formTable, formWide}, form):
		return errors.New("--sort-by is for tables; other forms keep their order")
	case l.sortBy != "" && l.column() < 0:
		return fmt.Errorf("--sort-by %q: want one of %s", Clean(l.sortBy), strings.Join(l.columns, ", "))
	}
	l.terms = nil
	for part := range strings.SplitSeq(l.selector, ",") {
		if l.selector == "" {
			break
		}
		name, value, is := strings.Cut(part, "=")
		t := condition{field: strings.TrimSpace(strings.TrimSuffix(name, "!")), value: strings.TrimPrefix(value, "="), not: strings.HasSuffix(name, "!")}
		i := slices.IndexFunc(l.fields, func(f string) bool { return strings.EqualFold(f, t.field) })
		if !is || i < 0 {
			return fmt.Errorf("-l %q: want FIELD=VALUE or FIELD!=VALUE, the field one of %s", Clean(part), strings.Join(l.fields, ", "))
		}
		t.field = l.fields[i]
		l.terms = append(l.terms, t)
	}
	return nil
}

func (l *listing) column() int {
	return slices.IndexFunc(l.columns, func(title string) bool { return strings.EqualFold(title, l.sortBy) })
}

// Selected are those that -l asks for.
func Selected[T any](o *Outputs, list []T) []T {
	if o.list == nil || len(o.list.terms) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool {
		return slices.ContainsFunc(o.list.terms, func(t condition) bool {
			return holds(reflect.ValueOf(v).FieldByName(t.field), t.value) == t.not
		})
	})
}

// holds reports that a field has that value, or is a list with it. Nothing is "".
func holds(v reflect.Value, value string) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && holds(v.Elem(), value) || v.IsNil() && value == ""
	case reflect.Slice:
		for i := range v.Len() {
			if holds(v.Index(i), value) {
				return true
			}
		}
		return v.Len() == 0 && value == ""
	}
	return strings.EqualFold(fmt.Sprint(v.Interface()), value)
}

// sorted are the rows in the order that was asked for, what is unknown last.
func (l *listing) sorted(t Table) [][]Cell {
	rows := t.Rows
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return l.sortBy != "" && strings.EqualFold(c.Title, l.sortBy) })
	if at < 0 {
		return rows
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b []Cell) int {
		x, y := orderOf(a[at].Text), orderOf(b[at].Text)
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.size, y.size), cmp.Compare(x.text, y.text))
	})
	return rows
}

type order struct {
	rank int // sizes, texts, what is unknown
	size float64
	text string
}

// sizes match numbers, durations and bytes as tables show them.
var (
	sizes = regexp.MustCompile(`^(?:\d+(?:\.\d+)?(?:ms|[smhdyB%]|[KMGTPE]i)?)+$`)
	parts = regexp.MustCompile(`(\d+(?:\.\d+)?)(ms|[smhdyB%]|[KMGTPE]i)?`)
)

func orderOf(text string) order {
	switch {
	case text == "" || text == Unknown:
		return order{rank: 2}
	case !sizes.MatchString(text):
		return order{rank: 1, text: text}
	}
	units := map[string]float64{
		"ms": 1e-3, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
	}
	var o order
	for _, m := range parts.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseFloat(m[1], 64) // it matches
		o.size += n * cmp.Or(units[m[2]], 1)
	}
	return o
}

// Named takes the word before a name, as -o name prints it: "node/node-1" is node-1.
func Named(object, name string) string { return strings.TrimPrefix(name, object+"/") }
