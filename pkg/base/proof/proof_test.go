package proof

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// noon is when requests are sent.
var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// withToken is the state of a cluster with that token.
func withToken(token string) types.EdgeNodeClusterStatus {
	s := types.EdgeNodeClusterStatus{EncryptedClusterToken: token}
	s.ClusterID.UUID = uuid.MustParse("7d9b5f8e-3f3c-4c53-9d6e-5a1f1e2d3c4b")
	return s
}

// old is a memory that began long ago.
func old() *Memory {
	p := &Memory{}
	p.Begin(time.Unix(0, 0))
	return p
}

func TestAProofFromBeforeTheProcessBeganIsRefused(t *testing.T) {
	key, _ := Key(withToken("secret"))
	a := Ask{Method: "POST", Host: "10.244.244.1:12346", Path: "/app/"}
	at := func(now time.Time, made time.Duration) error {
		var p Memory
		p.Begin(noon)
		p.Begin(noon.Add(time.Hour)) // it began once
		return p.Check(a, a.Sign(key, now.Add(made)), key, now)
	}
	later := noon.Add(30 * time.Second)
	for name, c := range map[string]struct {
		made time.Duration
		want error
	}{
		"used in the process before":  {-31 * time.Second, errEarlier},
		"as it began":                 {-30 * time.Second, nil},
		"now":                         {0, nil},
		"by a clock that is ahead":    {time.Minute, nil},
		"by one that is behind still": {-time.Minute, errEarlier},
	} {
		if err := at(later, c.made); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := at(noon.Add(5*time.Minute), -119*time.Second); err != nil {
		t.Errorf("minutes later a clock that is behind is no matter any more: %v", err)
	}
	var none Memory
	if err := none.Check(a, a.Sign(key, noon), key, noon); !errors.Is(err, errEarlier) {
		t.Errorf("a memory that has not begun: %v", err)
	}
}

func TestTheBeginningMovesWithTheClock(t *testing.T) {
	var p Memory
	now := time.Now()
	p.Begin(now)
	if p.began == now.Round(0) {
		t.Error("without its monotonic reading a clock that is put right makes the beginning wrong")
	}
	for _, set := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour} { // the wall clock, a minute after the start
		now := noon.Add(set)
		if want := now.Add(-time.Minute); !beginning(now, time.Minute).Equal(want) {
			t.Errorf("the clock was set by %v: the beginning is %v, not %v", set, beginning(now, time.Minute), want)
		}
	}
}

func TestProofIsGoodForOneRequestToOneServer(t *testing.T) {
	key, err := Key(withToken("K10abc::server:one"))
	if err != nil {
		t.Fatal(err)
	}
	otherKey, _ := Key(withToken("K10abc::server:two"))
	foreign := withToken("K10abc::server:one")
	foreign.ClusterID.UUID = uuid.MustParse("11111111-3f3c-4c53-9d6e-5a1f1e2d3c4b")
	foreignKey, _ := Key(foreign)
	good := Ask{Method: "POST", Host: "10.244.244.1:12346", Path: "/app/b3e2f"}
	rows := map[string]struct {
		header string
		to     Ask
		want   error
	}{
		"its request":            {header: good.Sign(key, noon), to: good},
		"a clock behind":         {header: good.Sign(key, noon.Add(-119*time.Second)), to: good},
		"a clock ahead":          {header: good.Sign(key, noon.Add(119*time.Second)), to: good},
		"too old":                {header: good.Sign(key, noon.Add(-121*time.Second)), to: good, want: errStale},
		"too far ahead":          {header: good.Sign(key, noon.Add(121*time.Second)), to: good, want: errStale},
		"another token":          {header: good.Sign(otherKey, noon), to: good, want: errWrong},
		"another cluster":        {header: good.Sign(foreignKey, noon), to: good, want: errWrong},
		"another method":         {header: good.Sign(key, noon), to: Ask{"GET", good.Host, good.Path}, want: errWrong},
		"another server":         {header: good.Sign(key, noon), to: Ask{good.Method, "10.244.244.2:12346", good.Path}, want: errWrong},
		"another path":           {header: good.Sign(key, noon), to: Ask{good.Method, good.Host, "/app/b3e2"}, want: errWrong},
		"none":                   {to: good, want: errNoProof},
		"another version":        {header: "v2" + good.Sign(key, noon)[2:], to: good, want: errNoProof},
		"no MAC":                 {header: "v1 1", to: good, want: errNoProof},
		"a time that is none":    {header: "v1 noon AAAA", to: good, want: errNoProof},
		"a time beyond reason":   {header: "v1 -9223372036854775808 AAAA", to: good, want: errStale},
		"a MAC that is cut":      {header: good.Sign(key, noon)[:40], to: good, want: errNoProof},
		"no base64":              {header: fmt.Sprintf("v1 %d !", noon.UnixNano()), to: good, want: errNoProof},
		"an empty MAC":           {header: fmt.Sprintf("v1 %d ", noon.UnixNano()), to: good, want: errWrong},
		"its time changed a bit": {header: strings.Replace(good.Sign(key, noon), "000 ", "001 ", 1), to: good, want: errWrong},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			p := old()
			if err := p.Check(r.to, r.header, key, noon); !errors.Is(err, r.want) {
				t.Errorf("got %v, want %v", err, r.want)
			}
		})
	}
}

func TestUsedProofIsRefused(t *testing.T) {
	key, _ := Key(withToken("secret"))
	a := Ask{Method: "POST", Host: "10.244.244.1:12346", Path: "/app/"}
	p := old()
	ahead := a.Sign(key, noon.Add(Window))
	for i, want := range []error{nil, errReplayed, errReplayed} {
		if err := p.Check(a, ahead, key, noon.Add(time.Duration(i)*2*Window/2)); !errors.Is(err, want) {
			t.Errorf("use %d: got %v, want %v", i, err, want)
		}
	}
	if err := p.Check(a, a.Sign(key, noon.Add(time.Nanosecond)), key, noon); err != nil {
		t.Errorf("the next question is refused: %v", err)
	}
	later := noon.Add(5 * Window)
	if err := p.Check(a, a.Sign(key, later), key, later); err != nil || len(p.seen) != 1 {
		t.Errorf("%v, and %d proofs are remembered for longer than they work", err, len(p.seen))
	}
}

func TestTheMemoryGoesByTheClockOfTheProofs(t *testing.T) {
	key, _ := Key(withToken("secret"))
	a := Ask{Method: "POST", Host: "10.244.244.1:12346", Path: "/app/"}
	p := old()
	now := time.Now()
	if err := p.Check(a, a.Sign(key, now), key, now); err != nil {
		t.Fatal(err)
	}
	for _, at := range p.seen {
		// A monotonic clock would forget it while one that was put back makes
		// it good again.
		if at != at.Round(0) {
			t.Errorf("it is forgotten by %v", at)
		}
	}
}

func TestMemoryOfProofsIsBounded(t *testing.T) {
	key, _ := Key(withToken("secret"))
	a := Ask{Method: "POST", Host: "10.244.244.1:12346", Path: "/app/"}
	p := old()
	for i := range maxSeen {
		if err := p.Check(a, a.Sign(key, noon.Add(time.Duration(i))), key, noon); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Check(a, a.Sign(key, noon.Add(time.Second)), key, noon); !errors.Is(err, errTooMany) {
		t.Errorf("got %v", err)
	}
}

func TestWithoutATokenNothingIsProved(t *testing.T) {
	if _, err := Key(withToken("")); !errors.Is(err, errNoToken) {
		t.Errorf("got %v", err)
	}
	a, _ := Key(withToken("x"))
	none := withToken("x")
	none.ClusterID.UUID = uuid.Nil
	if b, _ := Key(none); string(a) == string(b) || len(a) != 32 {
		t.Errorf("keys %x and %x", a, b)
	}
}

func FuzzProof(f *testing.F) {
	key, _ := Key(withToken("secret"))
	a := Ask{Method: "POST", Host: "10.244.244.1:12346", Path: "/app/"}
	good := a.Sign(key, noon)
	f.Add(good)
	f.Add("v1 1 AAAA")
	f.Add("v1  ")
	f.Fuzz(func(t *testing.T, header string) {
		p := old()
		if err := p.Check(a, header, key, noon); err == nil && header != good {
			t.Errorf("%q proves something", header)
		}
	})
}
