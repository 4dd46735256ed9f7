package kubeapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/kubeapi/network"
	"github.com/zedkube/zedkube/types"
)

var (
	nodeOne = types.Node{Name: "n1", UID: "u1"}
	nodeTwo = types.Node{Name: "n2", UID: "u2"}
)

const (
	contents = `{"cniVersion":"0.3.1","plugins":[{"type":"host-device","device":"eth1"}]}`
	// eves is how EVE's own zedkube spells it.
	eves = "{\n\t\"plugins\": [ { \"device\": \"eth1\",\n \"type\": \"host-device\" } ],\n \"cniVersion\": \"0.3.1\" }"
)

func TestAnAttachmentIsMadeOnceForAllItsOwners(t *testing.T) {
	s := &nadServer{}
	c := s.client(t)
	for range 2 {
		if err := errors.Join(c.EnsureNAD(t.Context(), "eth1", nodeOne), c.EnsureNAD(t.Context(), "eth1", nodeTwo)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"POST network-attachment-definitions", "PATCH host-eth1"}, s.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if config := s.objects["host-eth1"]["spec"].(map[string]any)["config"]; config != contents || s.needed("host-eth1") != `{"n1":"u1","n2":"u2"}` {
		t.Errorf("it says %s, and is needed by %s", config, s.needed("host-eth1"))
	}
	rows, err := c.NADs(t.Context())
	if diff := cmp.Diff([]types.NAD{{Interface: "eth1", Owners: map[string]string{"n1": "u1", "n2": "u2"}}}, rows); diff != "" || err != nil || s.selector != network.PassthroughLabel+"=true" {
		t.Errorf("listed by %q, %v (-want +got):\n%s", s.selector, err, diff)
	}
}

func TestAnAttachmentGoesWithItsLastOwner(t *testing.T) {
	s := &nadServer{}
	c := s.client(t)
	s.put("host-eth1", attachment(contents, `{"n1":"u1","n2":"u2","n3":"u3"}`))
	for _, step := range []struct {
		owners map[string]string
		keep   bool
		left   string
	}{
		{map[string]string{"n9": ""}, false, `{"n1":"u1","n2":"u2","n3":"u3"}`},
		{map[string]string{"n2": "former"}, false, `{"n1":"u1","n2":"u2","n3":"u3"}`},
		{map[string]string{"n2": "u2", "n3": ""}, false, `{"n1":"u1"}`},
		{map[string]string{"n1": ""}, true, `{}`},
		{nil, true, `{}`},
		{nil, false, "-"},
		{map[string]string{"n1": ""}, false, "-"},
	} {
		if err := c.ReleaseNAD(t.Context(), "eth1", step.owners, step.keep); err != nil || s.needed("host-eth1") != step.left {
			t.Errorf("without %v it is needed by %s, %v", step.owners, s.needed("host-eth1"), err)
		}
	}
	if len(s.writes) != 3 {
		t.Errorf("writes are %v", s.writes)
	}
}

func TestWhoIsFasterTakesNothingFromTheOther(t *testing.T) {
	ensure := func(c *Client) error { return c.EnsureNAD(t.Context(), "eth1", nodeOne) }
	release := func(c *Client) error { return c.ReleaseNAD(t.Context(), "eth1", map[string]string{"n1": ""}, false) }
	for name, race := range map[string]struct {
		before string // "" for none
		act    func(*Client) error
		during string // "" for deleted
		after  string
	}{
		"both make it":                     {"", ensure, `{"n2":"u2"}`, `{"n1":"u1","n2":"u2"}`},
		"it goes while this one needs it":  {`{"n2":"u2"}`, ensure, "", `{"n1":"u1"}`},
		"another one comes too":            {`{"n2":"u2"}`, ensure, `{"n2":"u2","n3":"u3"}`, `{"n1":"u1","n2":"u2","n3":"u3"}`},
		"the last goes as another comes":   {`{"n1":"u1"}`, release, `{"n1":"u1","n2":"u2"}`, `{"n2":"u2"}`},
		"one of three goes as another one": {`{"n1":"u1","n2":"u2"}`, release, `{"n1":"u1"}`, "-"},
		"it is deleted meanwhile":          {`{"n1":"u1","n2":"u2"}`, release, "", "-"},
	} {
		s := &nadServer{}
		c := s.client(t)
		if race.before != "" {
			s.put("host-eth1", attachment(contents, race.before))
		}
		s.race = func() {
			s.put("host-eth1", nil)
			if race.during != "" {
				s.put("host-eth1", attachment(contents, race.during))
			}
		}
		if err := race.act(c); err != nil || s.needed("host-eth1") != race.after {
			t.Errorf("%s: %s, %v", name, s.needed("host-eth1"), err)
		}
	}
}

func TestWhatBecomesOfAnAttachmentThatSomebodyMade(t *testing.T) {
	for name, test := range map[string]struct {
		config, needed string
		err            error
		want           string // its configuration
		note           string
	}{
		"EVE's own zedkube, adopted":          {eves, "", nil, eves, `{"n1":"u1"}`},
		"a stranger with the same, adopted":   {contents, "", nil, contents, `{"n1":"u1"}`},
		"a stranger with another":             {strings.Replace(contents, "eth1", "eth2", 1), "", types.ErrForeignNAD, "", ""},
		"a stranger with more":                {strings.Replace(contents, `"eth1"`, `"eth1","ipam":{}`, 1), "", types.ErrForeignNAD, "", ""},
		"a stranger with garbage":             {"{", "", types.ErrForeignNAD, "", ""},
		"ours, altered":                       {"{}", `{"n2":"u2"}`, nil, contents, `{"n1":"u1","n2":"u2"}`},
		"ours, and who needs it is scribbled": {contents, `["n2"]`, nil, contents, `{"n1":"u1"}`},
		"ours, and who needs it is null":      {contents, `null`, nil, contents, `{"n1":"u1"}`},
		"ours, of our former Node":            {contents, `{"n1":"former"}`, nil, contents, `{"n1":"u1"}`},
	} {
		s := &nadServer{}
		c := s.client(t)
		s.put("host-eth1", attachment(test.config, test.needed))
		err := c.EnsureNAD(t.Context(), "eth1", nodeOne)
		if !errors.Is(err, test.err) || test.err == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if test.err != nil {
			test.want, test.note = test.config, test.needed
		}
		o := s.objects["host-eth1"]
		if o["spec"].(map[string]any)["config"] != test.want || s.needed("host-eth1") != test.note {
			t.Errorf("%s: became %v", name, o)
		}
		if o["metadata"].(map[string]any)["annotations"].(map[string]any)["somebody"] != "else's" {
			t.Errorf("%s: lost what others wrote", name)
		}
	}
}

func TestWhatIsNotOursOrSaysNotWhoNeedsItIsNeverRemoved(t *testing.T) {
	for _, needed := range []string{"", "garbage", "null", `["n1"]`, `{"n1":"u1"}`} {
		s := &nadServer{}
		c := s.client(t)
		o := attachment(contents, needed)
		if strings.HasPrefix(needed, "{") {
			delete(o["metadata"].(map[string]any), "labels") // EVE's own zedkube has made it anew
		}
		s.put("host-eth1", o)
		if err := c.ReleaseNAD(t.Context(), "eth1", map[string]string{"n1": ""}, false); err != nil || len(s.writes) > 0 {
			t.Errorf("needed by %q: %v, %v", needed, s.writes, err)
		}
	}
}

func TestTheListTellsWhatIsWrongWithAnAttachment(t *testing.T) {
	s := &nadServer{}
	c := s.client(t)
	s.put("host-eth1", attachment(eves, `{}`))
	s.put("host-eth2", attachment(contents, `{"n1":"u1"}`))
	s.put("host-eth3", attachment(strings.Replace(contents, "eth1", "eth3", 1), `7`))
	s.put("host-Eth4", attachment(contents, `{"n1":"u1"}`))
	s.put("other", attachment(contents, `{"n1":"u1"}`))
	rows, err := c.NADs(t.Context())
	want := []types.NAD{
		{Interface: "eth1", Owners: map[string]string{}},
		{Interface: "eth2", Owners: map[string]string{"n1": "u1"}, Altered: true},
		{Interface: "eth3", Owners: map[string]string{}, Unowned: true},
	}
	if diff := cmp.Diff(want, rows); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestOneThatIsBeingDeletedIsNotCounted(t *testing.T) {
	s := &nadServer{}
	c := s.client(t)
	o := attachment(contents, `{"n1":"u1"}`)
	o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-05-03T06:41:17Z"
	s.put("host-eth1", o)
	if err := c.EnsureNAD(t.Context(), "eth1", nodeOne); !errors.Is(err, network.ErrNADGoes) || len(s.writes) > 0 {
		t.Errorf("%v, %v", s.writes, err)
	}
	if rows, err := c.NADs(t.Context()); err != nil || len(rows) != 1 || !rows[0].Altered {
		t.Errorf("listed as %+v, %v", rows, err)
	}
}

func TestWithoutMultusTheErrorSaysSo(t *testing.T) {
	s := &nadServer{lie: notFound}
	c := s.client(t)
	_, err := c.NADs(t.Context())
	for what, err := range map[string]error{
		"list": err, "ensure": c.EnsureNAD(t.Context(), "eth1", nodeOne), "release": c.ReleaseNAD(t.Context(), "eth1", nil, false),
	} {
		if !errors.Is(err, types.ErrNotInstalled) || !strings.Contains(err.Error(), "Multus") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAnAnswerOfAnotherKindIsNoAttachment(t *testing.T) {
	for name, lie := range map[string]any{
		"a namespace":   map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "host-eth1", "resourceVersion": "7"}},
		"another list":  map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "7"}, "items": []any{}},
		"no version":    map[string]any{"kind": network.NadKind + "List", "apiVersion": "k8s.cni.cncf.io/v1", "metadata": map[string]any{}, "items": []any{}},
		"a namesake":    map[string]any{"kind": network.NadKind, "apiVersion": "k8s.cni.cncf.io/v1", "metadata": map[string]any{"name": "host-eth1", "namespace": "other", "resourceVersion": "7"}},
		"no kind":       map[string]any{},
		"only a string": "well",
	} {
		s := &nadServer{lie: func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, lie) }}
		c := s.client(t)
		if rows, err := c.NADs(t.Context()); err == nil {
			t.Errorf("%s: listed as %+v", name, rows)
		}
		if err := c.EnsureNAD(t.Context(), "eth1", nodeOne); err == nil {
			t.Errorf("%s: taken for the attachment", name)
		}
	}
}

func TestNothingIsSentForWhatCannotBe(t *testing.T) {
	s := &nadServer{}
	c := s.client(t)
	for _, ifname := range []string{"", ".", "..", "Eth1", "eth_1", "a/b", "eth0:1", "sixteen-letters-", "eth0.", "eth 1"} {
		if err := errors.Join(c.EnsureNAD(t.Context(), ifname, nodeOne)); err == nil {
			t.Errorf("an attachment for %q", ifname)
		}
		if err := c.ReleaseNAD(t.Context(), ifname, nil, false); err == nil {
			t.Errorf("%q was released", ifname)
		}
	}
	for _, owner := range []types.Node{{}, {Name: "n1"}, {UID: "u1"}} {
		if err := c.EnsureNAD(t.Context(), "eth1", owner); !errors.Is(err, network.ErrNoOwner) {
			t.Errorf("owner %+v: %v", owner, err)
		}
	}
	for _, ifname := range []string{"eth1", "eth0.100", "enp0s31f6", "-x", "0"} {
		if err := c.EnsureNAD(t.Context(), ifname, nodeOne); err != nil {
			t.Error(err)
		}
	}
}
