package manual

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T) *Manual {
	t.Helper()
	m, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWhatIsSaidAboutANameIsFound(t *testing.T) {
	m := read(t)
	for name, want := range map[string]string{
		"DrainNever": "problem runbook.md", "drainnever": "problem runbook.md", "budget": "cause runbook.md", "no-room": "cause runbook.md",
		"ClockInStep": "condition operations.md", "ServerCertificateValid": "condition operations.md", "Emptying": "phase operations.md",
		"DRAINRETRYING": "state operations.md", "ZedkubeNoLeader": "alert alerts.md", "the force file": "chapter operations.md", "What survives": "chapter files.md",
		"Leaving": "problem runbook.md", // and a phase, and a state of the membership
	} {
		found := m.Find(name)
		if len(found) == 0 || found[0].Kind+" "+found[0].File != want || len(found[0].Blocks) == 0 {
			t.Errorf("%s: %+v, want %s first", name, found, want)
		}
	}
	if found := m.Find("budget"); len(found) != 3 {
		t.Errorf("budget has %d rows", len(found))
	}
	if found := m.Find("nothing"); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

func TestEveryNameHasTheThreeAnswersOfItsKind(t *testing.T) {
	m := read(t)
	for _, kind := range []string{"problem", "alert"} {
		for _, name := range m.Names(kind) {
			table := m.Find(name)[0].Blocks[0]
			var rows []string
			for _, row := range table.Rows[1:] {
				if strings.TrimSpace(row[1]) != "" {
					rows = append(rows, row[0])
				}
			}
			if !slices.Equal(rows, []string{"means", "look at", "do"}) {
				t.Errorf("%s says %q", name, rows)
			}
		}
	}
	if n := len(m.Names("")); n < 110 {
		t.Errorf("there are %d names", n)
	}
}

func TestOneLetterIsForgiven(t *testing.T) {
	m := read(t)
	for name, want := range map[string]string{"DrainNevr": "DrainNever", "drainevr": "DrainNever", "replica": "LastReplica"} {
		if like := m.Like(name); !slices.Contains(like, want) {
			t.Errorf("%s: like %q", name, like)
		}
	}
	if like := m.Like("xylophone"); len(like) > 0 {
		t.Errorf("xylophone is like %q", like)
	}
}

func TestADocumentInParts(t *testing.T) {
	got := parse("# Title\n\nOne\ntwo.\n<!-- not\nthis -->\n| a | |\n|---|---|\n| x \\| y |\n\n    code\n\n      more\n\n- one\n  on\n- two\n1. three\n")
	want := []Block{
		{Kind: Heading, Level: 1, Text: "Title"},
		{Kind: Paragraph, Text: "One two."},
		{Kind: Table, Rows: [][]string{{"a", ""}, {"x | y", ""}}},
		{Kind: Code, Text: "code\n\n  more"},
		{Kind: List, Items: []string{"one on", "two", "three"}},
	}
	equal := func(a, b Block) bool {
		return a.Kind == b.Kind && a.Level == b.Level && a.Text == b.Text && slices.Equal(a.Items, b.Items) && slices.EqualFunc(a.Rows, b.Rows, slices.Equal)
	}
	if !slices.EqualFunc(got, want, equal) {
		t.Errorf("got %+v", got)
	}
}

var (
	identified = regexp.MustCompile(` id="([^"]+)"`)
	linked     = regexp.MustCompile(` href="#([^"]+)"`)
	element    = regexp.MustCompile(`</?([a-z0-9]+)`)
)

// TestThePageOfTheManual: every place is there once, every link leads to one, and nothing on it is
// run or fetched.
func TestThePageOfTheManual(t *testing.T) {
	text := string(read(t).HTML())
	ids := map[string]bool{}
	for _, m := range identified.FindAllStringSubmatch(text, -1) {
		if ids[m[1]] {
			t.Errorf("%s is there twice", m[1])
		}
		ids[m[1]] = true
	}
	links := linked.FindAllStringSubmatch(text, -1)
	for _, m := range links {
		if !ids[m[1]] {
			t.Errorf("a link leads to %s, which is not there", m[1])
		}
	}
	if len(links) < 100 || !ids["drainnever"] || !ids["zedkubenoleader"] {
		t.Errorf("%d links, %d places", len(links), len(ids))
	}
	known := strings.Fields("html head meta title link body header p a main h1 h2 h3 h4 pre ul li table tr th td code strong")
	for _, m := range element.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("it has an element %s", m[1])
		}
	}
	if foreign := regexp.MustCompile(`style=|\son[a-z]+=|(?:src|href)="(?:https?:|//|javascript)`).FindString(text); foreign != "" || strings.Contains(text, "\x00") {
		t.Errorf("it has %q", foreign)
	}
}

func TestTextIsEscaped(t *testing.T) {
	m := &Manual{pages: []document{{name: "a.md", blocks: []Block{{Kind: Heading, Level: 1, Text: "A"}}}}}
	for text, want := range map[string]string{
		"`<b>` & \\<i>":                       "<code>&lt;b&gt;</code> &amp; &lt;i&gt;",
		"[<x>](#a) [y](a.md) [z](https://e/)": `<a href="#a">&lt;x&gt;</a> <a href="#a">y</a> z`,
		"**[`c`](#a)**":                       `<strong><a href="#a">` + "`c`</a></strong>",
	} {
		if got := m.inline("a.md", text); got != want && !(strings.Contains(text, "`c`") && strings.Contains(got, "<code>c</code>")) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
