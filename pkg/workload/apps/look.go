package apps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// lookTimeout bounds a look at what no table holds.
const lookTimeout = 30 * time.Second

// heard is what the witnesses have published, as the steps heard it, and what has become of the decision for a repair.
type heard struct {
	words   types.Witnesses
	at      time.Duration // uptime of the last step that saw the whole cluster
	others  []podClaims   // as in the task under way
	dropped []string      // its applications that are not to be taken any more
}

func (c *Component) look() facts {
	f := facts{now: time.Now().Round(0), uptime: c.Uptime(), boot: c.BootID, configsKnown: c.Configs.Synced()}
	f.configs, f.statuses, f.repairs = c.Configs.All(), c.Status.All(), c.Repairs.All()
	f.requests = c.Requests.All()
	settings, _ := c.Settings.Get(types.Global)
	c.heard(&f, settings.Duration(types.SettingConfigInterval, time.Second, defaultInterval))
	f.events = settings.GlobalSettings[types.SettingDescheduleOn].StrValue
	// The state of the API is read before the tables: they can only be more
	// complete than it says.
	api, known := c.API.Get(types.Global)
	f.wholeSets = api.Apps
	f.nodes, f.sets = c.Nodes.All(), c.Sets.All()
	f.known = c.Known.All()
	f.mounts, _ = c.Mounts.Get(types.Global)
	f.off, _ = c.Off.Get(types.Global)
	f.pods, f.vmis = c.pods(f), slices.Collect(maps.Values(c.VMIs.All()))
	info, hasInfo := c.Info.Get(types.Global)
	f.self, _ = types.OwnNode(f.nodes, info)
	switch {
	case known && api.Answers() && api.Synced && hasInfo:
		c.blind = false
	case !c.blind:
		c.blind, c.unseenAt = true, f.uptime
		if known && !api.Answers() && api.SilentSince.Before(f.now) {
			c.unseenAt -= f.now.Sub(api.SilentSince) // the silence is older than the news of it
		}
	}
	if c.blind {
		f.unseenSince = f.now.Add(c.unseenAt - f.uptime)
	}
	c.mem.words = c.mem.words.Hear(f.nodes, !c.blind, f.uptime)
	f.witnessed = c.mem.words.Seen(f.now, f.uptime)
	f.memory = c.mem
	if !c.blind {
		_ = c.witnesses.Publish(types.Global, f.heard()) // in memory: it never fails
	}
	return f
}

// heard is that of now. What a repair was decided by changes while it waits for the repair lease.
func (f facts) heard() heard {
	h := heard{words: f.words, at: f.uptime}
	if f.acting != nil && f.acting.lost.Name != "" {
		h.others = f.podClaims(f.acting.lost.Name)
	}
	if f.acting == nil || f.acting.act != types.ActFailover {
		return h
	}
	apps := f.apps()
	for _, t := range f.acting.targets {
		i := slices.IndexFunc(apps, func(a app) bool { return a.key == t.key })
		dropped := i < 0
		if !dropped {
			_, dropped = f.unrepaired(apps[i])
		}
		if dropped || !t.asked && apps[i].tiedTo(f.acting.lost.Name) {
			h.dropped = append(h.dropped, t.key)
		}
	}
	return h
}

// pods are those of the configured applications, wherever they are, and all that
// are on nodes that do not plainly serve. There may be thousands of others.
func (c *Component) pods(f facts) []types.Pod {
	names, ids, serve := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, cfg := range f.configs {
		names[cfg.KubeName()], ids[strings.ToLower(cfg.UUIDandVersion.UUID.String())] = true, true
	}
	for name, n := range f.nodes {
		if n.Ready == types.ConditionTrue && n.Fence == nil && !n.OutOfService {
			serve[name] = true
		}
	}
	want := []map[string]bool{names, ids, serve}
	return slices.Collect(maps.Values(c.pick.Of(c.AppPods, want, func(p types.Pod) bool {
		return !serve[p.NodeName] || names[p.App] || names[p.Owner.Name] || ids[appOf(p.AppDomain)]
	})))
}

// readAgain asks for what is too costly to watch; of deleted Nodes for their
// Leases.
func (c *Component) readAgain(ctx context.Context, deleted []types.Node) fresh {
	l := fresh{at: c.Uptime(), tried: c.Uptime(), leases: map[string]time.Time{}}
	var err error
	if l.nodes, err = c.Kube.FreshNodes(ctx); err == nil {
		l.storage, err = c.Kube.Storage(ctx, "")
	}
	for _, n := range deleted {
		if err == nil {
			l.leases[n.UID], err = c.Kube.NodeLease(ctx, n.Name)
		}
	}
	l.came = c.Uptime()
	if err != nil {
		l.err = err.Error()
	}
	return l
}

func (c *Component) collect() {
	if l, ok := c.looking.Take(); ok {
		c.mem.fresh = c.mem.fresh.then(l)
	}
	if out, ok := c.working.Take(); ok {
		c.finish(out)
	}
	if err, ok := c.telling.Take(); ok {
		c.complain(telling, types.ActNone, err, true, c.Log.WithField("act", telling))
	}
}

// then is what is known after another look: one that failed leaves what was seen
// before, as old as it is.
func (l fresh) then(next fresh) fresh {
	if next.err != "" {
		l.tried, l.err = next.tried, next.err
		return l
	}
	next.renewed = renewals(l.renewed, next)
	return next
}

// stale says that there is no fresh look, "" where there is one. All that it has shown is looked at once
// more under the repair lease: a slow API server makes it no older.
func (f facts) stale() string { return f.staleSince(max(f.fresh.at, f.fresh.came)) }

// staleSince says that there is no look that counts from then on, "" where there is one.
func (f facts) staleSince(at time.Duration) string {
	switch took := f.fresh.came - f.fresh.at; {
	case f.fresh.at != 0 && f.uptime-at <= freshFor:
		return ""
	case f.fresh.err != "":
		return "The current state of the cluster cannot be read: " + f.fresh.err + "."
	case took > freshFor:
		return fmt.Sprintf("Volumes and Leases are being checked; the last look took %s.", took.Round(time.Second))
	}
	return "Volumes and Leases are being checked."
}

// renewals keeps for how long each kubelet's Lease has looked as it does: from the
// first answer to the beginning of the last look. How long an answer took to come
// says nothing.
func renewals(old map[string]renewal, l fresh) map[string]renewal {
	now := map[string]renewal{}
	note := func(uid string, by time.Time) {
		r, ok := old[uid]
		if !ok || !r.by.Equal(by) {
			r = renewal{by: by, seen: l.came}
		}
		r.still = l.at
		now[uid] = r
	}
	for uid, by := range l.leases {
		note(uid, by)
	}
	for _, n := range l.nodes {
		note(n.UID, n.RenewedAt)
	}
	return now
}

// app is one configured application with all that the cluster has of its
// present generation.
type app struct {
	key    string
	cfg    types.AppInstanceConfig
	set    types.AppSet // zero where there is none
	pods   []types.Pod  // terminating ones too
	vmis   []types.VMI
	claims []string // of its volumes, namespace/name
}

// apps sorts what the tables hold by application.
func (f facts) apps() []app {
	byDomain, byName := map[string][]*types.Pod{}, map[string][]*types.Pod{}
	for i := range f.pods { // it may be in both, and the application's Owns decides
		p := &f.pods[i]
		if p.AppDomain != "" {
			byDomain[appOf(p.AppDomain)] = append(byDomain[appOf(p.AppDomain)], p)
		}
		names := []string{p.App}
		if p.Owner.Kind == types.KindReplicaSet && p.Owner.Name != p.App {
			names = append(names, p.Owner.Name)
		}
		for _, name := range names {
			if name != "" {
				byName[name] = append(byName[name], p)
			}
		}
	}
	vmis := map[string][]types.VMI{}
	for _, v := range f.vmis {
		vmis[appOf(v.AppDomain)] = append(vmis[appOf(v.AppDomain)], v)
	}
	var all []app
	for _, key := range slices.Sorted(maps.Keys(f.configs)) {
		cfg := f.configs[key]
		a := app{key: key, cfg: cfg}
		name, id := cfg.KubeName(), strings.ToLower(cfg.UUIDandVersion.UUID.String())
		kind, candidates := types.KindReplicaSet, byName[name]
		if cfg.IsVMI() {
			kind, candidates = types.KindVMIReplicaSet, byDomain[id]
		}
		a.set = f.sets[types.AppSet{Kind: kind, Name: name}.Key()]
		a.pods = make([]types.Pod, 0, len(candidates))
		for _, p := range candidates {
			if cfg.Owns(*p) {
				a.pods = append(a.pods, *p)
			}
		}
		for _, v := range vmis[id] {
			if v.Owner.Kind == "" || v.Owner.Name == name {
				a.vmis = append(a.vmis, v)
			}
		}
		a.claims = claims(a)
		all = append(all, a)
	}
	return all
}

// appOf is the application's UUID in a domain name, <UUID>.<version>.<number>.
func appOf(domain string) string {
	id, _, _ := strings.Cut(domain, ".")
	return strings.ToLower(id)
}

// claims are those of the set and of the pods: a hot-plugged volume is only in
// the latter.
func claims(a app) []string {
	names := slices.Clone(a.set.Claims)
	for _, p := range a.pods {
		names = append(names, p.Claims...)
	}
	for i := range names {
		names[i] = types.NamespaceApps + "/" + names[i]
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// runs reports whether a copy of it runs on a node that is Ready.
func (a app) runs(nodes map[string]types.Node) bool {
	return slices.ContainsFunc(a.pods, func(p types.Pod) bool {
		return !p.Terminating() && p.Phase == types.PodRunning && nodes[p.NodeName].Ready == types.ConditionTrue && a.vmRuns(p)
	})
}

// vmRuns reports whether the virtual machine in a launcher pod runs; a pod
// without one is all there is.
func (a app) vmRuns(p types.Pod) bool {
	if !a.cfg.IsVMI() {
		return true
	}
	v, ok := a.vmi(p.VMIName())
	return ok && v.Phase == types.VMIRunning
}

func (a app) vmi(name string) (types.VMI, bool) {
	i := slices.IndexFunc(a.vmis, func(v types.VMI) bool { return v.Name == name })
	if i < 0 {
		return types.VMI{}, false
	}
	return a.vmis[i], true
}

func (a app) on(node string) bool {
	return slices.ContainsFunc(a.pods, func(p types.Pod) bool { return p.NodeName == node && !finished(p) }) ||
		slices.ContainsFunc(a.vmis, func(v types.VMI) bool { return v.NodeName == node })
}

func finished(p types.Pod) bool { return p.Phase == types.PodSucceeded || p.Phase == types.PodFailed }

// tiedTo reports whether the application must not be taken from a node because
// it may run nowhere else. One whose set requires another node by now may.
func (a app) tiedTo(node string) bool {
	if is := a.set.Affinity; is.Required && is.Node != "" && is.Node != node {
		return false
	}
	return a.cfg.AffinityType == types.AffinityRequired || a.set.Affinity.Required
}
