package phrase

import "testing"

func TestPhrases(t *testing.T) {
	for got, want := range map[string]string{
		Cut("näher", 6):            "näher",
		Cut("näher", 2):            "n...",
		Few(nil, 2):                "",
		Few([]string{"a", "b"}, 2): "a, b",
		Few([]string{"a", "b", "c", "d", "e"}, 2): "a, b and 3 more",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
