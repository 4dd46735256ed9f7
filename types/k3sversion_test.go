package types

import (
	"strings"
	"testing"
)

func TestVersionsOfK3s(t *testing.T) {
	for text, want := range map[string]K3sVersion{
		"v1.34.2+k3s1":     {1, 34, 2, "", "k3s1"},
		"v1.35.0-rc1+k3s1": {1, 35, 0, "rc1", "k3s1"},
		"v1.34.2":          {1, 34, 2, "", ""},
	} {
		if got, err := ParseK3sVersion(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "latest", "stable", "1.34.2+k3s1", "v1.34", "v1.34.2+", "v1.34.2-+k3s1", "v1.34.2+k3s1 ", "v1.34.2+k3s1\n", "v99999.1.1",
		"../../../../etc/x", "v1;reboot", "v1.34.2\"'`id`", "v1.34.2+k3s1/../..", "v1.34.2+" + strings.Repeat("k", 64),
	} {
		if got, err := ParseK3sVersion(text); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}

func TestWhichStepsOfK3sAreAllowed(t *testing.T) {
	for _, row := range []struct{ from, to, why string }{
		{"v1.34.2+k3s1", "v1.34.2+k3s1", ""},
		{"v1.34.2+k3s1", "v1.34.2+k3s2", ""},
		{"v1.34.2+k3s9", "v1.34.2+k3s10", ""},
		{"v1.34.2+k3s1", "v1.34.10+k3s1", ""},
		{"v1.34.2+k3s1", "v1.35.0+k3s1", ""},
		{"v1.34.2-rc1+k3s1", "v1.34.2+k3s1", ""},
		{"v1.34.2+k3s1", "v1.36.0+k3s1", "skips minor versions: update to v1.35 first"},
		{"v1.28.5+k3s1", "v1.34.2+k3s1", "skips minor versions: update to v1.29, then v1.30, then v1.31, then v1.32, then v1.33 first"},
		{"v1.28.5+k3s1", "v1.9999.2+k3s1", "v1.33, then v1.34 first"},
		{"v1.34.2+k3s1", "v1.34.1+k3s1", "k3s cannot be downgraded"},
		{"v1.34.2+k3s2", "v1.34.2+k3s1", "k3s cannot be downgraded"},
		{"v1.34.2+k3s1", "v1.34.2-rc2+k3s1", "k3s cannot be downgraded"},
		{"v1.34.2+k3s1", "v1.20.0+k3s1", "k3s cannot be downgraded"},
		{"v1.34.2+k3s1", "v2.0.0+k3s1", "another major version"},
		{"v1.34.2+k3s1", "latest", "it is not a version"},
		{"v1.34.2+k3s1", "", "it is not a version"},
		{"", "v1.34.2+k3s1", "which version runs here"},
		{"odd", "v1.34.2+k3s1", "cannot be compared"},
	} {
		err := CheckK3sStep(row.from, row.to)
		if (err == nil) != (row.why == "") || err != nil && !strings.Contains(err.Error(), row.why) {
			t.Errorf("%q to %q: %v, want %q", row.from, row.to, err, row.why)
		}
	}
}
