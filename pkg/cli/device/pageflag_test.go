package device

import (
	"fmt"
	"testing"
)

func TestWhereThePageIs(t *testing.T) {
	for said, want := range map[string]string{
		"on": "127.0.0.1:12347 true 12347", "metrics": "127.0.0.1:12347 false 12347", "off": " false 12347", "9000": "127.0.0.1:9000 true 9000",
	} {
		var f pageFlag
		if err := f.Set(said); err != nil || f.String() != said {
			t.Errorf("%s is taken for %s: %v", said, f.String(), err)
		}
		for _, root := range []string{"", "/srv/n1"} {
			if got := fmt.Sprint(f.address(root), " ", f.too(), " ", f.clusterPort(true)); got != want {
				t.Errorf("%s with root %q: %q", said, root, got)
			}
		}
		if f.clusterPort(false) != 0 {
			t.Errorf("%s: the page is on the cluster address, and nobody asked for it", said)
		}
	}
	var unsaid pageFlag
	if got := unsaid.address("") + unsaid.address("/srv/n1"); got != "127.0.0.1:12347" || unsaid.too() {
		t.Errorf("without the flag: %q", got)
	}
	for _, bad := range []string{"", "yes", "0", "65536", "-1", "127.0.0.1:1", "0.0.0.0:80", "on\n"} {
		if err := unsaid.Set(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	root := NewRoot(&Options{})
	root.Flags().Var(&unsaid, "page", "")
	if err := root.ParseFlags([]string{"--page=perhaps"}); err == nil {
		t.Errorf("a word that makes no sense: %v", err)
	}
}
