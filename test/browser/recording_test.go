package browser

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/test/screen"
)

// TestThePageTakesWhatIsRecorded fails where the page is sent something else
// today: then it is time for `make recording`.
func TestThePageTakesWhatIsRecorded(t *testing.T) {
	moments, err := screen.Load("../../" + screen.Recording)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range moments {
		_, data, ok := strings.Cut(m.Page, "event: overview\ndata: ")
		if !ok {
			continue
		}
		data, _, _ = strings.Cut(data, "\n")
		seen++
		decoder := json.NewDecoder(bytes.NewReader([]byte(data)))
		decoder.DisallowUnknownFields()
		var o overview.Overview
		if err := decoder.Decode(&o); err != nil {
			t.Fatalf("after %g s: %v", m.At, err)
		}
	}
	if seen == 0 {
		t.Error("no overview was recorded")
	}
}
