package types

import (
	"testing"
	"time"
)

func TestCertificateState(t *testing.T) {
	now := time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for _, r := range []struct {
		name  string
		begun time.Duration
		left  time.Duration
		bad   string
		want  CertificateState
	}{
		{"valid", day, 100 * day, "", CertificateValid},
		{"fourteen days and a bit", day, 14*day + time.Second, "", CertificateValid},
		{"fourteen days", day, 14 * day, "", CertificateExpiresSoon},
		{"a moment", day, time.Second, "", CertificateExpiresSoon},
		{"expired this moment", day, 0, "", CertificateExpired},
		{"expired, and not trusted", day, -day, "unknown authority", CertificateExpired},
		{"not trusted", day, 7 * day, "unknown authority", CertificateNotTrusted},
		{"not yet valid", -time.Hour, 100 * day, "", CertificateNotBegun},
	} {
		c := Certificate{NotBefore: now.Add(-r.begun), NotAfter: now.Add(r.left), Unusable: r.bad}
		if got := c.State(now); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}

func TestCordoner(t *testing.T) {
	ours := &Cordon{By: "zedkube"}
	for _, r := range []struct {
		name string
		node Node
		want string
	}{
		{"schedulable", Node{}, ""},
		{"schedulable, with what a cordon left", Node{CordonedBy: ours, CordonKept: true}, ""},
		{"by zedkube", Node{Unschedulable: true, CordonedBy: ours}, CordonedByZedkube},
		{"kept by an operator", Node{Unschedulable: true, CordonedBy: ours, CordonKept: true}, CordonedKept},
		{"by somebody else", Node{Unschedulable: true}, CordonedByOperator},
		{"by somebody else, with a mark of a cordon that is gone", Node{Unschedulable: true, CordonKept: true}, CordonedByOperator},
	} {
		if got := r.node.Cordoner(); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

func TestJudgeClock(t *testing.T) {
	for ahead, want := range map[time.Duration]Severity{
		0: SeverityOK, 5 * time.Second: SeverityOK, -6 * time.Second: SeverityWarn, 30 * time.Second: SeverityWarn, -31 * time.Second: SeverityBad,
	} {
		if got := JudgeClock(ahead); got != want {
			t.Errorf("%s ahead: %s, want %s", ahead, got, want)
		}
	}
}
