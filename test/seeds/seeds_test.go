package seeds

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPointsThatWereHitOftenAreLeftToOthersWhileAnyWereHitSeldom(t *testing.T) {
	all := []string{"a/before", "a/after", "b/before"}
	often := filepath.Join(t.TempDir(), "often")
	for _, row := range []struct {
		name, hit string
		want      []string
	}{
		{"none often", "", all},
		{"some often", "a/after\nelsewhere/before", []string{"a/before", "b/before"}},
		{"all often", "b/before\na/after\na/before", all},
	} {
		if err := os.WriteFile(often, []byte(row.hit), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(Often, often)
		if got := Seldom(t, all); !slices.Equal(got, row.want) {
			t.Errorf("%s: it is %q, not %q", row.name, got, row.want)
		}
	}
	t.Setenv(Often, "")
	if got := Seldom(t, all); !slices.Equal(got, all) {
		t.Errorf("without a soak: %q", got)
	}
}
