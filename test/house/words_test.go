package house

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
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
	files := append(sources(t), documents(t)...)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		for line, text := range texts(file, content) {
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
