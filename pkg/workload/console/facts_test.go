package console

import (
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

const (
	first  = "9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"
	second = "af27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"
)

// What may stand in the console file.
var (
	own            = types.VmiVNCConfig{VMIName: "label-printer-9f27b-4q8zt2", VNCPort: 5907, AppUUID: first}
	older          = types.VmiVNCConfig{VMIName: "label-printer-9f27b-3abcde", VNCPort: 5907, AppUUID: first}
	oldPort        = types.VmiVNCConfig{VMIName: "label-printer-9f27b-4q8zt2", VNCPort: 5904, AppUUID: first}
	seconds        = types.VmiVNCConfig{VMIName: "scale-af27b-17ff00", VNCPort: 5908, AppUUID: second}
	secondsOlder   = types.VmiVNCConfig{VMIName: "scale-af27b-1aaaaa", VNCPort: 5908, AppUUID: second}
	edgeviews      = types.VmiVNCConfig{VMIName: "scale-af27b-17ff00", VNCPort: 5908, AppUUID: second, CallerPID: 4711}
	edgeviewsOfOwn = types.VmiVNCConfig{VMIName: "label-printer-9f27b-4q8zt2", VNCPort: 5907, AppUUID: first, CallerPID: 4711}
	stranger       = types.VmiVNCConfig{VMIName: "gone-bf27b-100000", VNCPort: 5910, AppUUID: "bf27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"}
	appless        = types.VmiVNCConfig{VMIName: "gone-bf27b-100000", VNCPort: 5910}
)

type twist func(*facts)

// given is a node where the console of one application is wanted, whose
// machine runs here, and no file was there for a day, as the twists change it.
func given(twists ...twist) facts {
	now := time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
	f := facts{
		now: now, synced: true,
		configs: map[string]types.AppInstanceConfig{first: configured(first, "Label_Printer", 7)},
		apps:    map[string]types.ENClusterAppStatus{first: running(first, own)},
		rows:    map[string]types.AppConsoleStatus{},
		asked:   map[string]time.Time{first: now.Add(-time.Hour), second: now.Add(-time.Hour)},
		file:    fileNow{seen: seen{since: now.Add(-24 * time.Hour)}},
	}
	for _, t := range twists {
		t(&f)
	}
	return f
}

// two is the same with two applications.
func two(twists ...twist) facts {
	f := given()
	f.configs[second], f.apps[second] = configured(second, "Scale", 8), running(second, seconds)
	for _, t := range twists {
		t(&f)
	}
	return f
}

func configured(id, name string, display uint32) types.AppInstanceConfig {
	c := types.AppInstanceConfig{DisplayName: name, Activate: true, RemoteConsole: true}
	c.UUIDandVersion.UUID = uuid.MustParse(id)
	c.FixedResources = types.VMConfig{VirtualizationMode: types.VirtualizationHVM, VncDisplay: display}
	return c
}

func running(id string, c types.VmiVNCConfig) types.ENClusterAppStatus {
	return types.ENClusterAppStatus{
		AppUUID: uuid.MustParse(id), ScheduledOnThisNode: true, StatusRunning: true,
		AppKubeStatus: types.AppKubeRunning, AppIsVMI: true, VMIName: c.VMIName, VNCPort: c.VNCPort,
	}
}

// config and status change what is said of the first application.
func config(change func(*types.AppInstanceConfig)) twist {
	return func(f *facts) { c := f.configs[first]; change(&c); f.configs[first] = c }
}

func status(change func(*types.ENClusterAppStatus)) twist {
	return func(f *facts) { s := f.apps[first]; change(&s); f.apps[first] = s }
}

func unsynced(f *facts) { f.synced = false }
func off(f *facts)      { config(func(c *types.AppInstanceConfig) { c.RemoteConsole = false })(f) }
func inactive(f *facts) { config(func(c *types.AppInstanceConfig) { c.Activate = false })(f) }
func anonymous(f *facts) {
	config(func(c *types.AppInstanceConfig) { c.DisplayName = "" })(f)
}

func container(f *facts) {
	config(func(c *types.AppInstanceConfig) {
		c.FixedResources.VirtualizationMode = types.VirtualizationNoHyper
	})(f)
}

func deleted(f *facts) {
	delete(f.configs, first)
	delete(f.apps, first)
}

func is(s types.AppKubeStatus) twist {
	return status(func(a *types.ENClusterAppStatus) {
		a.AppKubeStatus, a.ScheduledOnThisNode = s, a.ScheduledOnThisNode && s == types.AppKubeRunning
	})
}
func starts(f *facts)   { is(types.AppKubeNotRunning)(f) }
func away(f *facts)     { status(func(a *types.ENClusterAppStatus) { a.ScheduledOnThisNode = false })(f) }
func nameless(f *facts) { status(func(a *types.ENClusterAppStatus) { a.VMIName = "" })(f) }
func portOf(port uint32) twist {
	return status(func(a *types.ENClusterAppStatus) { a.VNCPort = port })
}

func askedAt(key string, d time.Duration) twist {
	return func(f *facts) { f.asked = maps.Clone(f.asked); f.asked[key] = f.asked[key].Add(d) }
}

func absentFor(d time.Duration) twist { return func(f *facts) { f.file.since = f.now.Add(-d) } }

func fileOf(c types.VmiVNCConfig) twist {
	return func(f *facts) { f.file.kind, f.file.config = valid, c }
}
func nonsense(f *facts) { f.file.kind = broken }
func inTheWay(f *facts) { f.file.kind, f.file.trouble = barred, "a directory is in its place" }
func seenFor(d time.Duration) twist {
	return func(f *facts) { f.file.since = f.now.Add(-d) }
}
func lives(f *facts)      { f.file.ownerLives = true }
func serving(f *facts)    { f.file.port = served }
func unknowable(f *facts) { f.file.port = unknown }
func quietFor(d time.Duration) twist {
	return func(f *facts) { f.file.port, f.file.silentSince = silent, f.now.Add(-d) }
}

func rewrittenFor(n int) twist { return func(f *facts) { f.rewrittenFor, f.rewrites = own.VMIName, n } }

// published is what a former step told before it wrote the file.
func published(f *facts) {
	f.rows[first] = types.AppConsoleStatus{
		AppUUID: uuid.MustParse(first), VMIName: own.VMIName, VNCPort: own.VNCPort, Why: opening, Since: f.now.Add(-time.Hour),
	}
}

func wasOpen(f *facts) {
	published(f)
	row := f.rows[first]
	row.Open, row.Why = true, ""
	f.rows[first] = row
}

func oldPlace(text string, since time.Duration) twist {
	return func(f *facts) {
		f.older = seen{text: text, since: f.now.Add(-since)}
		if text != "" {
			f.older.kind = valid
		}
	}
}
func blockedOld(f *facts)  { f.older = seen{kind: barred} }
func hasKubeInit(f *facts) { f.kubeInit = true }
