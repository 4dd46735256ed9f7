package kubeconfigs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/zedkube/zedkube/types"
)

const (
	// othersAfter is how long after its end a kubeconfig is left to the node that issued
	// it: that one may be gone for good, and the clocks of nodes differ.
	othersAfter = 10 * time.Minute
	maxReason   = 256 // bytes
	usually     = time.Hour
)

type facts struct {
	now    time.Time
	own    string // the name of this node; "" while unknown
	issued map[string]types.IssuedKubeconfig
}

type action struct {
	revoke []types.IssuedKubeconfig
	again  time.Duration // until the next one expires; 0 for none
}

// decide says which kubeconfigs have expired: those that this node issued at once, those of
// others once they had the time to do it themselves.
func decide(f facts) (a action) {
	for _, name := range slices.Sorted(maps.Keys(f.issued)) {
		k := f.issued[name]
		left := k.Expires.Sub(f.now)
		if k.Node == "" || k.Node != f.own {
			left += othersAfter
		}
		if left <= 0 {
			a.revoke = append(a.revoke, k)
		} else if a.again == 0 || left < a.again {
			a.again = left
		}
	}
	return a
}

// Request is the body of a POST.
type Request struct {
	For    string `json:"for,omitempty"`  // a duration as Go writes it; 1h where it is left out
	Role   string `json:"role,omitempty"` // view or edit; view where it is left out
	Reason string `json:"reason"`
}

// check returns what is asked for, with what was left out, and for how long.
func (r Request) check() (Request, time.Duration, error) {
	r.Role, r.Reason = cmp.Or(r.Role, "view"), strings.TrimSpace(r.Reason)
	lasts, err := time.ParseDuration(cmp.Or(r.For, usually.String()))
	switch {
	case err != nil || lasts < types.KubeconfigAtLeast || lasts > types.KubeconfigAtMost:
		return r, 0, fmt.Errorf("a kubeconfig is issued for %s to %s, such as 1h", types.KubeconfigAtLeast, types.KubeconfigAtMost)
	case r.Role != "view" && r.Role != "edit":
		return r, 0, errors.New("the role is view or edit")
	case r.Reason == "" || len(r.Reason) > maxReason || strings.ContainsFunc(r.Reason, func(c rune) bool { return c == unicode.ReplacementChar || !unicode.IsPrint(c) }):
		return r, 0, fmt.Errorf("a reason is required: one line of at most %d bytes", maxReason)
	}
	return r, lasts, nil
}

// hostOf is where others reach the API server: this node's cluster address where it is a
// server, or outside of a cluster the address that its kubelet reports; else a server that
// is Ready. "" where none is known.
func hostOf(own types.Node, nodes map[string]types.Node, status types.EdgeNodeClusterStatus) string {
	if own.HasAPIServer() {
		if address, ok := status.OwnAddress(); ok && status.ClusterIPIsReady {
			return address.String()
		}
		return own.InternalIP
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if n := nodes[name]; n.HasAPIServer() && n.Ready == types.ConditionTrue && n.InternalIP != "" {
			return n.InternalIP
		}
	}
	return ""
}
