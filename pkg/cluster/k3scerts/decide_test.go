package k3scerts

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

const day = 24 * time.Hour

var now = time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC)

func lasts(left time.Duration) types.K3sCertificate {
	return types.K3sCertificate{Name: "kubelet", NotBefore: now.Add(-day), NotAfter: now.Add(left)}
}

func TestACertificateIsJudgedByTheTimeItHasLeft(t *testing.T) {
	for left, want := range map[time.Duration][2]types.K3sCertificateState{ // of a leaf, of an authority
		3650 * day:          {types.CertFine, types.CertFine},
		730*day + 1:         {types.CertFine, types.CertFine},
		730 * day:           {types.CertFine, types.CertDue},
		180*day + 1:         {types.CertFine, types.CertDue},
		180 * day:           {types.CertFine, types.CertUrgent},
		120*day + 1:         {types.CertFine, types.CertUrgent},
		120 * day:           {types.CertRenewable, types.CertUrgent},
		60*day + 1:          {types.CertRenewable, types.CertUrgent},
		60 * day:            {types.CertDue, types.CertUrgent},
		14*day + 1:          {types.CertDue, types.CertUrgent},
		14 * day:            {types.CertUrgent, types.CertUrgent},
		-time.Nanosecond:    {types.CertUrgent, types.CertUrgent},
		-3650 * day:         {types.CertUrgent, types.CertUrgent},
		time.Duration(0):    {types.CertUrgent, types.CertUrgent},
		100 * 365 * day:     {types.CertFine, types.CertFine},
		365*day - time.Hour: {types.CertFine, types.CertDue},
	} {
		s := decide(facts{now: now, leaves: []types.K3sCertificate{lasts(left)}, authorities: []types.K3sCertificate{lasts(left)}})
		if got := [2]types.K3sCertificateState{s.Leaves[0].State, s.Authorities[0].State}; got != want {
			t.Errorf("%v: %v, not %v", left, got, want)
		}
	}
}

func TestTheFirstToExpireIsFirst(t *testing.T) {
	s := decide(facts{now: now, leaves: []types.K3sCertificate{lasts(300 * day), lasts(10 * day), lasts(100 * day)}})
	if s.Leaves[0].State != types.CertUrgent || s.Leaves[1].State != types.CertRenewable || s.Leaves[2].State != types.CertFine {
		t.Errorf("%+v", s.Leaves)
	}
}

func TestWhereNothingIsFoundWhatWasKnownIsJudgedAgain(t *testing.T) {
	s := decide(facts{now: now, unread: []string{"b", "a"}, published: types.K3sCertificates{Leaves: []types.K3sCertificate{lasts(50 * day)}}})
	if len(s.Leaves) != 1 || s.Leaves[0].State != types.CertDue || strings.Join(s.Unread, "") != "ab" {
		t.Errorf("%+v", s)
	}
}

func TestAClockThatNobodyConfirmsIsDoubted(t *testing.T) {
	with := func(ahead ...time.Duration) map[string]types.NodeClock {
		m := map[string]types.NodeClock{}
		for i, d := range ahead {
			m[string(rune('a'+i))] = types.NodeClock{Ahead: d}
		}
		return m
	}
	young := lasts(300 * day)
	young.NotBefore, young.Where = now.Add(time.Second), "/persist/vault/kube/rancher/k3s/agent/serving-kubelet.crt"
	presented := young
	presented.Where = "10.90.7.21:10250"
	for name, r := range map[string]struct {
		seen    time.Duration // before now; 0 for never
		contact bool
		clocks  map[string]types.NodeClock
		leaf    types.K3sCertificate
		doubt   string
		moves   bool // the newest time
	}{
		"the first time, alone":                      {0, false, nil, lasts(300 * day), "", false},
		"the first time, others do not agree":        {0, false, with(-10 * 365 * day), lasts(300 * day), "", false},
		"the first time, with the controller":        {0, true, nil, lasts(300 * day), "", true},
		"the first time, most nodes agree":           {0, false, with(0, 0, day), lasts(300 * day), "", true},
		"a moment later":                             {time.Minute, false, nil, lasts(300 * day), "", false},
		"an hour later":                              {time.Hour, false, nil, lasts(300 * day), "", true},
		"a day later":                                {day, false, nil, lasts(300 * day), "", true},
		"more than a day later, alone":               {day + 1, false, nil, lasts(300 * day), "neither the controller", false},
		"years later, alone":                         {3650 * day, false, nil, lasts(300 * day), "neither the controller", false},
		"more than a day later, with the controller": {90 * day, true, nil, lasts(300 * day), "", true},
		"more than a day later, most nodes agree":    {90 * day, false, with(time.Hour, -time.Hour, 90*day), lasts(300 * day), "", true},
		"more than a day later, half of them agree":  {90 * day, false, with(0, time.Hour+1), lasts(300 * day), "neither the controller", false},
		"more than a day later, none of them agrees": {90 * day, false, with(-90 * day), lasts(300 * day), "neither the controller", false},
		"before what was seen, all confirm it":       {-3650 * day, true, with(0, 0), lasts(300 * day), "", true},
		"before what was seen, with the controller":  {-1, true, nil, lasts(300 * day), "", true},
		"before what was seen, others do not agree":  {-1, true, with(day), lasts(300 * day), "has seen", false},
		"before what was seen, only the others":      {-1, false, with(0, 0), lasts(300 * day), "has seen", false},
		"before what was seen, alone":                {-1, false, nil, lasts(300 * day), "has seen", false},
		"before what anybody presents":               {time.Hour, true, with(0), presented, "", true},
		"before a certificate that is not valid yet": {time.Hour, true, with(0), young, "not valid before", false},
		"after an expiry, with the controller":       {time.Hour, true, nil, lasts(-day), "", true},
	} {
		f := facts{now: now, contact: r.contact, clocks: r.clocks, hears: true, leaves: []types.K3sCertificate{r.leaf}}
		if r.seen != 0 {
			f.published.SeenAt = now.Add(-r.seen)
		}
		s := decide(f)
		if (s.ClockDoubt == "") != (r.doubt == "") || !strings.Contains(s.ClockDoubt, r.doubt) || s.SeenAt.Equal(now) != r.moves {
			t.Errorf("%s: %q, %v", name, s.ClockDoubt, s.SeenAt)
		}
	}
}

func TestWhatTheOthersAgreedWithBeforeTheAPIServerFellSilentConfirmsNothing(t *testing.T) { // this clock may have been set since
	f := facts{now: now, clocks: map[string]types.NodeClock{"b": {}, "c": {}}, leaves: []types.K3sCertificate{lasts(300 * day)}}
	if s := decide(f); !s.SeenAt.IsZero() {
		t.Errorf("the first time: %v", s.SeenAt)
	}
	f.published.SeenAt = now.Add(-90 * day)
	if s := decide(f); !strings.Contains(s.ClockDoubt, "neither the controller") || !s.SeenAt.Equal(f.published.SeenAt) {
		t.Errorf("months later: %q, %v", s.ClockDoubt, s.SeenAt)
	}
	f.published.SeenAt, f.contact = now.Add(day), true
	if s := decide(f); !strings.Contains(s.ClockDoubt, "has seen") || !s.SeenAt.Equal(f.published.SeenAt) {
		t.Errorf("before what was seen, with the controller: %q, %v", s.ClockDoubt, s.SeenAt)
	}
}
