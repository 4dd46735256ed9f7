package house

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// words lists what is not written in identifiers, comments, texts and documents, with
// what is written instead (docs/glossary.md). Identifiers are read word by word:
// lookAnew is "look anew".
var words = []struct{ pattern, instead string }{
	{`anew`, "again; recreate, rewrite"},
	{`afresh`, "again; on demand"},
	{`astray`, "lost"},
	{`mends?|mended`, "fix, repair, recover"},
	{`whoever`, "anyone who; name the one that is meant"},
	{`bears|bearing`, "has, carries"},
	{`lies about`, "is present"},
	{`takes nobody|joins nobody`, "accepts no node, does not join"},
	{`takes pods`, "is schedulable"},
	{`(is|are|was|were) told of`, "is reported, is notified"},
	{`is none that`, "is not one that"},
	{`no more( *[.,;:)]|$)`, "no longer"},
	{`more ado|in vain|of late|of its own accord`, "plain English"},
	{`signs? of life`, "heartbeat"},
	{`makes? no sense`, "is invalid"},
	{`obeyed|heeds?|heeded`, "takes effect, honours"},
	{`deeds?`, "operation, action"},
	{`bouts?`, "attempt"},
	{`prospects?`, "view of the Lease"},
	{`spells?`, "streak"},
	{`speakers?`, "representative"},
	{`ghosts?`, "stale master"},
	{`untold|unsaid|unheard`, "not published, not received"},
	{`(certificate|token|lease|authority|kubeconfig) (ends|ended|has ended)`, "expires"},
	{`(has|have) (been )?whole`, "complete, healthy"},
	{`not known to answer`, "unknown"},
	{`status for eve`, "EVE sees"},
}

// usual lists uses of these words that stay, by file, with the reason.
var usual = map[string]string{
	"pkg/operate/operator/operator.go": `"ask no more" is the name of an operation in the audit`,
	"docs/wire.md":                     `"ask no more" is the name of an operation in the audit`,
	"CHANGELOG.md":                     `"ask no more" is the name of an operation in the audit`,
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

func TestWordsOfTheField(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(words))
	for i, w := range words {
		patterns[i] = regexp.MustCompile(`(?im)\b(?:` + w.pattern + `)(?:\b|$|\s)`)
	}
	files := slices.Concat(sources(t), documents(t), pageFiles(t))
	for _, file := range files {
		for line, text := range texts(file, []byte(content(t, file))) {
			if usual[file] != "" {
				text = strings.ReplaceAll(text, "ask no more", "")
			}
			for i, p := range patterns {
				if found := p.FindString(text); found != "" {
					t.Errorf("%s:%d: %q: better %s", file, line, strings.TrimSpace(found), words[i].instead)
				}
			}
		}
	}
}

// TestThePageAndTheCommandsUseTheSameWords compares what people read on both, side by side.
func TestThePageAndTheCommandsUseTheSameWords(t *testing.T) {
	var page strings.Builder
	for _, file := range pageFiles(t) {
		page.WriteString(content(t, file))
	}
	for word, command := range map[string]string{
		"BAD": "pkg/cli/statuscmd/view.go", "WARN": "pkg/cli/statuscmd/view.go", "unknown": "pkg/cli/statuscmd/view.go",
		"EVE sees": "pkg/cli/draincmd/screen.go", "force file": "pkg/cli/draincmd/screen.go", "requester": "pkg/cli/draincmd/screen.go",
		"FORCED": "pkg/cli/draincmd/screen.go", "NEVER": "pkg/cli/draincmd/screen.go",
	} {
		said := regexp.MustCompile("[\"`, ]" + word + "[\"`: ]")
		if !said.MatchString(page.String()) {
			t.Errorf("the page does not say %q, as %s does", word, command)
		}
		if !said.MatchString(content(t, command)) {
			t.Errorf("%s does not say %q, as the page does", command, word)
		}
	}
	for _, word := range []string{"Broken", "not known\""} {
		if strings.Contains(page.String(), word) {
			t.Errorf("the page says %q, which no command does", word)
		}
	}
	glossary := content(t, "docs/glossary.md")
	for _, word := range []string{"`BAD`", "`WARN`", "EVE sees"} {
		if !strings.Contains(glossary, word) {
			t.Errorf("docs/glossary.md does not explain %s", word)
		}
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	all, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// pageFiles are those of which the page consists.
func pageFiles(t *testing.T) (out []string) {
	t.Helper()
	for _, pattern := range []string{"*.js", "*.html"} {
		found, err := filepath.Glob(filepath.Join("../../pkg/operate/page/static", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		for _, name := range found {
			out = append(out, filepath.ToSlash(strings.TrimPrefix(name, "../../")))
		}
	}
	return out
}

// texts are what people read of a file, by line.
func texts(file string, content []byte) map[int]string {
	out := map[int]string{}
	if !strings.HasSuffix(file, ".go") {
		for i, line := range strings.Split(string(content), "\n") {
			out[i+1] = line
		}
		return out
	}
	var s scanner.Scanner
	set := token.NewFileSet()
	f := set.AddFile(file, -1, len(content))
	s.Init(f, content, nil, scanner.ScanComments)
	for {
		at, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return out
		case token.IDENT:
			literal = camel.ReplaceAllString(literal, "$1 $2")
		case token.STRING:
			literal = strings.Trim(literal, "\"`")
		case token.COMMENT:
		default:
			continue
		}
		for i, line := range strings.Split(literal, "\n") {
			n := f.Line(at) + i
			out[n] += line + "\n"
		}
	}
}

// documents are those that people read, but the glossary, which names the words.
func documents(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md", "CHANGELOG.md", "docs/alerts.yaml"}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			if rel, _ := filepath.Rel("../..", name); rel != filepath.Join("docs", "glossary.md") {
				out = append(out, filepath.ToSlash(rel))
			}
		}
	}
	return out
}
