package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// drainStory is the story that is told unless another one is wanted.
const drainStory = "drain"

// failoverStory takes longer than the others: a node is lost when its kubelet has been silent for 16 s.
const failoverStory = "failover"

// tale is a story that can be asked for.
type tale struct {
	name, what string
	steps      func(*stage) []step
	looks      []look // what to look at while it lasts, and after it
}

func tales() []tale {
	return []tale{
		{drainStory, "a device drains before it reboots, and a budget holds it back", (*stage).steps, nil},
		{
			"volume", "a volume loses a replica, which is rebuilt on another disk",
			func(s *stage) []step { return append(s.beginning(), s.rebuild()...) },
			[]look{{0, "explain VolumeDegraded"}},
		},
		{
			failoverStory, "the device that reports loses its power: another one reports, and its applications start elsewhere",
			func(s *stage) []step { return append(s.beginning(), s.failover()...) },
			[]look{{1, "status"}, {1, "explain NodeNotReady"}},
		},
		{
			"certificate", "the certificate of zedkube on a node is about to expire",
			func(s *stage) []step { return append(s.beginning(), s.expiry()...) },
			[]look{{1, "status"}, {1, "explain CertificateEnds"}},
		},
	}
}

func stepsOf(story string) (func(*stage) []step, error) {
	for _, t := range tales() {
		if t.name == story || t.name == drainStory && story == "" {
			return t.steps, nil
		}
	}
	return nil, fmt.Errorf("there is no story %q; there are\n%s", story, storyHelp())
}

func walkOf(story string) []look {
	i := slices.IndexFunc(tales(), func(t tale) bool { return t.name == story })
	if i < 0 {
		return nil
	}
	return tales()[i].looks
}

func storyHelp() string {
	var b strings.Builder
	for _, t := range tales() {
		fmt.Fprintf(&b, "  %-12s %s\n", t.name, t.what)
	}
	return b.String()
}

// The volume of the story, and the replica of it that fails.
const (
	volumeName  = "pvc-hmi"
	lostReplica = volumeName + "-r-2"
)

func (s *stage) rebuild() []step {
	return []step{
		{"a volume with three replicas is healthy", s.volumeHealthy},
		{"a replica fails, and the node that reports says so", s.replicaFails},
		{"another one is rebuilt, percent by percent", s.replicaRebuilt},
		{"the volume is healthy again", s.volumeWhole},
	}
}

func (s *stage) volumeHealthy(ctx context.Context) (string, error) {
	var on []string
	for _, n := range s.cluster.Nodes {
		on = append(on, n.Name)
	}
	if err := s.cluster.CreateVolume(ctx, volumeName, on[2], on...); err != nil {
		return "", err
	}
	if err := s.cluster.WaitVolume(ctx, volumeName, "attached"); err != nil {
		return "", err
	}
	return s.volumeWhole(ctx)
}

func (s *stage) replicaFails(ctx context.Context) (string, error) {
	s.view.Event(s.nodes[1].Name, "longhorn", "the disk of "+lostReplica+" has failed")
	if err := s.cluster.FailReplica(ctx, lostReplica, true); err != nil {
		return "", err
	}
	if err := s.cluster.SetReplicaMode(ctx, volumeName, lostReplica, "ERR", 0); err != nil {
		return "", err
	}
	return "", s.volumeIs(ctx, types.StorageVolumeRobustnessDegraded)
}

// replicaRebuilt takes half a minute, so that one can look.
func (s *stage) replicaRebuilt(ctx context.Context) (string, error) {
	if err := s.cluster.FailReplica(ctx, lostReplica, false); err != nil {
		return "", err
	}
	for percent := 0; percent < 100; percent += 4 {
		if err := s.cluster.SetReplicaMode(ctx, volumeName, lostReplica, "WO", percent); err != nil {
			return "", err
		}
		if percent%20 == 0 {
			s.view.Event(s.nodes[1].Name, "longhorn", fmt.Sprintf("%s is rebuilt, %d %%", lostReplica, percent))
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return "", s.cluster.SetReplicaMode(ctx, volumeName, lostReplica, "RW", 100)
}

func (s *stage) volumeWhole(ctx context.Context) (string, error) {
	return "", s.volumeIs(ctx, types.StorageVolumeRobustnessHealthy)
}

// volumeIs waits until the node that reports says that of the volume.
func (s *stage) volumeIs(ctx context.Context, want types.StorageVolumeRobustness) error {
	return s.until(ctx, func() string {
		n := s.fleet.Reporter()
		if n == nil {
			return "no node reports, or several"
		}
		report, _ := n.Watch.Report.Get(types.Global)
		for _, v := range report.Storage.Volumes {
			if v.VolumeID == volumeName && v.Robustness == want {
				return ""
			}
		}
		return fmt.Sprintf("%s does not report volume %s as %s", n.Name, volumeName, want)
	})
}

func (s *stage) expiry() []step {
	return []step{
		{"zedkube has a kubeconfig whose certificate expires in ten days", s.shortCertificate},
		{"the node warns, in zedkube status, on its page and as a condition", s.certificateWarned},
	}
}

func (s *stage) shortCertificate(context.Context) (string, error) {
	n := s.drained()
	kube, ok := n.Kube.(player.ClusterNode)
	if !ok {
		return "", fmt.Errorf("%s is no node of the cluster", n.Name)
	}
	if err := s.cluster.ShortenAgentKubeconfig(kube.Index, 10*24*time.Hour); err != nil {
		return "", err
	}
	s.view.Event(n.Name, "operator", "issues a kubeconfig for zedkube that expires in ten days")
	return n.Name + ", ", n.PutKubeconfigs(s.cluster.NodeKubeconfig(kube.Index))
}

func (s *stage) certificateWarned(ctx context.Context) (string, error) {
	return "", s.until(ctx, func() string {
		out, err := s.drained().Command("status", "-o", `jsonpath={range .Problems[*]}{.Name} {.What}{"\n"}{end}`)
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(string(out), "CertificateEnds") {
			return "zedkube status does not warn"
		}
		return ""
	})
}
