package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnderTheNameOfEVEsProgramItIsThatCommand(t *testing.T) {
	for _, row := range []struct{ argv, want []string }{
		{nil, []string{}},
		{[]string{"zedkube"}, []string{}},
		{[]string{"/opt/zededa/bin/zedkube", "status", "-o", "json"}, []string{"status", "-o", "json"}},
		{[]string{"cluster-status-probe"}, []string{"cluster-status-probe"}},
		{[]string{"/usr/bin/cluster-status-probe", "10.0.0.1", "12346"}, []string{"cluster-status-probe", "10.0.0.1", "12346"}},
		{[]string{"/usr/bin/cluster-status-probe", "--help"}, []string{"cluster-status-probe", "--help"}},
		{[]string{"/cluster-status-probe/zedkube", "version"}, []string{"version"}},
	} {
		if d := cmp.Diff(row.want, Arguments(row.argv)); d != "" {
			t.Errorf("%q: want -, got +\n%s", row.argv, d)
		}
	}
}
