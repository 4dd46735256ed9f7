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
			o := Options{Root: root, Page: f, OnCluster: true}
			if got := fmt.Sprint(o.PageAddress(), " ", o.PageToo(), " ", o.ClusterPort()); got != want {
				t.Errorf("%s with root %q: %q", said, root, got)
			}
		}
		if (Options{Page: f}).ClusterPort() != 0 {
			t.Errorf("%s: the page is on the cluster address, and nobody asked for it", said)
		}
	}
	var unsaid pageFlag
	here, below := Options{Page: unsaid}, Options{Page: unsaid, Root: "/srv/n1", OnCluster: true}
	if got := here.PageAddress() + below.PageAddress(); got != "127.0.0.1:12347" || here.PageToo() || below.ClusterPort() != 12347 {
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
