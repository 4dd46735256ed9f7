package printable

import "testing"

func TestWhatIsNoPlainTextIsShownAsAnEscape(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"plain \t é日𝄞\u3000\u00a0": "plain \t é日𝄞\u3000\u00a0",
		"می\u200cخواهم 👩\u200d💻":   "می\u200cخواهم 👩\u200d💻",
		"\x1b[2J\r\n\x00\x7f":      `\u001b[2J\u000d\u000a\u0000\u007f`,
		"\u009b\u202e\u200b":       `\u009b\u202e\u200b`,
		"a\x9b\xe6\x97b\ufffd":     `a\x9b\xe6\x97b\ufffd`,
		"\U000e0001":               `\U000e0001`,
		`\u009b stays`:             `\u009b stays`,
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
