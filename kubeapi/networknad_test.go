package kubeapi

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/zedkube/zedkube/kubeapi/network"
	"github.com/zedkube/zedkube/types"
)

const lineConfig = `{"cniVersion":"0.3.1","type":"eve-bridge","networkInstance":"6ba7b810-9dad-41d1-80b4-00c04fd430c8"}`

var line = types.NetworkNAD{Name: "ni-line-1", ID: uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")}

// labelled is an attachment with that configuration, with zedkube's label for an
// instance if there is one.
func labelled(config, id string) map[string]any {
	meta := map[string]any{"annotations": map[string]any{"somebody": "else's"}}
	if id != "" {
		meta["labels"] = map[string]any{network.NetworkLabel: id}
	}
	return map[string]any{"metadata": meta, "spec": map[string]any{"config": config}}
}

func (s *nadServer) said(name string) (config, label string) {
	o := s.objects[name]
	if o == nil {
		return "-", "-"
	}
	labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
	label, _ = labels[network.NetworkLabel].(string)
	return o["spec"].(map[string]any)["config"].(string), label
}

func TestTheAttachmentOfANetworkInstanceIsMadeAndPutRight(t *testing.T) {
	other := uuid.MustParse("6ba7b811-9dad-41d1-80b4-00c04fd430c8").String()
	for name, test := range map[string]struct {
		config, label string // "" for no object
		writes        int
		err           error
	}{
		"there is none":                     {"", "", 1, nil},
		"it is as it should be":             {lineConfig, line.ID.String(), 0, nil},
		"EVE's own zedkube made it":         {"{ \"networkInstance\": \"" + line.ID.String() + "\", \"type\":\"eve-bridge\",\n\"cniVersion\":\"0.3.1\"}", "", 1, nil},
		"ours, altered":                     {"{}", line.ID.String(), 1, nil},
		"ours, of an instance that is gone": {lineConfig, other, 1, nil},
		"somebody else's":                   {`{"type":"macvlan"}`, "", 0, types.ErrForeignNAD},
	} {
		s := &nadServer{}
		c := s.client(t)
		if test.config != "" {
			s.put(line.Name, labelled(test.config, test.label))
		}
		for range 2 {
			if err := c.EnsureNetworkNAD(t.Context(), line); !errors.Is(err, test.err) || test.err == nil && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		config, label := s.said(line.Name)
		want, mark := lineConfig, line.ID.String()
		if test.err != nil {
			want, mark = test.config, ""
		}
		if config != want || label != mark || len(s.writes) != test.writes {
			t.Errorf("%s: it says %s with the label %q after %v", name, config, label, s.writes)
		}
	}
}

func TestOnlyTheAttachmentOfThatInstanceIsDeleted(t *testing.T) {
	for label, left := range map[string]string{
		line.ID.String():                       "-",
		"":                                     lineConfig,
		"6ba7b811-9dad-41d1-80b4-00c04fd430c8": lineConfig,
	} {
		s := &nadServer{}
		c := s.client(t)
		s.put(line.Name, labelled(lineConfig, label))
		for range 2 {
			if err := c.DeleteNetworkNAD(t.Context(), line); err != nil {
				t.Error(err)
			}
		}
		if config, _ := s.said(line.Name); config != left {
			t.Errorf("with the label %q: %s is left", label, config)
		}
	}
}

func TestOneThatBecomesAnotherInstancesMeanwhileIsNotDeleted(t *testing.T) {
	s := &nadServer{}
	c := s.client(t)
	s.put(line.Name, labelled(lineConfig, line.ID.String()))
	s.race = func() { s.put(line.Name, labelled(lineConfig, "6ba7b811-9dad-41d1-80b4-00c04fd430c8")) }
	if err := c.DeleteNetworkNAD(t.Context(), line); err != nil || s.objects[line.Name] == nil {
		t.Errorf("%v, %v", err, s.writes)
	}
	if diff := cmp.Diff([]string{"DELETE ni-line-1"}, s.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoAnswerAboutTheAttachmentIsAnError(t *testing.T) {
	s := &nadServer{lie: notFound}
	c := s.client(t)
	if err := errors.Join(c.EnsureNetworkNAD(t.Context(), line)); !errors.Is(err, types.ErrNotInstalled) {
		t.Errorf("without Multus: %v", err)
	}
	if err := c.DeleteNetworkNAD(t.Context(), line); !errors.Is(err, types.ErrNotInstalled) {
		t.Errorf("without Multus: %v", err)
	}
	s.lie = func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]any{"kind": "Namespace"}) }
	if c.EnsureNetworkNAD(t.Context(), line) == nil || c.DeleteNetworkNAD(t.Context(), line) == nil {
		t.Error("another object is taken for it")
	}
}
