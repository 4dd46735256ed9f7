package apps

import (
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// lastRenewal is the sentence that tells when the kubelet of a deleted Node was
// last seen to renew its Lease, nil where that is not remembered.
func (f facts) lastRenewal(lost types.Node) []string {
	seen := f.known[lost.Name].LeaseSeen
	if seen.IsZero() {
		return nil
	}
	ago := "less than a minute"
	if d := f.now.Sub(seen).Truncate(time.Minute); d > 0 {
		ago = strings.TrimSuffix(d.String(), "0s")
	}
	return []string{fmt.Sprintf("The last renewal of the Lease of %s before its Node was deleted was at %s, %s ago.",
		lost.Name, seen.UTC().Format(time.RFC3339), ago)}
}

// renewedSince is how much is left of the grace of a device whose Lease is another
// than is remembered from before the deletion of its Node, 0 for nothing. A Lease
// that outlives its Node and is renewed shows that the kubelet lives.
func (f facts) renewedSince(lost types.Node) time.Duration {
	r := f.fresh.renewed[lost.UID]
	if r.by.IsZero() || r.by.Equal(f.known[lost.Name].LeaseRenewed) {
		return 0
	}
	return max(0, deletedFor-(f.uptime-r.seen))
}
