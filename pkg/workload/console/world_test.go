package console

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// kubeInit plays the kube container: it looks once a second whether the file
// is there, reads it only to start a proxy, and sees nothing while it starts one.
type kubeInit struct {
	*node
	slow  func() time.Duration // until a proxy listens
	proxy types.VmiVNCConfig   // the one that runs, under mu
}

func (k *kubeInit) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		raw, err := os.ReadFile(k.file)
		running := k.running()
		if running.VMIName != "" && !k.lives(running.VMIName) {
			k.set(types.VmiVNCConfig{})
			running = types.VmiVNCConfig{}
		}
		config, ok := parse(string(raw))
		switch {
		case err == nil && ok && running.VMIName == "":
			k.open(ctx, config)
		case err != nil && running.VMIName != "":
			k.set(types.VmiVNCConfig{})
		}
	}
}

func (k *kubeInit) open(ctx context.Context, c types.VmiVNCConfig) {
	for range 5 {
		time.Sleep(k.slow())
		if k.lives(c.VMIName) {
			k.set(c)
			return
		}
		if time.Sleep(2 * time.Second); ctx.Err() != nil {
			return
		}
	}
}

// set makes this the running proxy, none for a zero one.
func (k *kubeInit) set(c types.VmiVNCConfig) {
	k.mu.Lock()
	was := k.proxy
	k.proxy = c
	k.mu.Unlock()
	k.serve(was.VNCPort, false)
	if c.VNCPort != 0 {
		k.serve(c.VNCPort, true)
	}
}

func (k *kubeInit) running() types.VmiVNCConfig {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.proxy
}

func (k *kubeInit) lives(vmi string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.alive[vmi]
}

// world is a node on which everything happens at random, and is watched.
type world struct {
	*node
	kube    *kubeInit
	rand    *rand.Rand
	stale   time.Duration // how long a proxy may show another machine than the file says
	wanted  map[string]bool
	vmi     map[string]types.VmiVNCConfig // the machine of each application that runs here
	pid     int                           // of the living edgeview, 0 for none
	session types.VmiVNCConfig            // what it wrote
	changed time.Time                     // when the truth last did
	down    bool                          // the agent is
	wrong   time.Time                     // since when the proxy shows another machine; zero: it does not
	toggled int
	names   int
	history []string
}

var ports = map[string]uint32{first: 5907, second: 5908}

// pass lets time pass and watches.
func (w *world) pass(d time.Duration) {
	const slice = 100 * time.Millisecond
	for end := time.Now().Add(d); time.Now().Before(end) && !w.Failed(); {
		w.later(min(slice, time.Until(end)))
		if w.pid != 0 && !w.kube.lives(w.session.VMIName) {
			w.endSession(false) // its screen is black
		}
		w.watch()
	}
}

// watch looks for what must never be.
func (w *world) watch() {
	raw, err := os.ReadFile(w.file)
	config, ok := parse(string(raw))
	if w.pid != 0 && (err != nil || config != w.session) {
		w.fail("edgeview's file was touched: %q, %v", raw, err)
	}
	ours := err == nil && config.CallerPID == 0
	if ours && !ok {
		w.fail("half a file: %q", raw)
	}
	if ours && !w.down && time.Since(w.changed) > time.Second && (!w.wanted[config.AppUUID] || w.vmi[config.AppUUID] != config) {
		w.fail("a file for what is not wanted or not here: %q", raw)
	}
	switch proxy := w.kube.running(); {
	case !ours || proxy.VMIName == "" || proxy.VMIName == config.VMIName:
		w.wrong = time.Time{}
	case w.wrong.IsZero():
		w.wrong = time.Now()
	}
	if !w.wrong.IsZero() && !w.down && time.Since(w.wrong) > w.stale {
		w.fail("the proxy shows %s, the file says %q", w.kube.running().VMIName, raw)
	}
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Errorf("after %s: %s\nbefore:\n%s", sinceBegin(), fmt.Sprintf(format, args...), strings.Join(w.history[max(0, len(w.history)-12):], "\n"))
}

// did notes a change of the truth.
func (w *world) did(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf("%s: ", sinceBegin())+fmt.Sprintf(format, args...))
	w.changed = time.Now()
}

// happen lets one thing happen.
func (w *world) happen() {
	id := []string{first, second}[w.rand.IntN(2)]
	switch n := w.rand.IntN(20); {
	case n < 8:
		w.toggle(id, !w.wanted[id])
	case n < 12:
		w.restart(id)
	case n < 13:
		w.leave(id)
	case n < 14:
		w.forget(id)
	case n < 16 && w.pid == 0:
		w.beginSession()
	case n < 18 && w.pid != 0:
		w.endSession(n == 17)
	case n < 19:
		w.restartAgent()
	case w.pid == 0:
		if _, err := os.Stat(w.file); err == nil {
			w.did("somebody removes the file")
			w.somebody("")
		}
	}
}

func (w *world) toggle(id string, on bool) {
	w.did("console of %s: %v", id[:2], on)
	w.toggled++
	w.wanted[id] = on
	w.wants(id, on)
}

// restart replaces the application's machine by another one.
func (w *world) restart(id string) {
	w.leave(id)
	w.pass(time.Duration(w.rand.IntN(4)) * time.Second)
	w.names++
	c := types.VmiVNCConfig{VMIName: fmt.Sprintf("app-%s-%d", id[:5], w.names), VNCPort: ports[id], AppUUID: id}
	w.did("%s runs as %s", id[:2], c.VMIName)
	w.vmi[id] = c
	w.runs(id, c)
}

func (w *world) leave(id string) {
	w.did("%s leaves", id[:2])
	delete(w.vmi, id)
	w.leaves(id, func(s *types.ENClusterAppStatus) {
		s.ScheduledOnThisNode, s.AppKubeStatus = false, types.AppKubeNotInCluster
	})
}

func (w *world) forget(id string) {
	w.leave(id)
	w.did("%s is deleted", id[:2])
	w.wanted[id] = false
	_ = w.configs.Unpublish(id)
	_ = w.apps.Unpublish(id)
}

// beginSession opens a console by edgeview, if nobody else's is open.
func (w *world) beginSession() {
	raw, err := os.ReadFile(w.file)
	held, _ := parse(string(raw))
	c, ok := w.vmi[[]string{first, second}[w.rand.IntN(2)]]
	if !ok || err == nil && w.kube.running() == held {
		return
	}
	w.pid = 4000 + len(w.history)
	c.CallerPID = w.pid
	w.did("edgeview %d opens %s", w.pid, c.VMIName)
	w.session = c
	w.process(w.pid, edgeview)
	w.somebody(textOf(c))
}

// endSession ends edgeview, which tidies up unless it was killed.
func (w *world) endSession(killed bool) {
	w.did("edgeview %d ends, killed: %v", w.pid, killed)
	if !killed {
		w.somebody("")
	}
	w.process(w.pid, "")
	w.pid = 0
}

func (w *world) restartAgent() {
	w.did("the agent stops")
	w.stop()
	w.down = true
	w.pass(time.Duration(w.rand.IntN(3000)) * time.Millisecond)
	if w.rand.IntN(2) == 0 && w.pid == 0 {
		w.toggle(first, !w.wanted[first])
	}
	w.start()
	w.did("the agent starts")
	w.down, w.wrong = false, time.Time{}
}
