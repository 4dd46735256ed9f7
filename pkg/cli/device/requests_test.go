package device

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheAgentTakesEveryRequestOfACommand holds the table of the agent against
// the commands: all that they open is there.
func TestTheAgentTakesEveryRequestOfACommand(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	source := func(file string) string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	table := source("api.go")
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, part := range strings.Split(source(file), "OperatorTopic[")[1:] {
			topic, _, _ := strings.Cut(part, "]")
			if !strings.HasPrefix(topic, "types.") {
				continue
			}
			found++
			if !strings.Contains(table, "operator.TopicOf["+topic+"]") {
				t.Errorf("%s asks for %s, which OperatorTopics lacks", file, topic)
			}
		}
	}
	if found == 0 {
		t.Error("no command asks for anything")
	}
}
