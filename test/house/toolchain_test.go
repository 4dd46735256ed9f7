package house

import (
	"os"
	"regexp"
	"testing"
)

// A program built with another standard library has other bytes, and other holes.
func TestEveryModuleThatIsBuiltWithTheProgramNamesItsToolchain(t *testing.T) {
	first := ""
	for _, file := range []string{"go.mod", "test/browser/go.mod", "test/coredns/go.mod", "test/tools/go.mod"} {
		content, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(`(?m)^toolchain go1\.\d+\.\d+$`).FindString(string(content))
		if line == "" {
			t.Errorf("%s names no toolchain", file)
		}
		if first == "" {
			first = line
		}
		if line != first {
			t.Errorf("%s: %q, go.mod: %q", file, line, first)
		}
	}
}
