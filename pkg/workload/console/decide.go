package console

import (
	"cmp"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// gap is how long the file is absent before it is written: the kube container
	// looks once a second whether it is there, and never for what it says.
	gap = 2 * time.Second
	// oldGap is the same for the older place: what reads there looks every 15 to
	// 30 s.
	oldGap = 40 * time.Second
	// poll is how often the file is looked at while a console is wanted here.
	poll = time.Second
	// soon is when the outcome of an action is checked.
	soon = 100 * time.Millisecond
	// halfWritten is how long a file without sense may be one that is being written.
	halfWritten = time.Second
	// idleBetween is how long a port may be silent between two proxies: one ends with
	// its client, and the next is started within seconds.
	idleBetween = 10 * time.Second
	// starting is how long edgeview's port may be silent: edgeview gives it 30 s,
	// the kube container 5 tries of 7 s.
	starting = 40 * time.Second
	// rewriteAfter is when the file is taken away and rewritten because nobody
	// opens the port; each time it takes twice as long, up to maxRewrites times.
	rewriteAfter = 15 * time.Second
	maxRewrites  = 5
)

type step int

const (
	leave step = iota
	write
	remove
)

type action struct {
	publish   map[string]types.AppConsoleStatus
	unpublish []string
	file      step
	config    types.VmiVNCConfig // to write
	because   string             // why it is removed, for the log
	rewrite   bool               // it is right, and removed to be written again
	old       oldStep
	again     time.Duration
}

type oldStep struct {
	do   step
	text string
}

// decide says what the console file should be and what to tell of it, from
// facts alone. Until all applications are known nothing is written or removed.
func decide(f facts) action {
	asking := f.asking()
	chosen := f.choose(asking)
	v := f.judge(chosen)
	if !f.synced {
		v.do, v.rewrite = leave, false
	}
	a := action{file: v.do, because: v.because, rewrite: v.rewrite, again: period}
	if chosen != nil {
		a.config = chosen.config()
	}
	if f.synced && !v.unsure {
		a.old = f.follow(chosen, v)
	}
	a.publish, a.unpublish = f.tell(asking, chosen, v)
	switch {
	case v.do != leave:
		a.again = soon
	case v.wait > 0:
		a.again = min(v.wait, poll)
	case chosen != nil || f.mine():
		a.again = poll
	}
	return a
}

// verdict is what the file means for the console that should be open.
type verdict struct {
	do      step
	because string        // why it is removed
	right   bool          // it stands as it should
	rewrite bool          // though it does, it is removed to be written again
	unsure  bool          // it is ours, but where its machine runs is not known yet
	blocked string        // whose it is, for people, where it cannot be ours now
	wait    time.Duration // until time alone changes the answer, 0 for never
}

// judge applies the rules of docs/wire.md, "Console file". What others left is
// removed only where it is in the way.
func (f facts) judge(chosen *app) verdict {
	s := f.file
	since := f.now.Sub(s.since)
	switch {
	case s.kind == nothing && chosen != nil && since >= gap:
		return verdict{do: write}
	case s.kind == nothing && chosen != nil:
		return verdict{wait: gap - since}
	case s.kind == nothing:
		return verdict{}
	case s.kind == valid && s.config.CallerPID <= 0 && f.mine():
		return f.judgeOwn(chosen)
	case s.kind == barred:
		return verdict{blocked: unusable + s.trouble}
	case s.kind == valid && s.config.CallerPID > 0 && s.ownerLives && f.answeredWithin(starting):
		return verdict{blocked: "edgeview has a console open; there is one per node"}
	case s.kind == valid && s.config.CallerPID <= 0 && f.answeredWithin(idleBetween):
		return verdict{blocked: "someone else has written the console file, and its port is in use"}
	case chosen == nil:
		return verdict{}
	case s.kind == broken && since < halfWritten:
		return verdict{wait: halfWritten - since}
	case s.kind == broken:
		return verdict{do: remove, because: "it is invalid"}
	case s.config.CallerPID > 0:
		return verdict{do: remove, because: "the edgeview that wrote it has exited"}
	}
	return verdict{do: remove, because: "nothing uses the file that someone else left"}
}

func (f facts) judgeOwn(chosen *app) verdict {
	key, known := f.named()
	switch {
	case chosen != nil && f.file.config == chosen.config():
		v := verdict{right: true}
		if f.file.port == silent && f.quiet() >= rewriteAfter<<min(f.rewrites, maxRewrites) {
			v.do, v.rewrite, v.because = remove, true, "nothing opens its port"
		}
		return v
	case known && f.asks(key) && f.apps[key].AppKubeStatus == types.AppKubeUnknown && f.configs[key].IsVMI(): // nobody has looked yet
		return verdict{unsure: true, blocked: taken(f.configs[key])}
	case known && f.asks(key):
		return verdict{do: remove, because: "its virtual machine is not the one running here"}
	case known:
		return verdict{do: remove, because: "its console is no longer configured"}
	}
	return verdict{do: remove, because: "its application is no longer configured"}
}

func (f facts) quiet() time.Duration { return f.now.Sub(f.file.silentSince) }

// answeredWithin reports that the port is in use, or was not long ago. What cannot be
// known must not cost someone's session.
func (f facts) answeredWithin(patience time.Duration) bool {
	return f.file.port != silent || f.quiet() < patience
}

// mine reports that zedkube wrote the file, this run or a former one: nobody
// else names an application and no process. One that is not configured any
// more is known by what was published of it.
func (f facts) mine() bool {
	if f.file.kind != valid || f.file.config.CallerPID > 0 {
		return false
	}
	if _, ok := f.named(); ok {
		return true
	}
	for _, row := range f.rows {
		if row.VMIName == f.file.config.VMIName && strings.EqualFold(row.AppUUID.String(), f.file.config.AppUUID) {
			return true
		}
	}
	return false
}

func (f facts) named() (key string, ok bool) {
	for key, cfg := range f.configs {
		if strings.EqualFold(cfg.UUIDandVersion.UUID.String(), f.file.config.AppUUID) {
			return key, true
		}
	}
	return "", false
}

// follow makes the older place say what the file says, for a kube container
// that looks there.
func (f facts) follow(chosen *app, v verdict) oldStep {
	text := ""
	if v.right && !v.rewrite && !f.kubeInit {
		text = chosen.oldText()
	}
	switch is := f.older; {
	case (is.kind == valid || is.kind == broken) && is.text != text:
		return oldStep{do: remove}
	case is.kind == nothing && text != "" && f.now.Sub(is.since) >= oldGap:
		return oldStep{do: write, text: text}
	}
	return oldStep{}
}

// highestPort is what TCP has.
const highestPort = 1<<16 - 1

const (
	opening  = "it is being opened" // its file is about to be written
	unopened = "the kube container has not opened its port"
	unusable = "the console file cannot be used: " // and why
)

// absence says why an application's console cannot be open here whatever the
// file says; "" where it can.
func absence(cfg types.AppInstanceConfig, s types.ENClusterAppStatus) string {
	switch {
	case !cfg.IsVMI():
		return "it is not a virtual machine"
	case s.AppKubeStatus == types.AppKubeUnknown:
		return "where its virtual machine runs is not known yet"
	case s.AppKubeStatus == types.AppKubeAPIUnreachable:
		return "the state of the cluster is unknown, and so is where its virtual machine runs"
	case !cfg.Activate && s.AppKubeStatus != types.AppKubeRunning:
		return "it is switched off"
	case s.AppKubeStatus != types.AppKubeRunning:
		return "its virtual machine has not started"
	case !s.ScheduledOnThisNode:
		return "its virtual machine does not run on this node"
	case s.VMIName == "":
		return "the name of its virtual machine is not known yet"
	case s.VNCPort == 0 || s.VNCPort > highestPort:
		return "its configuration has no port for a console"
	}
	return ""
}

// state says whether the console of a is open, and why it is not.
func (f facts) state(a, chosen *app, v verdict) (open bool, why string) {
	switch {
	case a.why != "":
		return false, a.why
	case v.blocked != "":
		return false, v.blocked
	case a != chosen:
		return false, taken(f.configs[chosen.key])
	case !v.right && f.failed != "":
		return false, unusable + f.failed
	case !v.right && f.rewrittenFor != a.vmi:
		return false, opening
	case !v.right:
		return false, unopened
	case f.file.port != silent, f.rows[a.key].Open && f.quiet() < idleBetween:
		return true, ""
	}
	return false, unopened
}

// taken is for those who have to wait for the console of another application.
func taken(by types.AppInstanceConfig) string {
	return "the console of " + cmp.Or(by.DisplayName, by.UUIDandVersion.UUID.String()) + " is open; there is one per node"
}
