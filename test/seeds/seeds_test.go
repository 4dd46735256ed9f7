package seeds

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// logged is what a test logs last.
type logged struct {
	testing.TB
	text string
}

func (l *logged) Logf(format string, args ...any) { l.text = fmt.Sprintf(format, args...) }

func TestTheSeedRepeatsWhatHappensByChance(t *testing.T) {
	log := &logged{TB: t}
	play := func(seed string) [3]uint64 {
		t.Setenv(First, seed)
		log.text = ""
		rng := Rand(log)
		other := Split(rng)
		return [3]uint64{rng.Uint64(), other.Uint64(), Split(rng).Uint64()}
	}
	first := play("")
	seed, _, _ := strings.Cut(strings.TrimPrefix(log.text, First+"="), " ")
	if again := play(seed); again != first || log.text != "" {
		t.Errorf("with the seed %q, which was logged, it is %d, not %d, and logs %q", seed, again, first, log.text)
	}
	one, two := play("1"), play("2")
	if all := slices.Concat(one[:], two[:]); len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Errorf("two seeds and three goroutines have %d", all)
	}
}

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
