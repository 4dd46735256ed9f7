package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/test/cmdtest"
)

// pageIs is what zedkube page says to programs.
type pageIs struct{ Socket, Address, Token string }

func pageOf(t *testing.T, p device.Paths) (found pageIs) {
	t.Helper()
	out, _, err := cmdtest.Run(t.Context(), cli.New("devel", nil), "--root", p.Root, "page", "-o", "json")
	if err := errors.Join(err, json.Unmarshal([]byte(out), &found)); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPagePrintsTheTokenThatTheAgentTakes(t *testing.T) {
	_, p := runLocal(t)
	address := p.PageAddress()
	for i, want := range []string{"401", "200"} {
		found := pageOf(t, p)
		if found.Address != address || found.Token == "" {
			t.Fatalf("%+v", found)
		}
		token := ""
		if i == 1 {
			token = found.Token
		}
		if got := fetchWith(t, "http://"+address+"/api/overview", token); !strings.HasPrefix(got, want+" ") {
			t.Errorf("with token %q: %.80s", token, got)
		}
		if all, _, err := cmdtest.Run(t.Context(), cli.New("devel", nil), "--root", p.Root, "page"); err != nil || !strings.Contains(all, "http://"+address+"/#token="+found.Token) || !strings.Contains(all, found.Socket) {
			t.Error(all, err)
		}
	}
}
