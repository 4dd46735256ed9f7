package manual

import (
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"
)

// HTML is the documents as one page, which wants nothing but the page's own style sheet.
func (m *Manual) HTML() []byte {
	var b strings.Builder
	b.WriteString(htmlBegin)
	for _, d := range m.pages {
		for _, block := range d.blocks {
			m.html(&b, d.name, block)
		}
	}
	b.WriteString("</main>\n</body>\n</html>\n")
	return []byte(b.String())
}

const htmlBegin = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Manual of zedkube</title>
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/page.css">
</head>
<body>
<header><p><a href="/">The page of this device</a></p></header>
<main id="main" class="manual">
`

func (m *Manual) html(b *strings.Builder, file string, block Block) {
	text := func(s string) string { return m.inline(file, s) }
	switch block.Kind {
	case Heading:
		fmt.Fprintf(b, "<h%d id=\"%s\">%s</h%[1]d>\n", min(block.Level, 6), Anchor(block.Text), text(block.Text))
	case Paragraph:
		fmt.Fprintf(b, "<p>%s</p>\n", text(block.Text))
	case Code:
		fmt.Fprintf(b, "<pre tabindex=\"0\">%s</pre>\n", html.EscapeString(block.Text))
	case List:
		b.WriteString("<ul>\n")
		for _, item := range block.Items {
			fmt.Fprintf(b, "<li>%s</li>\n", text(item))
		}
		b.WriteString("</ul>\n")
	case Table:
		b.WriteString("<table>\n")
		for i, row := range block.Rows {
			if i == 0 && strings.Join(row, "") == "" {
				continue
			}
			b.WriteString("<tr>")
			for j, cell := range row {
				switch {
				case i == 0:
					fmt.Fprintf(b, "<th scope=\"col\">%s</th>", text(cell))
				case j == 0:
					fmt.Fprintf(b, "<th scope=\"row\">%s</th>", text(cell))
				default:
					fmt.Fprintf(b, "<td>%s</td>", text(cell))
				}
			}
			b.WriteString("</tr>\n")
		}
		b.WriteString("</table>\n")
	}
}

var (
	span   = regexp.MustCompile("`([^`]+)`")
	strong = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// inline is a text with its marks as elements. A link leads to another place of this page, or is text.
func (m *Manual) inline(file, text string) string {
	var kept []string
	keep := func(element string) string {
		kept = append(kept, element)
		return fmt.Sprintf("\x00%d\x00", len(kept)-1)
	}
	text = strings.ReplaceAll(text, "\x00", "")
	text = span.ReplaceAllStringFunc(text, func(s string) string {
		return keep("<code>" + html.EscapeString(strings.Trim(s, "`")) + "</code>")
	})
	text = link.ReplaceAllStringFunc(text, func(s string) string {
		parts := link.FindStringSubmatch(s)
		shown := html.EscapeString(parts[1])
		if to := m.target(file, parts[2]); to != "" {
			shown = `<a href="#` + html.EscapeString(to) + `">` + shown + "</a>"
		}
		return keep(shown)
	})
	text = strong.ReplaceAllString(html.EscapeString(strings.ReplaceAll(text, `\<`, "<")), "<strong>$1</strong>")
	for i := len(kept) - 1; i >= 0; i-- { // a link may have code in it
		text = strings.ReplaceAll(text, fmt.Sprintf("\x00%d\x00", i), kept[i])
	}
	return text
}

// target is the anchor on this page that a link leads to, "" where it leads elsewhere.
func (m *Manual) target(file, to string) string {
	name, at, _ := strings.Cut(to, "#")
	if name == "" {
		name = file
	}
	i := slices.IndexFunc(m.pages, func(d document) bool { return d.name == path.Clean(name) })
	switch {
	case i < 0:
		return ""
	case at == "":
		return Anchor(m.pages[i].blocks[0].Text)
	}
	return at
}

var noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)

// Anchor is what a link to a heading has after #.
func Anchor(heading string) string {
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
