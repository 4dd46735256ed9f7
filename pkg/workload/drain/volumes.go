package drain

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// takeVolumes notes which volumes are in the way, since when, and how fast
// their rebuilds go.
func (c *Component) takeVolumes(now time.Time, volumes []types.DrainVolume) {
	v := &c.mem.view
	stay := map[string]time.Time{}
	v.volumes = volumes
	for i := range v.volumes {
		vol := &v.volumes[i]
		stay[vol.Name] = since(v.stands[vol.Name], now, true)
		vol.Since = c.wall(stay[vol.Name])
		vol.ETA = v.pace.eta(vol.Name, vol.Percent, now)
		if empty := c.mem.emptied; !empty.IsZero() && now.Sub(later(stay[vol.Name], empty)) >= inVain {
			lingers(vol)
		}
	}
	v.stands = stay
}

// lingers says of a volume that is in the way by nothing but its use here, and
// whose pods are gone for a while, that waiting is in vain.
func lingers(vol *types.DrainVolume) {
	if vol.Why != claimHere && vol.Why != engineOnly {
		return
	}
	vol.Why = "it is still in use on this node, although the pods that the drain evicts are gone"
	vol.Outlook = types.OutlookNever
	vol.Remedy = "see who holds it: kubectl get volumeattachment; a pod that stays may use it, or the attacher of its CSI driver does not run"
}
