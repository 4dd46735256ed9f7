package console

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func (c *Component) look() facts {
	f := facts{now: time.Now(), synced: c.Configs.Synced()} // before All, see pubsub.Source
	f.configs, f.apps, f.rows = c.Configs.All(), c.Apps.All(), c.Status.All()
	c.recall(f)
	f.asked = c.asked
	f.file = c.see(f.now)
	if f.file.port == served || f.file.kind == valid && f.file.config.VMIName != c.rewrittenFor {
		c.rewrittenFor, c.rewrites = "", 0
	}
	f.attempts = c.attempts
	f.older = c.older.look(c.OldFile, f.now) // the console does not depend on it
	_, err := os.Stat(c.KubeInit)
	f.kubeInit = !errors.Is(err, fs.ErrNotExist)
	return f
}

func (c *Component) recall(f facts) {
	asked := map[string]time.Time{}
	for key := range f.configs {
		if f.asks(key) {
			asked[key] = f.now
			if at, ok := c.asked[key]; ok {
				asked[key] = at
			}
		}
	}
	c.asked = asked
}

// see looks at the console file, and at the port and the process that it names.
func (c *Component) see(now time.Time) fileNow {
	s := fileNow{seen: c.file.look(c.File, now)}
	if s.kind != valid {
		return s
	}
	config, ok := parse(s.text)
	if !ok {
		s.kind = broken
		return s
	}
	s.config, s.port = config, portUse(c.Proc, config.VNCPort)
	if config.CallerPID > 0 {
		s.ownerLives = edgeviewLives(c.Proc, config.CallerPID)
	}
	switch {
	case s.port != silent:
		c.file.silentSince = time.Time{}
	case c.file.silentSince.IsZero():
		c.file.silentSince = now
	}
	s.silentSince = c.file.silentSince
	return s
}

// look looks at a path, and notes since when it is as it is.
func (m *memory) look(path string, now time.Time) seen {
	s, err := read(path)
	if err != nil {
		s.kind, s.trouble = barred, err.Error()
	}
	if m.since.IsZero() || m.id != s.id {
		*m = memory{id: s.id, since: now}
	}
	s.since = m.since
	return s
}

type facts struct {
	now      time.Time
	synced   bool // zedagent's table of applications has been complete once
	configs  map[string]types.AppInstanceConfig
	apps     map[string]types.ENClusterAppStatus
	rows     map[string]types.AppConsoleStatus // published, perhaps by a former run
	asked    map[string]time.Time              // when the console of each was first seen to be wanted
	file     fileNow
	older    seen // in the older place
	kubeInit bool // the kube container has a kube-init, so it reads no older place
	attempts
}

type kind int

const (
	nothing kind = iota
	valid        // it names a machine and a port
	broken       // it does not, or is no plain file
	barred       // it cannot be looked at, or is a directory, which is never touched
)

type use int

const (
	unknown use = iota // the kernel's tables cannot be read
	silent
	served // someone listens, or is connected
)

type fileNow struct {
	seen
	config      types.VmiVNCConfig // where it is valid
	ownerLives  bool               // the process of CallerPID is an edgeview, or nobody can tell
	port        use
	silentSince time.Time // the first look at the silence, where port is silent
}

type app struct {
	key  string
	id   uuid.UUID
	vmi  string
	port uint32
	why  string // why the console cannot be open, "" where it can
}

func (a app) config() types.VmiVNCConfig {
	return types.VmiVNCConfig{VMIName: a.vmi, VNCPort: a.port, AppUUID: a.id.String()}
}

// oldText is the file as it was before it was JSON, when its place was another.
func (a app) oldText() string { return fmt.Sprintf("VMINAME:%s\nVNCPORT:%d\n", a.vmi, a.port) }

func (f facts) asks(key string) bool { return f.configs[key].RemoteConsole }

// asking lists the applications that want their console, who asked first first.
func (f facts) asking() []app {
	var list []app
	for key, cfg := range f.configs {
		if f.asks(key) {
			s := f.apps[key]
			list = append(list, app{
				key: key, id: cfg.UUIDandVersion.UUID, vmi: s.VMIName, port: s.VNCPort, why: absence(cfg, s),
			})
		}
	}
	slices.SortFunc(list, func(a, b app) int {
		return cmp.Or(f.asked[a.key].Compare(f.asked[b.key]), cmp.Compare(a.key, b.key))
	})
	return list
}

// choose is whose console should be open: the one that is, if it may, else the
// one that asked first. It is nil for none.
func (f facts) choose(asking []app) *app {
	var first *app
	for i := range asking {
		a := &asking[i]
		switch {
		case a.why != "":
		case f.file.kind == valid && f.file.config.CallerPID <= 0 && strings.EqualFold(f.file.config.AppUUID, a.id.String()):
			return a
		case first == nil:
			first = a
		}
	}
	return first
}

// tell is what to publish: a row for everybody who asks. The row of who does
// not any more stays until the file is gone, since it proves whose that is.
func (f facts) tell(asking []app, chosen *app, v verdict) (rows map[string]types.AppConsoleStatus, gone []string) {
	rows = map[string]types.AppConsoleStatus{}
	for i := range asking {
		a := &asking[i]
		row := types.AppConsoleStatus{AppUUID: a.id, VMIName: a.vmi, VNCPort: a.port}
		row.Open, row.Why = f.state(a, chosen, v)
		row.Since = f.now.UTC().Round(0)
		if old, ok := f.rows[a.key]; ok && old.Open == row.Open && old.Why == row.Why {
			row.Since = old.Since
		}
		rows[a.key] = row
	}
	for _, key := range slices.Sorted(maps.Keys(f.rows)) {
		_, asks := rows[key]
		names := f.mine() && strings.EqualFold(f.rows[key].AppUUID.String(), f.file.config.AppUUID)
		if f.synced && !asks && !names {
			gone = append(gone, key)
		}
	}
	return rows, gone
}
