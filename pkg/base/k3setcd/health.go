// Package k3setcd reads the etcd of this server's k3s, and has k3s take a snapshot of it; of
// a single node it copies the SQLite (docs/wire.md, "Etcd of k3s").
package k3setcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/promtext"
)

const (
	// DefaultMetrics is where k3s has etcd answer for its health, on this server only and
	// without a certificate.
	DefaultMetrics = "http://127.0.0.1:2381"

	askFor     = 10 * time.Second // how long etcd may take: its health is a read by its quorum
	maxHealth  = 4 << 10          // bytes
	maxMetrics = 4 << 20          // bytes; they have some 50 kB
	fullAt     = 80               // percent of the quota; at 100 etcd refuses every write
)

// Health is what this server's etcd says of itself.
type Health struct {
	Version   string // of the etcd in k3s: "3.6.4"
	Members   int    // that it knows, itself and learners too
	Connected int    // of the others
	Learner   bool   // this one does not vote
	HasLeader bool
	Leader    bool   // is this one
	Size      int64  // of its database, bytes
	Quota     int64  // of that, bytes
	Alarm     string // why its /health says no, such as "ALARM NOSPACE"; "" where it says yes
}

// The series that are read.
const (
	seriesVersion   = "etcd_server_version"
	seriesMembers   = "etcd_network_known_peers"
	seriesConnected = "etcd_network_active_peers"
	seriesProbed    = "etcd_network_peer_round_trip_time_seconds_count"
	seriesLearner   = "etcd_server_is_learner"
	seriesHasLeader = "etcd_server_has_leader"
	seriesLeader    = "etcd_server_is_leader"
	seriesSize      = "etcd_mvcc_db_total_size_in_bytes"
	seriesQuota     = "etcd_server_quota_backend_bytes"
)

// Exists reports whether k3s of this device has an etcd: its data directory is there. A
// worker has none, and a single node that never was in a cluster has SQLite.
func Exists(server string) bool {
	info, err := os.Stat(filepath.Join(server, "db/etcd"))
	return err == nil && info.IsDir()
}

// Look asks the etcd at that address how it is.
func Look(ctx context.Context, url string) (h Health, err error) {
	client := boundedhttp.NewClient(nil, nil, 0)
	a, err := boundedhttp.Get(ctx, client, url+"/health", "", maxHealth, askFor)
	var said struct{ Health, Reason string }
	if err == nil && json.Unmarshal(a.Body, &said) != nil {
		err = fmt.Errorf("it answers %d without a health", a.Code)
	}
	var metrics []byte
	if err == nil {
		metrics, err = boundedhttp.Whole(ctx, client, url+"/metrics", maxMetrics, askFor)
	}
	if err != nil {
		return h, fmt.Errorf("ask etcd for its health: %w", err)
	}
	if said.Health != "true" || a.Code != http.StatusOK {
		h.Alarm = phrase.Cut(said.Reason, 100)
		if h.Alarm == "" {
			h.Alarm = fmt.Sprintf("HTTP %d", a.Code)
		}
	}
	if err := h.read(metrics); err != nil {
		return Health{}, fmt.Errorf("read the metrics of etcd: %w", err)
	}
	return h, nil
}

func (h *Health) read(metrics []byte) error {
	values, probed := map[string]float64{}, map[string]bool{}
	required := []string{seriesVersion, seriesMembers, seriesLearner, seriesHasLeader, seriesLeader, seriesSize, seriesQuota}
	err := promtext.Each(bytes.NewReader(metrics), maxMetrics, append(required, seriesConnected, seriesProbed), func(s promtext.Sample) {
		values[s.Name] += s.Value
		switch {
		case s.Name == seriesVersion:
			h.Version = phrase.Cut(s.Labels["server_version"], 32)
		case s.Name == seriesProbed:
			probed[s.Labels["To"]] = true
		case s.Name == seriesConnected:
			probed[s.Labels["Remote"]] = true
		case s.Name == seriesMembers && s.Labels["Remote"] == s.Labels["Local"]:
			values[s.Name] -= s.Value // it is counted below, whether etcd counts it or not
		}
	})
	// Before 3.6 etcd does not count members, but it measures the way to each other one, also to
	// one that does not answer. One that was removed counts until etcd starts again.
	if strings.HasPrefix(h.Version, "3.5.") {
		values[seriesMembers] = float64(len(probed))
	}
	for _, name := range required {
		if v, is := values[name]; err == nil && (!is || v < 0 || v != v || v > 1<<60) {
			err = errors.New("they are without a number of " + name)
		}
	}
	h.Members, h.Connected = int(values[seriesMembers])+1, int(values[seriesConnected])
	h.Learner, h.HasLeader, h.Leader = values[seriesLearner] != 0, values[seriesHasLeader] != 0, values[seriesLeader] != 0
	h.Size, h.Quota = int64(values[seriesSize]), int64(values[seriesQuota])
	return err
}

// Why says in part of a sentence why k3s should not be stopped on a server of this etcd, ""
// where nothing is against it.
func (h Health) Why() string {
	switch {
	case h.Alarm != "":
		return "etcd reports " + h.Alarm
	case !h.HasLeader:
		return "etcd has no leader"
	case h.Learner:
		return "etcd of this server is a learner, which does not vote yet"
	case h.Connected < h.Members-1:
		return fmt.Sprintf("etcd of this server is connected with %d of %s", h.Connected, phrase.Counted(h.Members-1, "other member"))
	case h.Quota > 0 && h.Size >= h.Quota/100*fullAt:
		return fmt.Sprintf("the database of etcd has %d MiB of the %d MiB that it may have", h.Size>>20, h.Quota>>20)
	}
	return ""
}
