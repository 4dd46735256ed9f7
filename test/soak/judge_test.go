//go:build linux

package main

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/test/history"
	"github.com/zedkube/zedkube/types"
)

func TestAVolumeIsOnlyOnANodeWhileNoReplicaElsewhereIsWhole(t *testing.T) {
	type m = map[string]any
	object := func(name string, content m) unstructured.Unstructured {
		content["metadata"] = m{"name": name}
		return unstructured.Unstructured{Object: content}
	}
	replica := func(name, node, healthyAt, failedAt string) unstructured.Unstructured {
		return object(name, m{"spec": m{"volumeName": "v", "nodeID": node, "healthyAt": healthyAt, "failedAt": failedAt}})
	}
	engine := func(state string, modes m) []unstructured.Unstructured {
		return []unstructured.Unstructured{object("v-e-0", m{"spec": m{"volumeName": "v"}, "status": m{"currentState": state, "replicaModeMap": modes}})}
	}
	const at = "2026-05-03T06:41:17Z"
	here := replica("r-1", "n1", at, "")
	for name, c := range map[string]struct {
		engines []unstructured.Unstructured
		other   unstructured.Unstructured
		want    bool
	}{
		"whole":                          {nil, replica("r-2", "n2", at, ""), false},
		"it has failed":                  {nil, replica("r-2", "n2", at, at), true},
		"it was never whole":             {nil, replica("r-2", "n2", "", ""), true},
		"it is on the same node":         {nil, replica("r-2", "n1", at, ""), true},
		"the engine has it":              {engine("running", m{"r-1": "RW", "r-2": "RW"}), replica("r-2", "n2", at, ""), false},
		"the engine rebuilds it":         {engine("running", m{"r-1": "RW", "r-2": "WO"}), replica("r-2", "n2", at, ""), true},
		"the engine does not know it":    {engine("running", m{"r-1": "RW"}), replica("r-2", "n2", at, ""), true},
		"the engine is stopped":          {engine("stopped", m{"r-2": "ERR"}), replica("r-2", "n2", at, ""), false},
		"the engine has it all the same": {engine("running", m{"r-2": "RW"}), replica("r-2", "n2", at, at), false},
	} {
		replicas := []unstructured.Unstructured{here, c.other}
		if got := onlyOn("n1", c.engines, replicas); slices.Equal(got, []string{"v"}) != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := onlyOn("n3", c.engines, replicas); got != nil {
			t.Errorf("%s: of a node without a replica %v", name, got)
		}
	}
}

func TestNodesThatGoAtOnceAreCountedWhereBothAreAlone(t *testing.T) {
	alone := func(node string, is bool) history.Event {
		return history.Event{Kind: history.Alone, Node: node, On: is}
	}
	complete := func(node string) history.Event {
		return history.Event{Kind: history.Drain, Node: node, Drain: &types.NodeDrainStatus{Status: types.DrainComplete}}
	}
	back := history.Event{Kind: history.Rebooted, Node: "n1"}
	for name, c := range map[string]struct {
		events []history.Event
		want   int
	}{
		"both":                  {[]history.Event{alone("n1", true), alone("n2", true), complete("n1"), complete("n2"), complete("n2")}, 1},
		"one is not alone":      {[]history.Event{alone("n1", true), complete("n1"), complete("n2")}, 0},
		"one is back by then":   {[]history.Event{alone("n1", true), alone("n2", true), complete("n1"), back, complete("n2")}, 0},
		"one after the healing": {[]history.Event{alone("n1", true), alone("n2", true), complete("n1"), alone("n2", false), complete("n2")}, 0},
	} {
		if got := goneTogether(c.events); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
