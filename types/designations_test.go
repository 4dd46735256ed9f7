package types

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

func TestDesignationsFitInAnAnnotation(t *testing.T) {
	all := Designations{Apps: map[string]Designation{}}
	for i := range 1000 {
		all.Apps[fmt.Sprintf("9f27b6c8-4e15-4a02-b3d9-%012d", i)] = Designation{Count: mostChanges, Yields: mostChanges}
	}
	fit := all.Fit()
	text, err := json.Marshal(fit)
	if err != nil || len(text) > 16<<10 || len(fit.Apps) != mostDesignations || fit.Omitted != 800 {
		t.Errorf("%d bytes with %d applications, %d omitted: %v", len(text), len(fit.Apps), fit.Omitted, err)
	}
	if again := all.Fit(); !again.Equal(fit) {
		t.Error("each time others are left out")
	}
}

func TestADesignationThatCannotBeIsNone(t *testing.T) {
	for _, d := range []Designation{{0, 0}, {-1, 0}, {math.MaxInt64, 0}, {1, -1}, {1, math.MaxInt64}} {
		all := &Designations{Apps: map[string]Designation{"a": d}}
		if got := all.Get("a"); got != (Designation{}) {
			t.Errorf("%+v is %+v", d, got)
		}
	}
	var none *Designations
	if got := none.Get("a"); got != (Designation{}) {
		t.Errorf("of none: %+v", got)
	}
}
