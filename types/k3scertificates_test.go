package types

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheRenewalWindowOfK3s(t *testing.T) {
	for version, days := range map[string]time.Duration{
		"v1.28.5+k3s1": 90, "v1.30.12+k3s1": 90, "v1.30.13+k3s1": 120, "v1.31.8+k3s2": 90, "v1.31.9+k3s1": 120, "v1.32.4+k3s1": 90, "v1.32.5+k3s1": 120,
		"v1.33.0+k3s1": 90, "v1.33.1+k3s1": 120, "v1.34.2+k3s1": 120, "v1.36.0+k3s1": 120, "": 90, "latest": 90,
	} {
		if got := RenewalWindow(version); got != days*certDay {
			t.Errorf("%q: %s", version, got)
		}
	}
}

func TestWhatARequestToRenewCertificatesIsRefusedFor(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	leaf := func(days time.Duration) K3sCertificates {
		return K3sCertificates{Leaves: []K3sCertificate{{NotAfter: now.Add(300 * certDay)}, {NotAfter: now.Add(days * certDay)}}}
	}
	doubted := leaf(10)
	doubted.ClockDoubt = "It says 2031."
	for name, row := range map[string]struct {
		certs   K3sCertificates
		l       KubeLifecycle
		version string
		force   bool
		refused string // "" where it is made
	}{
		"one expires soon":                {leaf(120), KubeLifecycle{}, "v1.34.2+k3s1", false, ""},
		"none does":                       {leaf(121), KubeLifecycle{}, "v1.34.2+k3s1", false, "none of 2 certificates expires within 120 days"},
		"none does, with an older k3s":    {leaf(100), KubeLifecycle{}, "v1.32.4+k3s1", false, "within 90 days"},
		"none does, and it is forced":     {leaf(200), KubeLifecycle{}, "v1.34.2+k3s1", true, ""},
		"none is known":                   {K3sCertificates{}, KubeLifecycle{}, "v1.34.2+k3s1", true, "not read any"},
		"the clock is doubted":            {doubted, KubeLifecycle{}, "v1.34.2+k3s1", true, "2031"},
		"k3s is being restarted for them": {leaf(10), KubeLifecycle{Kind: K3sRestart, Restart: K3sRestartStatus{Wish: RestartDue}}, "v1.34.2+k3s1", false, "being restarted"},
	} {
		r, err := AskCertsReset(row.certs, row.l, row.version, row.force, now)
		if (err == nil) != (row.refused == "") || err != nil && !strings.Contains(err.Error(), row.refused) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (r.Force != row.force || !r.RequestedAt.Equal(now)) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	waits := KubeLifecycle{Restart: K3sRestartStatus{Preconditions: []KubeLifecyclePrecondition{{Name: "Lock"}, {Name: "Turn", Release: true}, {Name: "Clock", Holds: true}}}}
	if r, err := AskCertsReset(leaf(10), waits, "v1.34.2+k3s1", false, now); err != nil || !slices.Equal(r.Without, []string{"Turn"}) {
		t.Errorf("%+v, %v", r, err)
	}
}
