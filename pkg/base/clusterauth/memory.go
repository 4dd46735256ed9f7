package clusterauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// Stamp is what the fresh stamp of a Node says of its status server.
type Stamp string

const (
	// StampNone is for a Node without a fresh stamp: one with EVE's own zedkube.
	StampNone Stamp = ""
	// StampPlain is of a zedkube of ours that has no cluster token, or is from before it spoke TLS.
	StampPlain Stamp = "plain"
	// StampTLS is of one that does.
	StampTLS Stamp = "tls"
)

// Peer is what is known of one who is asked. Of a server that is to be joined
// that is nothing.
type Peer struct {
	Name  string // of its Node; "" for unknown
	Boot  string // the boot ID of its Node; "" for unknown, or for one that is none
	Stamp Stamp
}

// PeerOf is what a Node says of itself. Which one of several with one address
// answers there is not known, but by plain HTTP none that speaks TLS is asked.
func PeerOf(nodes ...types.Node) (p Peer) {
	for _, n := range nodes {
		is := Peer{Name: n.Name}
		if len(n.BootID) <= maxBoot {
			is.Boot = n.BootID
		}
		switch {
		case n.Foreign():
		case n.Agent.TLS:
			is.Stamp = StampTLS
		default:
			is.Stamp = StampPlain
		}
		if len(nodes) == 1 || is.Stamp == StampTLS {
			p = is
		}
	}
	return p
}

// MemoryFile is where the agent keeps its Memory.
const MemoryFile = "/persist/zedkube/peers-with-tls"

const (
	maxPeers = 256 // Nodes of a cluster, and some that are gone
	maxBoot  = 64  // bytes of a boot ID; the kernel's has 36
	maxFile  = maxPeers << 10
)

// Memory remembers which peers were seen to speak TLS, with a certificate or bearer
// of the cluster: one that has is asked in no other way as long as its boot ID and
// stamp stay. Its zero value remembers none.
type Memory struct {
	mu    sync.Mutex
	peers map[string]sighting
	dirty bool // it has not been kept as it is
}

// sighting is the boot in which a peer was seen, and what its stamp said.
type sighting struct {
	Boot  string `json:"boot"`
	Stamp Stamp  `json:"stamp,omitempty"`
	since time.Time
	last  time.Time
}

// Saw notes that p speaks TLS.
func (m *Memory) Saw(p Peer, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.peers[p.Name]
	is := sighting{Boot: p.Boot, Stamp: p.Stamp, since: now, last: now}
	if known && was.Boot == is.Boot {
		is.since = was.since
	}
	m.dirty = m.dirty || !known || was.Boot != is.Boot || was.Stamp != is.Stamp
	m.put(p.Name, is)
}

// put forgets for a new one the one not seen for longest.
func (m *Memory) put(name string, s sighting) {
	if m.peers == nil {
		m.peers = map[string]sighting{}
	}
	if _, known := m.peers[name]; !known && len(m.peers) >= maxPeers {
		oldest := ""
		for other, o := range m.peers {
			if oldest == "" || o.last.Before(m.peers[oldest].last) {
				oldest = other
			}
		}
		delete(m.peers, oldest)
	}
	m.peers[name] = s
}

// For says how long ago p was first seen with TLS in its present boot, 0 for never.
func (m *Memory) For(p Peer, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, known := m.peers[p.Name]; known && s.Boot == p.Boot {
		return now.Sub(s.since)
	}
	return 0
}

// sees reports whether p was seen with TLS.
func (m *Memory) sees(p Peer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.peers[p.Name]
	return known
}

// tests forgets a p that has booted since it was seen, or whose stamp says
// something else: what it speaks has to be found out once more. Where the boot is
// not known it is taken for the same.
func (m *Memory) tests(p Peer) (forgot bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.peers[p.Name]
	if !known || s.Stamp == p.Stamp && (s.Boot == p.Boot || p.Boot == "") {
		return false
	}
	delete(m.peers, p.Name)
	m.dirty = true
	return true
}

// Read takes in what Keep has written at path, none for no file. The times of it
// begin now.
func (m *Memory) Read(path string, now time.Time) error {
	data, err := safefile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var kept map[string]sighting
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil {
		return fmt.Errorf("read the note of the peers that speak TLS: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, s := range kept {
		s.since, s.last = now, now
		m.put(name, s)
	}
	return nil
}

// Keep writes it to path, if anything has changed. The directory of the file is made
// where the one above that is there.
func (m *Memory) Keep(path string) error {
	m.mu.Lock()
	if !m.dirty {
		m.mu.Unlock()
		return nil
	}
	data, err := json.Marshal(m.peers)
	m.dirty = false
	m.mu.Unlock() // a disk may hang
	did := keptfile.Awaits
	if err == nil {
		file := keptfile.File{Path: path, Name: "the note of the peers that speak TLS", MakeDir: true}
		did, err = file.Keep(keptfile.Desired{Do: keptfile.Write, Content: string(data)})
	}
	if err != nil || did == keptfile.Awaits {
		m.mu.Lock()
		m.dirty = true
		m.mu.Unlock()
	}
	return err
}
