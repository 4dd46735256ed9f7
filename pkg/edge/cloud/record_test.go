package cloud

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

func (w *world) edge(name, address, ready string) {
	o := w.put(object.Ref{Kind: object.Node, Name: name}, m{"status": m{
		"addresses":  l{m{"type": "InternalIP", "address": address}},
		"conditions": l{m{"type": "Ready", "status": ready, "lastTransitionTime": now.Add(-time.Hour).Format(time.RFC3339)}},
	}})
	o["metadata"].(m)["labels"] = m{edgeRole: ""}
}

func (w *world) record(r join.Record) {
	data, err := r.Data()
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(RefNodes, RecordObject(data))
}

// impersonated are by whom cloudcore may write, by its role as it is once a is done.
func (w *world) impersonated(a action) (users []string) {
	w.t.Helper()
	role := w.seen[RefRole]
	for _, wish := range a.apply {
		if wish.ref == RefRole {
			role = wish.is
		}
	}
	text, _ := json.Marshal(role["rules"])
	var rules []struct{ Resources, Verbs, ResourceNames []string }
	if err := json.Unmarshal(text, &rules); err != nil || len(rules) == 0 {
		w.t.Fatal(rules, err)
	}
	for _, r := range rules {
		if !slices.Contains(r.Verbs, "impersonate") {
			continue
		}
		if len(r.ResourceNames) == 0 {
			w.t.Errorf("cloudcore may impersonate all %v", r.Resources)
		}
		users = append(users, r.ResourceNames...)
	}
	return users
}

// TestTakesOverWhoHasJoined: on a cluster without a record the edge nodes go on, and nobody else comes.
func TestTakesOverWhoHasJoined(t *testing.T) {
	w := whole(t)
	w.edge("old", "192.168.1.10", "True")
	a := decide(w.facts)
	data, _ := a.record.At("data").(m)
	if got, err := join.Read(data); err != nil || !got.Asked["old"].TakenOver || got.Asked["old"].Address != "192.168.1.10" || len(got.Asked) != 1 {
		t.Errorf("the record is %v, %v", a.record, err)
	}
	if users := w.impersonated(a); !slices.Equal(users, []string{"system:node:old", "system:nodes"}) {
		t.Errorf("cloudcore may write by %v", users)
	}
	w.record(join.TakeOver(nil, now))
	a = decide(w.facts)
	if users := w.impersonated(a); a.record != nil || len(users) > 0 {
		t.Errorf("with a record that is empty: %v, %v", a.record, users)
	}
	w.put(RefNodes, m{"data": m{"bad": "{", "good": `{"address":"100.127.254.1","askedAt":"2026-11-27T10:00:00Z"}`}})
	a = decide(w.facts)
	if users := w.impersonated(a); a.why == nil || !slices.Equal(users, []string{"system:node:good", "system:nodes"}) {
		t.Errorf("with a record that cannot be read: %v, %v", a.why, users)
	}
}

// TestStates: each name has its state, and nobody is forgotten.
func TestStates(t *testing.T) {
	w := whole(t)
	w.edge("here", "100.127.254.1", "True")
	w.edge("off", "100.127.254.2", "Unknown")
	w.edge("stranger", "192.168.1.10", "True")
	r := join.TakeOver(map[string]string{"here": "100.127.254.1", "off": "100.127.254.2", "gone": "", "lost": ""}, now)
	r.Leave("gone", false, now)
	r.Leave("lost", true, now)
	r.Asked["waits"] = join.Asked{Address: "100.127.254.3", AskedAt: now, TokenUntil: now.Add(time.Hour)}
	w.record(r)
	var got []string
	for _, n := range Judge(w.seen, now).Edge {
		got = append(got, n.Name+" "+n.State)
		if n.Unknown != (n.Name == "stranger") || n.State == "offline" && !n.Since.Equal(now.Add(-time.Hour)) {
			t.Errorf("it is %+v", n)
		}
	}
	if want := "gone left, here Ready, lost refused, off offline, stranger Ready, waits asked"; strings.Join(got, ", ") != want {
		t.Errorf("they are %v", got)
	}
}
