package apps

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// lookTimeout bounds a look at what no table holds.
const lookTimeout = 30 * time.Second

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{now: time.Now().Round(0), uptime: c.Uptime(), configsKnown: c.Configs.Synced()}
	f.configs, f.statuses, f.repairs = c.Configs.All(), c.Status.All(), c.Repairs.All()
	f.requests = c.Requests.All()
	settings, _ := c.Settings.Get(types.Global)
	f.events = settings.GlobalSettings[types.SettingDescheduleOn].StrValue
	// The state of the API is read before the tables: they can only be more
	// complete than it says.
	api, known := c.API.Get(types.Global)
	f.wholeSets = api.Apps
	f.nodes, f.sets = c.Nodes.All(), c.Sets.All()
	f.pods, f.vmis = slices.Collect(maps.Values(c.AppPods.All())), slices.Collect(maps.Values(c.VMIs.All()))
	info, hasInfo := c.Info.Get(types.Global)
	f.self, _ = types.OwnNode(f.nodes, info)
	switch {
	case known && api.Answers() && api.Synced && hasInfo:
		c.blindSince = time.Time{}
	case c.blindSince.IsZero():
		c.blindSince = f.now
		if known && !api.Answers() && api.SilentSince.Before(f.now) {
			c.blindSince = api.SilentSince // the silence is older than the news of it
		}
	}
	f.blindSince = c.blindSince
	c.hear(f)
	f.memory = c.mem
	return f
}

// hear notes which witnesses have spoken since the last step. The first word
// that this process hears of one counts from its second: it may be old.
func (c *Component) hear(f facts) {
	rounds, witnessed := map[string]int64{}, map[string]time.Time{}
	for name, n := range f.nodes {
		if n.Witness == nil {
			continue
		}
		rounds[name] = n.Witness.Round
		last, heard := c.rounds[name]
		switch {
		case heard && last != n.Witness.Round:
			witnessed[name] = f.now
		case heard:
			witnessed[name] = c.mem.witnessed[name]
		}
	}
	c.rounds, c.mem.witnessed = rounds, witnessed
}

// lookAfresh asks for what is too costly to watch.
func (c *Component) lookAfresh(ctx context.Context) fresh {
	l := fresh{at: c.Uptime()}
	var err error
	if l.nodes, err = c.Kube.FreshNodes(ctx); err == nil {
		l.storage, err = c.Kube.Storage(ctx, "")
	}
	if err != nil {
		l.err = err.Error()
	}
	return l
}

// collect takes in what has ended since the last step.
func (c *Component) collect() {
	if l, ok := c.looking.Take(); ok {
		l.renewed = renewals(c.mem.fresh.renewed, l)
		c.mem.fresh = l
	}
	if out, ok := c.working.Take(); ok {
		c.finish(out)
	}
}

// renewals keeps since when each kubelet's Lease has looked as it does.
func renewals(old map[string]renewal, l fresh) map[string]renewal {
	now := map[string]renewal{}
	if l.err != "" {
		return old
	}
	for _, n := range l.nodes {
		r, ok := old[n.UID]
		if !ok || !r.by.Equal(n.RenewedAt) {
			r = renewal{by: n.RenewedAt, seen: l.at}
		}
		now[n.UID] = r
	}
	return now
}
