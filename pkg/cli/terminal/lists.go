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
	object    string // what -o name calls one; "" where each name says it itself
	columns   []Column
	instead   func(args []string) []Column // the columns that the other flags and args make of those; nil for the same
	fields    []string                     // that -l may name
	sortBy    string
	data      bool // also data has the order that was asked for
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
// name, --sort-by, --no-headers and -l. object is what -o name calls one; where it is "" the names
// of a View say it. It stands in for Flag.
func List[T any](o *Outputs, c *cobra.Command, object string, t Table) *cobra.Command {
	l := &listing{object: object, columns: t.Columns}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if f.IsExported() && !f.Anonymous {
			l.fields = append(l.fields, f.Name)
		}
	}
	o.lists(c, l)
	flags := c.Flags()
	flags.StringVar(&l.sortBy, "sort-by", "", "sort the rows by this `COLUMN`, such as "+l.titles(nil)[0])
	flags.StringVarP(&l.selector, "selector", "l", "", "only those with these values: `FIELD=VALUE`,FIELD!=VALUE; the fields are those of -o json")
	_ = c.RegisterFlagCompletionFunc("sort-by", func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return l.titles(args), cobra.ShellCompDirectiveNoFileComp
	})
	var fields []string
	for _, f := range l.fields {
		fields = append(fields, f+"=")
	}
	_ = c.RegisterFlagCompletionFunc("selector", cobra.FixedCompletions(fields, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	return c
}

// Lists adds -o wide, -o name and --no-headers to a command that shows several tables, or one
// among other things. The names of its View say what each is. It stands in for Flag.
func Lists(o *Outputs, c *cobra.Command) *cobra.Command {
	o.lists(c, &listing{})
	return c
}

func (o *Outputs) lists(c *cobra.Command, l *listing) {
	o.list = l
	o.Flag(c)
	c.Flags().BoolVar(&l.noHeaders, "no-headers", false, "leave out the titles of the columns")
}

// ColumnsBy tells a list of its columns where flags and arguments change them: nil for no change.
func (o *Outputs) ColumnsBy(of func(args []string) []Column) { o.list.instead = of }

// SortsData lets a command sort in all forms, which it does itself.
func (o *Outputs) SortsData() { o.list.data = true }

// SortBy is the column that was asked for, as it was written; "" for none.
func (o *Outputs) SortBy() string { return o.list.sortBy }

// titles are the columns by which the rows can be sorted.
func (l *listing) titles(args []string) (titles []string) {
	columns := l.columns
	if l.instead != nil {
		if other := l.instead(args); other != nil {
			columns = other
		}
	}
	for _, c := range columns {
		if c.Title != "" {
			titles = append(titles, c.Title)
		}
	}
	return titles
}

// parse checks what was given, and that it goes with the form.
func (l *listing) parse(form string, watch bool, args []string) error {
	l.wide = form == formWide
	titles := l.titles(args)
	switch {
	case form == formName && watch:
		return errors.New("-o name cannot be combined with --watch")
	case l.sortBy != "" && !l.data && !slices.Contains([]string{formTable, formWide}, form):
		return errors.New("--sort-by is for tables; other forms keep their order")
	case l.sortBy != "" && !slices.ContainsFunc(titles, func(title string) bool { return strings.EqualFold(title, l.sortBy) }):
		return fmt.Errorf("--sort-by %q: want one of %s", Clean(l.sortBy), strings.Join(titles, ", "))
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

// sorted are the rows in the order that was asked for, what is unknown last. A table beside the
// list, which lacks that column, stays as it is.
func (l *listing) sorted(t Table) [][]Cell {
	rows := t.Rows
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return l.sortBy != "" && strings.EqualFold(c.Title, l.sortBy) })
	if at < 0 || t.Sorted {
		return rows
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b []Cell) int { return ByText(a[at].Text, b[at].Text) })
	return rows
}

// ByText compares two cells of a column: numbers, durations and bytes, also before other words, by
// their size, then texts, then what is unknown.
func ByText(a, b string) int {
	x, y := orderOf(a), orderOf(b)
	return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.size, y.size), cmp.Compare(x.text, y.text))
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
	first, rest, _ := strings.Cut(text, " ")
	switch {
	case text == "" || text == Unknown:
		return order{rank: 2}
	case !sizes.MatchString(first):
		return order{rank: 1, text: text}
	}
	units := map[string]float64{
		"ms": 1e-3, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
	}
	o := order{text: rest}
	for _, m := range parts.FindAllStringSubmatch(first, -1) {
		n, _ := strconv.ParseFloat(m[1], 64) // it matches
		o.size += n * cmp.Or(units[m[2]], 1)
	}
	return o
}

// Named takes the word before a name, as -o name prints it: "node/node-1" is node-1.
func Named(object, name string) string { return strings.TrimPrefix(name, object+"/") }
