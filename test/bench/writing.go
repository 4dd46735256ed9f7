package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

const (
	// writtenVolumes are written; the messages are counted for writtenFor.
	writtenVolumes = 10
	writtenFor     = 10 * time.Minute
	// measuredEvery is how often Longhorn measures each of them.
	measuredEvery = 5 * time.Second
	// stateChanges is how often a pod changes after that, stateEvery apart.
	stateChanges = 10
	stateEvery   = 7 * time.Second
)

// writing has guests write: Longhorn measures the size of each volume every
// measuredEvery, each at its own moment. It counts what zedagent is sent, and
// measures how old the sizes in the file are and how soon a state is sent.
func (b *bench) writing(ctx context.Context) error {
	leader := b.fleet.Reporter()
	if leader == nil {
		return errors.New("writing: no node reports")
	}
	if err := b.makeVolumes(ctx); err != nil {
		return err
	}
	if err := b.sized(ctx, leader, 0, 1); err != nil { // all of them are reported
		return err
	}
	// What came before has been sent, sizes too.
	if err := pause(ctx, 70*time.Second); err != nil {
		return err
	}
	var sent sentReports
	var sizes, states []time.Duration
	err := b.guestsWrite(ctx, func(ctx context.Context) (err error) {
		counting, stop := context.WithTimeout(ctx, writtenFor)
		defer stop()
		var counted sync.WaitGroup
		counted.Go(func() { sent.count(counting, leader) })
		sizes, err = b.sizesReported(ctx, counting, leader)
		stop() // the time is over already, unless that failed
		counted.Wait()
		if err == nil {
			states, err = b.statesSent(ctx, leader)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.add(fmt.Sprintf("messages of KubeClusterInfo to zedagent in %.0f min, %d volumes are written", writtenFor.Minutes(), writtenVolumes),
		"one in 30 s at most", "≤ 12", "%d, with %d kB of JSON; the file changed %d times", sent.messages, sent.bytes/1000, sent.files)
	b.add("size of a volume → KubeClusterInfo file", "0 to 30 s", "≤ 1 s", "%s", percentiles([][]time.Duration{sizes}))
	b.add("pod phase → message to zedagent meanwhile", "0 to 30 s", "≤ 1 s", "%s", percentiles([][]time.Duration{states}))
	return nil
}

func writtenVolume(i int) string     { return fmt.Sprintf("written-%d", i) }
func writtenBytes(round int) int64   { return 1<<30 + int64(round+1)<<12 }
func writtenClaim(volume int) string { return writtenVolume(volume) + "-pvc-0" }

// makeVolumes has Longhorn and volumes that are attached to the first node.
func (b *bench) makeVolumes(ctx context.Context) error {
	if err := b.cluster.InstallLonghorn(ctx); err != nil {
		return err
	}
	var nodes []string
	for _, n := range b.cluster.Nodes {
		nodes = append(nodes, n.Name)
	}
	for i := range writtenVolumes {
		if err := b.cluster.CreateVolume(ctx, writtenVolume(i), nodes[0], nodes...); err != nil {
			return err
		}
	}
	return nil
}

// guestsWrite has all volumes but the first grow until meanwhile returns.
func (b *bench) guestsWrite(ctx context.Context, meanwhile func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var writes sync.WaitGroup
	writes.Go(func() {
		const others = writtenVolumes - 1
		for i := 0; pause(ctx, measuredEvery/others) == nil; i++ {
			err := b.cluster.FillVolume(ctx, writtenVolume(1+i%others), writtenBytes(i))
			if err != nil && ctx.Err() == nil {
				stop(err)
			}
		}
	})
	err := meanwhile(ctx)
	if failed := context.Cause(ctx); failed != nil {
		err = failed
	}
	stop(nil)
	writes.Wait()
	return err
}

// sizesReported has the first volume grow until counting ends, and returns how
// long each size took to be in the leader's file.
func (b *bench) sizesReported(ctx, counting context.Context, leader *player.Member) (took []time.Duration, err error) {
	for i := 0; pause(counting, measuredEvery-time.Second+time.Duration(i%7)*137*time.Millisecond) == nil; i++ {
		began := time.Now()
		if err := b.cluster.FillVolume(ctx, writtenVolume(0), writtenBytes(i)); err != nil {
			return nil, err
		}
		if err := b.sized(ctx, leader, 0, writtenBytes(i)); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, ctx.Err()
}

// sized waits for the leader's file to have all volumes, and one of at least a
// size.
func (b *bench) sized(ctx context.Context, leader *player.Member, volume int, bytes int64) error {
	return reported(ctx, leader, fmt.Sprintf("%d bytes of volume %d", bytes, volume), func(r types.KubeClusterInfo) bool {
		found := false
		for _, v := range r.Storage.Volumes {
			found = found || v.Name == writtenClaim(volume) && v.AllocatedBytes >= uint64(bytes)
		}
		return found && len(r.Storage.Volumes) >= writtenVolumes
	})
}

// statesSent changes the phase of a pod again and again, and returns how long
// each change took until a subscriber of the leader's socket had it.
func (b *bench) statesSent(ctx context.Context, leader *player.Member) (took []time.Duration, err error) {
	pods, err := b.told(ctx)
	if err != nil {
		return nil, err
	}
	pod := slices.Min(slices.Collect(maps.Values(pods)))
	for i := range stateChanges {
		if err := pause(ctx, stateEvery+time.Duration(i)*137*time.Millisecond); err != nil {
			return nil, err
		}
		phase, want := corev1.PodPending, types.KubePodPending
		if i%2 == 1 {
			phase, want = corev1.PodRunning, types.KubePodRunning
		}
		began := time.Now()
		if err := setPhase(ctx, b.cluster.Client(), pod, phase); err != nil {
			return nil, err
		}
		err := until(ctx, "the message of pod "+pod, 2*time.Millisecond, func() bool {
			r, ok := leader.Watch.Report.Get(types.Global)
			return ok && slices.ContainsFunc(r.AppPods, func(p types.KubePodInfo) bool { return p.Name == pod && p.Status == want })
		})
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// sentReports counts the reports of one node.
type sentReports struct {
	messages int // to a subscriber of its socket
	bytes    int // their JSON
	files    int // versions of the file
}

// count counts until ctx is done. The first file is not a version of that time.
func (s *sentReports) count(ctx context.Context, leader *player.Member) {
	message := make(chan struct{}, 1)
	leader.Watch.Report.Notify(message)
	file := filepath.Join(leader.TopicDir("KubeClusterInfo"), types.Global+".json")
	last, _ := os.Stat(file)
	look := time.NewTicker(100 * time.Millisecond) // the file changes once a second at most
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-message:
			report, _ := leader.Watch.Report.Get(types.Global)
			content, err := json.Marshal(report)
			if err == nil {
				s.messages++
				s.bytes += len(content)
			}
		case <-look.C:
			now, err := os.Stat(file)
			if err == nil && !(os.SameFile(now, last) && now.ModTime().Equal(last.ModTime())) {
				s.files++
				last = now
			}
		}
	}
}
