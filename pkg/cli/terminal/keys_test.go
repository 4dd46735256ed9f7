package terminal

import "testing"

func TestTypedKeys(t *testing.T) {
	for sent, want := range map[string]string{"q": "q", "\x1b[A\x1b[Bq": "kjq", "\x1b[5~\x1b[6~": "b ", "\x1b[99;99Rq": "", "\x1b": "", "": ""} {
		if got := typed(sent); got != want {
			t.Errorf("%q: got %q, want %q", sent, got, want)
		}
	}
}
