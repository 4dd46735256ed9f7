package main

import (
	"strings"
	"testing"
	"time"
)

func TestTheRestIsReckonedFromTheSpeedSoFar(t *testing.T) {
	begin := time.Now()
	b := newBuild(begin)
	b.now = "cluster"
	if is := b.progress(begin.Add(time.Second)); !strings.Contains(is, "not known yet") {
		t.Errorf("before anything is known: %s", is)
	}
	b.all = 100e6
	b.sizes, b.dirs = map[string]int64{"/go/a": 10e6}, map[string][]string{"example.com/a": {"/go/a"}}
	b.sources = map[string]*source{
		"zedkube": {packages: 1, size: 10e6}, "demo": {}, "kwok": {packages: 5, size: 10e6}, "devkube": {packages: 100, size: 80e6},
	}
	for _, row := range []struct{ printed, want string }{
		{"example.com/a\n", "10 of 100 MB of source are compiled, at this speed at most 9m0s to go"},
		{"example.com/a\nsomething else\ndevcluster: building devkube: 25 of", "10 of 100 MB"},
		{" at most 900 packages after 5s, at b\n", "30 of 100 MB of source are compiled, at this speed at most 2m20s to go"},
		{"devcluster: ended devkube: 70 of at most 900 packages after 9s, at c\n", "90 of 100 MB of source are compiled, at this speed at most 10s to go"},
	} {
		if _, err := b.Write([]byte(row.printed)); err != nil {
			t.Fatal(err)
		}
		if is := b.progress(begin.Add(time.Minute)); !strings.Contains(is, "make cluster, for 1m0s; "+row.want) {
			t.Errorf("after %q: %s", row.printed, is)
		}
	}
}
