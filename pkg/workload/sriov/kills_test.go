package sriov

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

// The effects on the cluster, as the kill points name them.
const (
	makesConfig = "set configmap: create configmaps"
	setsConfig  = "set configmap: patch configmaps"
	marks       = "annotate pod: patch pods"
	restarts    = "delete pod: delete pods"
	drops       = "delete nad: delete network-attachment-definitions.k8s.cni.cncf.io"
)

// life is what an agent that is killed does to the cluster.
type life struct {
	*kubetest.Cluster
	*kubetest.Mortal
}

func (l life) SetSRIOVConfig(ctx context.Context, change types.SRIOVConfig) error {
	effect := makesConfig
	if change.Version != "" {
		effect = setsConfig
	}
	return l.Do(effect, func() error { return l.Cluster.SetSRIOVConfig(ctx, change) })
}

func (l life) MarkSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error {
	return l.Do(marks, func() error { return l.Cluster.MarkSRIOVPlugin(ctx, pod) })
}

func (l life) RestartSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error {
	return l.Do(restarts, func() error { return l.Cluster.RestartSRIOVPlugin(ctx, pod) })
}

func (l life) DeleteSRIOVNetwork(ctx context.Context, network types.SRIOVNetwork) error {
	return l.Do(drops, func() error { return l.Cluster.DeleteSRIOVNetwork(ctx, network) })
}

func TestWhereverTheAgentDiesThePluginOffersItsOwn(t *testing.T) {
	for range seeds.Each(t, 1) {
		for _, effect := range []string{makesConfig, setsConfig, marks, restarts, drops} {
			for _, after := range []bool{false, true} {
				m := &kubetest.Mortal{At: effect, After: after}
				t.Run(m.Point("sriov"), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { killed(t, m) })
				})
			}
		}
	}
}

// killed tells of an agent that dies and starts again, beside a node that has told of its
// functions, but where that one makes the ConfigMap.
func killed(t *testing.T, m *kubetest.Mortal) {
	s := newStage(t, "n1", "n2")
	defer s.end()
	m.Died = make(chan struct{})
	n1, n2 := s.agents["n1"], s.agents["n2"]
	n1.give(at("eth5", 1, "0000:3b:0a.1"))
	n2.give(at("eth5", 2, "0000:af:02.2"))
	s.cluster.SetNetwork("eth5vf9", resourcePrefix+"/eth5vf9") // of a function that nobody has
	if m.At != makesConfig {
		n2.start()
		s.pass(5 * time.Minute)
	}
	if m.At == drops { // it is the only one that may
		n2.stop()
	}
	n1.kube = life{s.cluster, m}
	n1.start()
	if dead := s.dies(m); !dead {
		t.Fatal("it never came there")
	}
	n1.stop()
	seeds.Killed(t, m.Point("sriov"))
	n1.kube = s.cluster
	for _, a := range s.agents {
		if a.stop == nil {
			a.start()
		}
	}
	s.pass(2 * time.Hour)
	s.settled("n1", "n2")
	if _, there := s.cluster.Networks()["eth5vf9"]; there {
		t.Error("the attachment of a function that nobody has is still there")
	}
	s.quiet()
}

// dies waits for that.
func (s *stage) dies(m *kubetest.Mortal) bool {
	for range 360 {
		s.pass(10 * time.Second)
		select {
		case <-m.Died:
			return true
		default:
		}
	}
	return false
}
