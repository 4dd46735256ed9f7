package k3supdate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/compat"
	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3setcd"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

const (
	ahead         = time.Minute // of a snapshot that was taken now
	lookEvery     = 30 * time.Second
	idleEvery     = 10 * time.Minute // while nothing is to change: who leads etcd shows in the stamp
	lookFor       = 2 * time.Minute  // how long a look may take
	lookCounts    = 5 * time.Minute
	prepareFor    = 40 * time.Minute // a download, or a snapshot
	prepareAgain  = time.Minute      // after a failure, and twice as long after each further one
	prepareRarely = time.Hour
	preparedFor   = 15 * time.Minute // after which what was prepared, and does not do, is prepared again
)

// Disk is what only this device has of k3s: its binaries, and its etcd. Every verb ends when
// its context does.
type Disk interface {
	Look(ctx context.Context, before Found) Found
	Fetch(ctx context.Context, version, sum string) error
	Save(ctx context.Context) error
	// Install puts the staged binary, if it is that one, in its place, and Restore the former one.
	Install(ctx context.Context, version, sum string) error
	Restore(ctx context.Context, version string) error
}

// finding is what is known of something that only this node can look at.
type finding struct {
	known bool
	lacks string // a part of a sentence; "" for nothing
	why   string // it is not known; a part of a sentence
}

// evidence is what only this node can look at. What is not known does not hold: an operator
// looks at it and releases the change.
type evidence struct {
	binary     finding // of To, checked, on this disk, with space for it
	snapshot   finding // of etcd, recent, read back
	etcd       finding // members, alarms, size
	components finding // that they work with To
	removed    finding // APIs in use that To does not have

	at       time.Duration // uptime of the look; 0 for none that counts
	disk     string        // version of the k3s that is started next; "" where it is not known
	staged   string        // SHA-256 of To as it is staged; "" where it is not
	fetches  bool          // To can be downloaded
	saves    bool          // a snapshot can be taken
	etcdHas  string        // version of this server's etcd; "" where it is not known
	etcdLead bool
}

// gathered is a look at the device and the API server.
type gathered struct {
	swaps   int           // of the component when it began
	at      time.Duration // uptime of its beginning
	to      string        // what was asked about; "" where nothing is to change
	found   Found
	apis    types.DeprecatedAPIs
	apisErr error
}

// preparation is what is done before anything is stopped.
type preparation int

const (
	noPreparation preparation = iota
	fetch                     // download To and stage it
	save                      // take a snapshot of etcd
)

// prepared is what came of one, and how often in a row it failed.
type prepared struct {
	what   preparation
	of     string // the version
	err    error
	at     time.Duration // uptime of its end
	failed int
}

// gather looks at what only this device knows of a change. Where nothing is to change the API
// server is not asked.
func (c *Component) gather(ctx context.Context, before Found, to string) gathered {
	g := gathered{at: c.Uptime(), to: to}
	g.found = c.Disk.Look(ctx, before)
	if to != "" {
		g.apis, g.apisErr = c.Kube.DeprecatedAPIs(ctx)
	}
	return g
}

// prepare does what was decided, with what came of the last time.
func (c *Component) prepare(ctx context.Context, what preparation, to, sum string, last prepared) prepared {
	p := prepared{what: what, of: to}
	switch what {
	case fetch:
		p.err = c.Disk.Fetch(ctx, to, sum)
		types.Did(ctx, c.Operations, "stage k3s", "version/"+to, p.err)
	case save:
		p.err = c.Disk.Save(ctx)
		types.Did(ctx, c.Operations, "take snapshot", "snapshot/zedkube", p.err)
	}
	if p.err != nil {
		p.failed = 1
		if last.what == p.what && last.of == p.of {
			p.failed = last.failed + 1
		}
	}
	p.at = c.Uptime()
	return p
}

// due reports whether a preparation may be tried again.
func (p prepared) due(what preparation, of string, uptime time.Duration) bool {
	switch {
	case p.what != what || p.of != of:
		return true
	case p.failed == 0:
		return uptime >= p.at+preparedFor
	}
	return uptime >= p.at+min(prepareAgain<<min(p.failed-1, 10), prepareRarely)
}

// weigh is what a look says of a change to a version, and what came of the last preparation.
// sum is the setting that asks for a SHA-256.
func weigh(g gathered, last prepared, to, sum string, parts types.KubeNodeConditions, now time.Time) (e evidence) {
	f := g.found
	e.at, e.disk, e.etcdHas, e.etcdLead = g.at, f.Binary, f.Etcd.Version, f.Etcd.Leader
	e.binary = f.binaryOf(to, sum)
	if f.Staged.Version == to && to != f.Binary && e.binary.known && e.binary.lacks == "" {
		e.staged = f.Sum
	}
	e.fetches = e.binary.known && f.Staged.Version != to && f.Space == nil
	if e.fetches && last.what == fetch && last.of == to && last.err != nil {
		e.binary.lacks += "; it could not be downloaded: " + why(last.err) + ". Without internet, run here: zedkube k3s stage FILE --version " + to + " --sha256 SUM"
	}
	if f.HasEtcd {
		e.snapshot, e.saves = f.snapshot(now)
		if last.what == save && last.err != nil && e.saves {
			e.snapshot.lacks += "; none could be taken: " + why(last.err)
		}
		e.etcd = finding{known: f.EtcdErr == nil, why: why(f.EtcdErr)}
		if e.etcd.known {
			e.etcd.lacks = f.Etcd.Why()
		}
	}
	if v, err := types.ParseK3sVersion(to); err == nil {
		e.components = work(parts, v.Minor)
		removed, unknown := g.apis.RemovedBy(v.Minor, now)
		e.removed = finding{known: g.apisErr == nil && unknown == "", why: unknown}
		if g.apisErr != nil {
			e.removed.why = why(g.apisErr)
		} else if len(removed) > 0 {
			e.removed = finding{known: true, lacks: fmt.Sprintf("the API %s is in use, and %s does not have it", phrase.Few(names(removed), 3), to)}
		}
	}
	return e
}

// binaryOf is what is known of a version's binary here.
func (f Found) binaryOf(to, sum string) finding {
	switch {
	case f.None != nil:
		return finding{why: why(f.None)}
	case f.Binary == to:
		return finding{known: true}
	case f.Err != nil:
		return finding{why: why(f.Err)}
	case sum != "" && k3sbinary.CheckSum(sum) != nil:
		return finding{known: true, lacks: "the setting " + types.SettingK3sSum + " is no SHA-256: want 64 digits 0-9 and a-f"}
	case f.Space != nil:
		return finding{known: true, lacks: why(f.Space)}
	case f.Staged.Version != to:
		return finding{known: true, lacks: "k3s " + to + " is not staged on this disk yet"}
	case sum != "" && f.Sum != sum:
		return finding{known: true, lacks: "the staged k3s " + to + " has SHA-256 " + f.Sum + ", the setting " + types.SettingK3sSum + " asks for another"}
	}
	return finding{known: true}
}

// snapshot judges the newest one of etcd, and reports whether another would do.
func (f Found) snapshot(now time.Time) (is finding, saves bool) {
	age := now.Sub(f.Snapshot.At)
	switch {
	case f.Snapshot.Name == "" && f.SnapErr != nil:
		return finding{why: why(f.SnapErr)}, false
	case f.SnapErr != nil:
		return finding{known: true, lacks: why(f.SnapErr)}, true
	case f.Snapshot.Name == "":
		return finding{known: true, lacks: "there is no snapshot of etcd on this server"}, true
	case age > k3setcd.SnapshotFresh || age < -ahead:
		return finding{known: true, lacks: "the newest snapshot of etcd on this server is of " + f.Snapshot.At.UTC().Format(time.RFC3339)}, true
	}
	return finding{known: true}, false
}

// work reports whether KubeVirt and Longhorn of this node work with a Kubernetes. CDI does
// not say with which it does.
func work(parts types.KubeNodeConditions, minor int) finding {
	unknown := ""
	for _, part := range compat.Parts(parts) {
		switch verdict, said := compat.Check(part.Component, part.Version, minor); verdict {
		case compat.NotSupported:
			return finding{known: true, lacks: said}
		case compat.Unknown:
			unknown = said
		}
	}
	return finding{known: unknown == "", why: unknown}
}

// prepares is what is to be prepared for a change that waits for what lacks. A binary is
// downloaded as soon as the rules allow the version; a snapshot is to be recent, so that it
// comes last.
func (f facts) prepares(lacking []types.KubeLifecyclePrecondition) preparation {
	is := func(names ...string) func(types.KubeLifecyclePrecondition) bool {
		return func(p types.KubeLifecyclePrecondition) bool { return slices.Contains(names, p.Name) }
	}
	only := func(names ...string) bool {
		return !slices.ContainsFunc(lacking, func(p types.KubeLifecyclePrecondition) bool { return !is(names...)(p) })
	}
	to := f.version.Wanted
	switch {
	case f.evidence.fetches && slices.ContainsFunc(lacking, is("Binary")) && !slices.ContainsFunc(lacking, is("NotHeld", "NotFailed", "OthersNotFailed")) && f.prepared.due(fetch, to, f.uptime):
		return fetch
	case f.evidence.saves && slices.ContainsFunc(lacking, is("Snapshot")) && only("Snapshot", "Volumes") && f.prepared.due(save, to, f.uptime):
		return save
	}
	return noPreparation
}

func names(apis []types.DeprecatedAPI) (list []string) {
	for _, a := range apis {
		list = append(list, a.String())
	}
	return list
}

// why is an error as a part of a sentence.
func why(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it takes too long"
	}
	return strings.ToValidUTF8(phrase.Cut(strings.ReplaceAll(err.Error(), "\n", "; "), 300), "")
}
