package screen

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the picture of the recording")

// TestThePictureIsOfTheRecording holds docs/screens/run.svg against the recorded run.
func TestThePictureIsOfTheRecording(t *testing.T) {
	moments, err := Load("../../" + Recording)
	if err != nil {
		t.Fatal(err)
	}
	want := SVG(moments)
	file := filepath.Join("../..", Picture)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale (%v): go test ./test/screen -run Picture -update", Picture, err)
	}
	if len(want) > 500_000 {
		t.Errorf("it has %d bytes", len(want))
	}
	for _, m := range moments {
		if m.Step != "" && !strings.Contains(string(want), strings.Fields(m.Step)[0]) {
			t.Errorf("it does not show %q", m.Step)
		}
	}
}

func TestAPictureIsXMLAndRunsNothing(t *testing.T) {
	picture := SVG([]Moment{
		{At: 0, Step: "begins", Detail: " <now> & then"},
		{At: 1, Table: []string{"NODE", "n<1>"}},
		{At: 2, Who: "n1", Agent: "nim", Text: `says "so"`},
		{At: 90, Table: []string{"NODE", "n2"}},
		{At: 90.1, Page: "not shown"},
		{At: 91, Step: "ends"},
	})
	d := xml.NewDecoder(bytes.NewReader(picture))
	texts := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, is := token.(xml.StartElement); is {
			switch e.Name.Local {
			case "text":
				texts++
			case "svg", "style", "rect":
			default:
				t.Errorf("it has an element %s", e.Name.Local)
			}
		}
	}
	if texts != 1+2+4+1 || strings.Contains(string(picture), "not shown") {
		t.Errorf("%d texts:\n%s", texts, picture)
	}
	// The first table goes when the second comes, and not after the 88 s that this took.
	if !strings.Contains(string(picture), "animation:k1 9.") && !strings.Contains(string(picture), "animation:k1 10.") {
		t.Errorf("it takes another time:\n%s", picture)
	}
}
