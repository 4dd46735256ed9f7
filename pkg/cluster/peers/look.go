package peers

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

const (
	// lookTimeout is for connections that are tried at the same time, to the peers and
	// then to the gateways, with some time to spare.
	lookTimeout = 10 * time.Second
	// atOnce bounds the connections that are tried at the same time.
	atOnce = 64
)

// Place is where a peer may answer.
type Place struct {
	Peer    string
	Address string // with its port
}

// Places are all known places of the peers: each address, at every port at which
// a device lets its cluster in (docs/wire.md, "Firewall").
func Places(peers []types.ClusterPeer) []Place {
	var out []Place
	for _, p := range peers {
		for _, a := range p.Addresses {
			for _, port := range []int{types.PortStatus, types.PortKubelet, types.PortAPI, types.PortEtcdPeer} {
				out = append(out, Place{p.Name, net.JoinHostPort(a, strconv.Itoa(port))})
			}
		}
	}
	return out
}

// lookWithin is how long a look at that many places may take where none of them answers.
func lookWithin(places int) time.Duration {
	return lookTimeout + time.Duration(places/atOnce)*reach.DialTimeout
}

// Look is what a look has found.
type Look struct {
	Answer  string // a sentence: which peer answered, and where; "" for none
	Untried string // a sentence: why a peer could not be tried; "" where all were
	Carrier string // a sentence: what is wrong with the own link; "" for nothing
	Gateway bool   // a gateway answers
}

// Trouble says why the silence of others proves nothing, "" where it does.
func (l Look) Trouble(controller bool) string {
	switch {
	case l.Carrier != "":
		return l.Carrier
	case l.Untried != "":
		return l.Untried
	case !l.Gateway && !controller:
		return "neither a gateway nor the controller answers: this device may be cut off itself"
	}
	return ""
}

// Link is where the kernel tells of the own link.
type Link struct {
	Interface   string // Linux name of the cluster interface, "" for unknown
	Proc, Sysfs string
}

// LookFor tries all places and the own link.
func LookFor(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), places []Place, link Link) Look {
	l := Look{Carrier: link.carrier()}
	var mu sync.Mutex
	tryAll(ctx, dial, places, func(p Place, answered, tried bool, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case answered:
			l.Answer = fmt.Sprintf("node %s answers at %s", p.Peer, p.Address)
		case !tried:
			l.Untried = fmt.Sprintf("node %s could not be tried at %s: %v", p.Peer, p.Address, err)
		}
	})
	l.Gateway = link.gateway(ctx, dial)
	return l
}

// tryAll connects to all places.
func tryAll(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), places []Place, is func(p Place, answered, tried bool, err error)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, p := range places {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			answered, tried, err := reach.Connect(ctx, dial, p.Address)
			is(p, answered, tried && ctx.Err() == nil, err)
		})
	}
	all.Wait()
}

// carrier says what is wrong with the cable of the cluster interface, "" for
// nothing.
func (l Link) carrier() string {
	if l.Interface == "" || strings.ContainsAny(l.Interface, "/\x00") {
		return "the cluster interface is not known"
	}
	content, err := readShort(filepath.Join(l.Sysfs, "class/net", l.Interface, "carrier"))
	if err != nil { // of an interface that is down it cannot be read
		return fmt.Sprintf("whether interface %s has a link is unknown", l.Interface)
	}
	if strings.TrimSpace(content) != "1" {
		return fmt.Sprintf("interface %s has no link", l.Interface)
	}
	return ""
}

// gatewayPorts are tried at a gateway: one of them is usually answered, if only
// by a refusal. What answers to none of them has been asked for by ARP.
var gatewayPorts = []int{53, 80, 443}

// gateway reports whether a gateway answers.
func (l Link) gateway(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error)) bool {
	gateways := l.gateways()
	var places []Place
	for _, g := range gateways {
		for _, port := range gatewayPorts {
			places = append(places, Place{g.String(), net.JoinHostPort(g.String(), strconv.Itoa(port))})
		}
	}
	var mu sync.Mutex
	answers := false
	tryAll(ctx, dial, places, func(_ Place, answered, _ bool, _ error) {
		mu.Lock()
		defer mu.Unlock()
		answers = answers || answered
	})
	return answers || l.neighbour(gateways)
}

// gateways are those of the default routes (proc(5), "/proc/net/route").
func (l Link) gateways() (out []netip.Addr) {
	content, _ := readShort(filepath.Join(l.Proc, "net/route"))
	for line := range strings.Lines(content) {
		f := strings.Fields(line)
		if len(f) < 3 || f[1] != "00000000" {
			continue
		}
		raw, err := hex.DecodeString(f[2])
		if err != nil || len(raw) != 4 || binary.LittleEndian.Uint32(raw) == 0 {
			continue
		}
		out = append(out, netip.AddrFrom4([4]byte{raw[3], raw[2], raw[1], raw[0]}))
	}
	return out
}

// neighbour reports whether one of the gateways has a complete entry in the
// neighbour table. It was just written to, so that a dead one's would be gone
// within seconds (proc(5), "/proc/net/arp").
func (l Link) neighbour(gateways []netip.Addr) bool {
	content, _ := readShort(filepath.Join(l.Proc, "net/arp"))
	for line := range strings.Lines(content) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		addr, err := netip.ParseAddr(f[0])
		flags, bad := strconv.ParseUint(f[2], 0, 16)
		for _, g := range gateways {
			if err == nil && bad == nil && addr == g && flags&2 != 0 && f[3] != "00:00:00:00:00:00" {
				return true
			}
		}
	}
	return false
}

// readShort reads a file of the kernel's, which is short.
func readShort(name string) (string, error) {
	content, err := safefile.Read(name, safefile.Small)
	return string(content), err
}
