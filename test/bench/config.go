package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// changes is how many configurations each run sends.
const changes = 100

// replies publishes one EdgeNodeClusterConfig after the other and returns how
// long each took until said saw it in the EdgeNodeClusterStatus that another
// process reads.
func replies(ctx context.Context, m *player.Member, configs []types.EdgeNodeClusterConfig, said func(i int, status types.EdgeNodeClusterStatus) bool) ([]time.Duration, error) {
	bell := make(chan struct{}, 1)
	m.Watch.ClusterStatus.Notify(bell)
	var took []time.Duration
	for i, config := range configs {
		began := time.Now()
		if err := m.Configure(config); err != nil {
			return nil, err
		}
		for {
			if status, _ := m.Watch.ClusterStatus.Get(types.Global); said(i, status) {
				break
			}
			select {
			case <-bell:
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(patience):
				return nil, errors.New("config to status: no answer")
			}
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// runs repeats a measurement.
func (b *bench) runs(measure func() ([]time.Duration, error)) ([][]time.Duration, error) {
	var runs [][]time.Duration
	for range b.rounds {
		took, err := measure()
		if err != nil {
			return nil, err
		}
		runs = append(runs, took)
	}
	return runs, nil
}

// configToStatus measures how long a change of the configuration takes to reach
// the status.
func (b *bench) configToStatus(ctx context.Context) error {
	m := b.fleet.Members[2]
	measure := func() ([]time.Duration, error) {
		config, err := m.ClusterConfig()
		if err != nil {
			return nil, err
		}
		var configs []types.EdgeNodeClusterConfig
		for i := range changes {
			config.ClusterName = fmt.Sprintf("bench-%d-%s", i, uuid.NewString()[:8])
			configs = append(configs, config)
		}
		return replies(ctx, m, configs, func(i int, status types.EdgeNodeClusterStatus) bool {
			return status.ClusterName == configs[i].ClusterName
		})
	}
	took, err := b.runs(measure)
	if err != nil {
		return err
	}
	b.add("EdgeNodeClusterConfig → EdgeNodeClusterStatus", "p50 3.2 ms, max 4.1 s", "p50 ≤ 3 ms, p99 ≤ 50 ms", "%s", percentiles(took))
	if err := b.cluster.SetNodeFault(2, devcluster.Hung); err != nil {
		return err
	}
	took, err = b.runs(measure)
	if err := errors.Join(err, b.cluster.SetNodeFault(2, devcluster.None)); err != nil {
		return err
	}
	b.add("the same with the API black-holed", "delayed up to 55 s", "p50 ≤ 3 ms, p99 ≤ 50 ms", "%s", percentiles(took))
	return nil
}

// tokens measures how long an encrypted token takes to stand in the status,
// decrypted. The device's key is in a file. The controller's part is done
// before: the tokens are sent once, and what zedagent made of them again.
func (b *bench) tokens(ctx context.Context) error {
	m := b.fleet.Members[2]
	var tokens []string
	var configs []types.EdgeNodeClusterConfig
	for range changes {
		token := uuid.NewString()
		if err := b.fleet.SendSecrets(m, token); err != nil {
			return err
		}
		config, err := m.ClusterConfig()
		if err != nil {
			return err
		}
		tokens, configs = append(tokens, token), append(configs, config)
	}
	shows := func(i int, status types.EdgeNodeClusterStatus) bool { return status.EncryptedClusterToken == tokens[i] }
	if err := until(ctx, "the last token", 10*time.Millisecond, func() bool {
		status, _ := m.Watch.ClusterStatus.Get(types.Global)
		return shows(changes-1, status)
	}); err != nil {
		return err
	}
	took, err := b.runs(func() ([]time.Duration, error) { return replies(ctx, m, configs, shows) })
	if err != nil {
		return err
	}
	b.add("EdgeNodeClusterConfig with an encrypted token → EdgeNodeClusterStatus with the token, key in a file", "not measured", "p50 ≤ 3 ms, p99 ≤ 50 ms", "%s", percentiles(took))
	return b.fleet.SendSecrets(m, b.fleet.Token())
}
