package house

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// manual are the documents for operators.
var manual = []string{"operations.md", "runbook.md", "alerts.md", "files.md", "commands.md"}

var (
	headingLine = regexp.MustCompile(`(?m)^#+ (.+)$`)
	chapterLine = regexp.MustCompile(`(?m)^## (.+)$`)
	codeBlock   = regexp.MustCompile("(?ms)^```.*?^```$")
	linkTo      = regexp.MustCompile(`\]\(([^)#:\s]*)#([^)\s]+)\)`)
	cited       = regexp.MustCompile(`\b((?:operations|runbook|commands|alerts|files)\.md), \\?"([^"\\]+)\\?"`)
	nextLine    = regexp.MustCompile(`\n\s*(?://|#)? *`)
	noAnchor    = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchor is what a link to a heading has after #, as GitHub and the page have it.
func anchor(heading string) string {
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// anchors are those of a document.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range headingLine.FindAllStringSubmatch(text(t, file), -1) {
		all[anchor(m[1])] = true
	}
	return all
}

// text is a file of the repository, without blocks of code.
func text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(file, ".md") {
		return string(content)
	}
	return codeBlock.ReplaceAllString(string(content), "")
}

func TestEveryLinkToAHeadingLeadsToOne(t *testing.T) {
	known := map[string]map[string]bool{}
	links := 0
	for _, file := range append(documents(t), "docs/glossary.md") {
		for _, m := range linkTo.FindAllStringSubmatch(text(t, file), -1) {
			to := file
			if m[1] != "" {
				to = path.Join(path.Dir(file), m[1])
			}
			if !strings.HasSuffix(to, ".md") {
				continue
			}
			if known[to] == nil {
				known[to] = anchors(t, to)
			}
			if links++; !known[to][m[2]] {
				t.Errorf("%s links to %s#%s, which has no such heading", file, to, m[2])
			}
		}
	}
	if links < 200 {
		t.Errorf("only %d links are found", links)
	}
}

// TestEveryHeadingThatIsCitedExists looks at what code and documents say as: runbook.md, "Gates".
func TestEveryHeadingThatIsCitedExists(t *testing.T) {
	known := map[string]map[string]bool{}
	for _, name := range manual {
		known[name] = anchors(t, "docs/"+name)
	}
	found := 0
	for _, file := range append(append(sources(t), documents(t)...), "deploy/rbac.yaml", "docs/alerts.yaml", "test/devcluster/permissions.go") {
		if file == "CHANGELOG.md" {
			continue // it says what was so then
		}
		for _, m := range cited.FindAllStringSubmatch(nextLine.ReplaceAllString(text(t, file), " "), -1) {
			if found++; !known[m[1]][anchor(m[2])] {
				t.Errorf("%s cites %s, which has no heading %q", file, m[1], m[2])
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d citations are found", found)
	}
}

// TestContentsAreComplete holds the tables at the beginning of the documents for operators against their chapters.
func TestContentsAreComplete(t *testing.T) {
	for _, name := range []string{"operations.md", "runbook.md", "commands.md"} {
		content := text(t, "docs/"+name)
		first := strings.Index(content, "\n## ")
		for _, m := range chapterLine.FindAllStringSubmatch(content, -1) {
			if !strings.Contains(content[:first], "](#"+anchor(m[1])+")") {
				t.Errorf("the contents of docs/%s lack %q", name, m[1])
			}
		}
	}
}

// TestAHeadingStandsInOneDocument: the page shows the documents that the program carries as one, so
// the name of a heading has to lead to one place.
func TestAHeadingStandsInOneDocument(t *testing.T) {
	in := map[string]string{}
	for _, name := range manual[:4] {
		for _, m := range headingLine.FindAllStringSubmatch(text(t, "docs/"+name), -1) {
			if other := in[anchor(m[1])]; other != "" {
				t.Errorf("%q is a heading of %s and of %s", m[1], other, name)
			}
			in[anchor(m[1])] = name
		}
	}
}

// TestARowHasACellForEachColumn: of one with more, such as a bar in a command, the rest is not shown.
func TestARowHasACellForEachColumn(t *testing.T) {
	for _, name := range manual {
		columns := 0
		for i, line := range strings.Split(text(t, "docs/"+name), "\n") {
			if !strings.HasPrefix(line, "|") {
				columns = 0
				continue
			}
			n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
			if columns == 0 {
				columns = n
			}
			if n != columns {
				t.Errorf("docs/%s:%d has %d cells, its table %d", name, i+1, n-1, columns-1)
			}
		}
	}
}
