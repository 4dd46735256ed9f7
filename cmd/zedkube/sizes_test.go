package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/agentlog"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

// lone is an agent without a cluster, and zedagent beside it.
type lone struct {
	*testing.T
	root       string
	log        lines
	config     pubsub.Writer[types.EdgeNodeClusterConfig]
	membership pubsub.Reader[types.ClusterMembership]
	status     pubsub.Reader[types.EdgeNodeClusterStatus]
	blocks     pubsub.Reader[types.CipherBlockStatus]
}

// lines are what the agent logs.
type lines struct{ cmdtest.Printed }

// with counts the lines that have a text.
func (l *lines) with(text string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// startLone starts both on an empty root, after setup. The options are those of zedagent's
// EdgeNodeClusterConfig.
func startLone(t *testing.T, setup func(root string), config ...pubsub.Option) *lone {
	root, err := os.MkdirTemp("", "zk") // short: a socket address has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	setup(root)
	s := &lone{T: t, root: root}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	zedagent := pubsub.NewBus(root, quiet)
	s.config = pubsub.NewPublication[types.EdgeNodeClusterConfig](zedagent, "zedagent", config...)
	s.membership = pubsub.NewSubscription[types.ClusterMembership](zedagent, device.Self, pubsub.Persistent())
	s.status = pubsub.NewSubscription[types.EdgeNodeClusterStatus](zedagent, device.Self)
	s.blocks = pubsub.NewSubscription[types.CipherBlockStatus](zedagent, device.Self)
	ours, components := wire(t.Context(), device.Options{Root: root}.Paths(), agentlog.New(&s.log), io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, bus := range []*pubsub.Bus{zedagent, ours} {
		if err := bus.Open(); err != nil {
			t.Fatal(err)
		}
		running.Go(func() { bus.Run(ctx) })
	}
	for _, c := range components {
		running.Go(func() { c.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

func (s *lone) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// knows waits until the agent's membership holds a configuration of this name.
func (s *lone) knows(name string) types.ClusterMembership {
	s.Helper()
	var m types.ClusterMembership
	s.must(eventually(func() string {
		if m, _ = s.membership.Get(types.Global); m.Config == nil || m.Config.ClusterName != name {
			return "the membership is not of " + name[:min(len(name), 20)] + " but " + m.Reason
		}
		return ""
	}))
	return m
}

var sizedCluster = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")

// sized is a configuration with so many bytes of cipher data, twice, and masters.
func sized(name string, data, masters int) types.EdgeNodeClusterConfig {
	block := types.CipherBlockStatus{
		CipherBlockID: sizedCluster.String(), IsCipher: true, CipherData: bytes.Repeat([]byte{7}, data),
		CipherContext: &types.CipherContext{ControllerCertHash: []byte{1}, DeviceCertHash: []byte{2}},
	}
	return types.EdgeNodeClusterConfig{
		Initialized: true, Valid: true, ClusterName: name, ClusterID: types.UUIDandVersion{UUID: sizedCluster},
		ClusterIPPrefix: &net.IPNet{IP: net.IPv4(127, 9, 9, 9), Mask: net.CIDRMask(24, 32)}, JoinServerIP: net.IPv4(127, 9, 9, 9),
		BootstrapNode: true, CipherToken: block, CipherGzipRegistrationManifestYaml: block,
		MasterNodeIDs: make([]uuid.UUID, masters),
	}
}

// The membership and the blocks carry the cipher data on: as files, beside the
// socket, that whoever read them removes.
func TestMuchCipherDataIsPassedOnAndLeavesNoFiles(t *testing.T) {
	const most = 700_000 // in base64 not yet a megabyte
	s := startLone(t, func(string) {})
	for i, data := range []int{0, 1, 40_000, most, most, 2} {
		want := sized(fmt.Sprint("plant-", i), data, 3)
		s.must(s.config.Publish(types.Global, want))
		got := s.knows(want.ClusterName)
		if !bytes.Equal(want.CipherToken.CipherData, got.Config.CipherGzipRegistrationManifestYaml.CipherData) {
			t.Errorf("%d bytes became %d", data, len(got.Config.CipherGzipRegistrationManifestYaml.CipherData))
		}
		s.must(eventually(func() string {
			if b, _ := s.blocks.Get(sizedCluster.String()); len(b.CipherData) != data {
				return fmt.Sprintf("the block has %d bytes, not %d", len(b.CipherData), data)
			}
			return ""
		}))
	}
	s.must(eventually(func() string {
		left, err := filepath.Glob(filepath.Join(s.root, "persist/pubsub-large/*/*/*"))
		if err != nil || len(left) > 0 {
			return fmt.Sprint(left, err)
		}
		return ""
	}))
}

// What zedkube adds to a configuration may be what makes it too long to pass on.
func TestAConfigurationTooLongToPassOnIsAnErrorAndTheLastOneStays(t *testing.T) {
	s := startLone(t, func(string) {})
	s.must(s.config.Publish(types.Global, sized("short", 10, 3)))
	s.knows("short")
	most := sort.Search(60_000, func(n int) bool {
		return errors.Is(s.config.Publish(types.Global, sized(strings.Repeat("x", n), 10, 3)), pubsub.ErrTooLarge)
	}) - 1
	name := strings.Repeat("x", most)
	s.must(s.config.Publish(types.Global, sized(name, 10, 3)))
	s.isRefused(name)
	if m, _ := s.membership.Get(types.Global); m.State != types.MembershipMember || len(m.Config.ClusterName) >= len(name) {
		t.Errorf("the membership is %s", m.State)
	}
	s.must(s.config.Publish(types.Global, sized("shorter", 10, 1000)))
	s.knows("shorter")
}

// A file can bring more than a socket, which would not bring this one at all.
func TestTenThousandMastersAreAnError(t *testing.T) {
	s := startLone(t, func(root string) {
		c := sized("crowd", 10, 10_000)
		raw, err := json.Marshal(c)
		dir := filepath.Join(root, "run/zedagent/EdgeNodeClusterConfig")
		if err = errors.Join(err, os.MkdirAll(dir, 0o755)); err == nil {
			err = os.WriteFile(filepath.Join(dir, "global.json"), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}, pubsub.FilesOnly())
	s.isRefused("crowd")
	if n := s.log.with("publish cluster membership"); n != 1 {
		t.Errorf("%d lines say it", n)
	}
}

// isRefused wants a configuration of this name to be in the status, and a line
// to say that the membership cannot hold it.
func (s *lone) isRefused(name string) {
	s.Helper()
	s.must(eventually(func() string {
		if status, _ := s.status.Get(types.Global); status.ClusterName != name {
			return "the status is of another configuration"
		}
		if s.log.with("publish cluster membership") == 0 {
			return "nobody says that it cannot be kept"
		}
		return ""
	}))
}
