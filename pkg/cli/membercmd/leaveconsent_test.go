package membercmd

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/peers"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/types"
)

func TestAConsentIsGivenByRootAtATerminalOrWithTheDigest(t *testing.T) {
	g := joinplan.GiveUp{Volumes: []types.LeaveVolume{{Name: "pvc-1", Claim: "app/data"}, {Name: "pvc-2"}}, Digest: "d1"}
	for name, row := range map[string]struct {
		who  consenting
		node string
		why  string // "" for given
	}{
		"by name at a terminal":         {consenting{in: strings.NewReader("n1\n"), terminal: true, root: true}, "n1", ""},
		"without a last newline":        {consenting{in: strings.NewReader("n1"), terminal: true, root: true}, "n1", ""},
		"by another name":               {consenting{in: strings.NewReader("yes\n"), terminal: true, root: true}, "n1", "the name typed is not that of this node"},
		"by nothing":                    {consenting{in: strings.NewReader(""), terminal: true, root: true}, "n1", "the name typed is not that of this node"},
		"by nothing for no name":        {consenting{in: strings.NewReader("\n"), terminal: true, root: true}, "", "is not known"},
		"by name without a terminal":    {consenting{in: strings.NewReader("n1\n"), root: true}, "n1", "not a terminal"},
		"by somebody else":              {consenting{in: strings.NewReader("n1\n"), terminal: true}, "n1", "only root"},
		"by somebody else, with digest": {consenting{digest: "d1"}, "n1", "only root"},
		"with the digest":               {consenting{digest: "d1", root: true}, "n1", ""},
		"with the digest of another":    {consenting{digest: "d2", root: true}, "n1", "is now"},
		"with another at a terminal":    {consenting{in: strings.NewReader("n1\n"), digest: "d2", terminal: true, root: true}, "n1", "is now"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := row.who.confirm(t.Context(), &out, row.node, g)
			if row.why == "" {
				if err != nil || !strings.Contains(out.String(), "pvc-1 (app/data)") || !strings.Contains(out.String(), "pvc-2") {
					t.Errorf("%v after %q", err, out.String())
				}
				return
			}
			if terminal.ExitCode(err) != exitRefused || !strings.Contains(err.Error(), row.why) {
				t.Errorf("%v, want it refused because %q", err, row.why)
			}
		})
	}
}

func TestAnOperatorWhoIsInterruptedConsentsToNothing(t *testing.T) {
	in, hangs := io.Pipe()
	defer hangs.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	who := consenting{in: in, terminal: true, root: true}
	err := who.confirm(ctx, io.Discard, "n1", joinplan.GiveUp{Digest: "d1"})
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Error(err)
	}
}

func TestThePromptSaysWhatIsNotKnownAndWhatEnds(t *testing.T) {
	for want, g := range map[string]joinplan.GiveUp{
		"NOT KNOWN":                                  {Unknown: true},
		"as of 2026-05-03 06:00:00Z":                 {AsOf: time.Date(2026, 5, 3, 6, 0, 0, 0, time.UTC)},
		"No volume has data here":                    {},
		"since then: their data is lost as well":     {Unknown: true, AsOf: time.Date(2026, 5, 3, 6, 0, 0, 0, time.UTC)},
		"The cluster ceases to exist with this node": {Ends: true},
		"The data of 1 volume is lost":               {Volumes: []types.LeaveVolume{{Name: "v"}}},
		"  v\\x1b[31m":                               {Volumes: []types.LeaveVolume{{Name: "v\x1b[31m"}}},
		"  pvc-1 (app/data)":                         {Volumes: []types.LeaveVolume{{Name: "pvc-1", Claim: "app/data"}}},
	} {
		text := strings.Join(giveUpLines(g), "\n")
		if strings.Contains(text, "\x1b") {
			t.Errorf("%q reaches the terminal", text)
		}
		if !strings.Contains(want, `\x1b`) && !strings.Contains(text, want) {
			t.Errorf("%q, want %q in it", text, want)
		}
	}
}

func TestASurvivorIsToldWhyItMustNotLeave(t *testing.T) {
	good := ownEvidence{fetched: true}
	for name, row := range map[string]struct {
		change func(*ownEvidence)
		why    string
	}{
		"nothing":           {func(*ownEvidence) {}, ""},
		"a living API":      {func(f *ownEvidence) { f.answers = true }, "the API server answers"},
		"an answer":         {func(f *ownEvidence) { f.look.Answer = "node n2 answers at 10.0.0.2:10250" }, "node n2 answers"},
		"no cable":          {func(f *ownEvidence) { f.look.Carrier = "interface eth1 has no link" }, "no link"},
		"no way out at all": {func(f *ownEvidence) { f.fetched = false }, "neither a gateway nor the controller"},
		"a gateway alone":   {func(f *ownEvidence) { f.fetched, f.look = false, peers.Look{Gateway: true} }, ""},
		"too many volumes":  {func(f *ownEvidence) { f.known.Omitted = 1 }, "more volumes"},
	} {
		f := good
		row.change(&f)
		if got := f.against(); got != row.why && (row.why == "" || !strings.Contains(got, row.why)) {
			t.Errorf("%s: %q, want %q", name, got, row.why)
		}
	}
	f := ownEvidence{known: types.ClusterPeers{Words: []types.PeerWord{{By: "n2", Of: "n3", At: time.Now().Add(-3 * time.Hour)}, {By: "n3", Of: "n2", Alive: "10.0.0.2:10250", At: time.Now()}}}}
	text := strings.Join(f.warnings(), "\n")
	for _, want := range []string{"keep the old cluster", "may run the same", "The last report of n2: n3 did not answer", "3h", "The last report of n3: n2 answered at 10.0.0.2:10250", "It is not taken into account"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}
