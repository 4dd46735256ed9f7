package health

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// Device is where the checks look. Every exported field is required, but for
// what says otherwise.
type Device struct {
	Root       string            // prefixes every path; "" for the device itself
	Kubeconfig string            // path
	Socket     string            // path of the agent's socket
	Seen       overview.Overview // what the files say

	// Nodes asks the agent or the API server for the cluster's nodes, Lock the
	// latter for the drain lock.
	Nodes func(ctx context.Context) (overview.Nodes, error)
	Lock  func(ctx context.Context) (types.DrainLock, error)

	// ReadKubeconfig reads the file at a path as the agent does. In a copy of a
	// device its secrets may be redacted.
	ReadKubeconfig func(path string, copied bool) (Kubeconfig, error)

	within time.Duration // for one answer of the agent or of a status server; 0 but in tests

	nodes once[nodesFacts]
	peers once[[]peerAnswer]
	conf  once[kubeconfig]
	api   once[apiFacts]
}

// nodesWithin leaves time to ask the nodes themselves.
const nodesWithin = patience * 3 / 4

// Checks are all checks, in the order in which one rests on another.
func (d *Device) Checks() []Check {
	d.nodes.look = func(ctx context.Context) nodesFacts {
		ctx, cancel := context.WithTimeout(ctx, nodesWithin)
		defer cancel()
		nodes, err := d.Nodes(ctx)
		return nodesFacts{nodes, err}
	}
	d.peers.look = func(ctx context.Context) []peerAnswer {
		nodes, _ := d.nodes.get(ctx)
		return d.askPeers(ctx, nodes.List)
	}
	d.conf.look = func(context.Context) kubeconfig { return d.readKubeconfig() }
	d.api.look = func(ctx context.Context) apiFacts {
		conf, _ := d.conf.get(ctx)
		return askAPI(ctx, conf)
	}
	return []Check{
		{"agent", "The agent is running and answers on its socket.", d.agent},
		{"watchdog", "The agent's heartbeat is recent, and the watchdog checks it.", d.watchdog},
		{"hypervisor", "The device runs Kubernetes.", d.hypervisor},
		{"configuration", "The cluster's configuration is valid, and this device belongs to it.", d.files(judgeConfiguration)},
		{"address", "The cluster address is on its interface.", d.address},
		{"status-server", "Port 12346 is served by zedkube, by TLS and by plain HTTP, and reports what joining nodes wait for.", d.statusServer},
		{"kubeconfig", "The kubeconfig exists and can be used.", d.kubeconfig},
		{"api", "The API server answers.", d.apiAnswers},
		{"certificate-client", "The kubeconfig's certificate is valid for two more weeks.", d.certificate(clientCertificate)},
		{"certificate-ca", "The cluster's CA is valid for two more weeks.", d.certificate(caCertificate)},
		{"certificate-server", "The API server's certificate is valid for two more weeks.", d.certificate(serverCertificate)},
		{"clock", "The clocks of this device, the API server and the other nodes agree.", d.clock},
		{"peers", "The status servers of the other nodes have this cluster's token.", d.peersAnswer},
		{"node", "The Node of this device exists, is Ready and has its labels.", d.withNodes(judgeNode)},
		{"lease", "One node reports for the cluster.", d.files(judgeLease)},
		{"members", "The controller lists every master of the cluster.", d.members},
		{"cordon", "This node is schedulable.", d.withNodes(judgeCordon)},
		{"drain-lock", "No drain is blocked by an abandoned drain lock.", d.drainLock},
		{"etcd", "etcd has quorum.", d.etcd},
		{"versions", "All nodes run the same zedkube and the same Kubernetes.", d.versions},
		{"files", "There are no override files or leftovers.", d.staleFiles},
		{"disk", "The disks have free space and free inodes.", d.disk},
		{"limits", "The kernel's limits on open files and inotify watches are not nearly reached.", d.limits},
		{"conditions", "The conditions that the agent watches show no problem.", d.files(judgeConditions)},
	}
}

func (d *Device) in(path string) string { return filepath.Join("/", d.Root, path) }

// live reports that this machine is the device: what the kernel says counts.
func (d *Device) live() bool { return !d.Seen.Copied }

// clustered reports that the device is to be in a cluster, or is.
func (d *Device) clustered() bool {
	return d.Seen.Cluster.Wanted || d.Seen.Cluster.Known() || d.Seen.Cluster.Membership.State == types.MembershipMember
}

func (d *Device) agent(ctx context.Context) types.Finding {
	f := agentFacts{Agent: d.Seen.Agent, copied: d.Seen.Copied, socket: d.Socket}
	if f.Runs && !f.copied {
		f.answer, f.took, f.err = askSocket(ctx, d.Socket)
	}
	return judgeAgent(f)
}

func (d *Device) watchdog(context.Context) types.Finding {
	_, err := os.Lstat(d.in(types.PathWatchdog))
	return judgeWatchdog(seen{d.Seen}, err == nil)
}

func (d *Device) hypervisor(context.Context) types.Finding {
	kind, err := readSmall(d.in(types.PathHypervisor))
	return judgeHypervisor(kind, err)
}

func (d *Device) address(context.Context) types.Finding {
	f := addressFacts{Cluster: d.Seen.Cluster, clustered: d.clustered()}
	if d.live() && f.Interface != "" {
		f.found, f.err = addressesOf(f.Interface)
		f.looked = true
	}
	return judgeAddress(f)
}

func (d *Device) statusServer(ctx context.Context) types.Finding {
	f := statusFacts{Cluster: d.Seen.Cluster, clustered: d.clustered(), runs: d.Seen.Agent.Runs}
	if d.live() && f.Address != "" {
		if f.away = !isHere(f.Address); !f.away {
			f.statusAnswers = d.askStatus(ctx, f.Address)
		}
	}
	return judgeStatusServer(f)
}

func (d *Device) kubeconfig(ctx context.Context) types.Finding {
	conf, _ := d.conf.get(ctx)
	return judgeKubeconfig(conf, d.live())
}

func (d *Device) apiAnswers(ctx context.Context) types.Finding {
	if !d.live() {
		return judgeAPIOfCopy(d.Seen.API)
	}
	answer, _ := d.api.get(ctx)
	return judgeAPI(answer)
}

func (d *Device) certificate(which string) func(context.Context) types.Finding {
	return func(ctx context.Context) types.Finding {
		conf, _ := d.conf.get(ctx)
		f := certificateFacts{which: which, now: d.Seen.ReadAt, why: conf.why}
		switch which {
		case clientCertificate:
			f.cert, f.token = conf.Client, conf.Token != ""
		case caCertificate:
			f.cert = conf.authority()
		default:
			if d.live() {
				answer, _ := d.api.get(ctx)
				f.cert, f.why = answer.server, answer.why
			} else {
				f.why = "this is a copy of a device"
			}
		}
		return judgeCertificate(f)
	}
}

func (d *Device) clock(ctx context.Context) types.Finding {
	if !d.live() {
		return unknown("This is a copy of a device: its clock is not available.")
	}
	var clocks []clock
	answer, _ := d.api.get(ctx)
	if answer.dated {
		clocks = append(clocks, clock{of: "the API server at " + answer.address, ahead: answer.ahead, here: answer.here})
	}
	peers, _ := d.peers.get(ctx)
	return judgeClock(append(clocks, clocksOf(peers)...), time.Now())
}

func (d *Device) peersAnswer(ctx context.Context) types.Finding {
	if !d.live() {
		return unknown("This is a copy of a device: its network is not available.")
	}
	peers, _ := d.peers.get(ctx)
	return judgePeers(peers)
}

// files checks by what the files say.
func (d *Device) files(judge func(seen) types.Finding) func(context.Context) types.Finding {
	return func(context.Context) types.Finding { return judge(seen{d.Seen}) }
}

// withNodes checks by them and the cluster's nodes.
func (d *Device) withNodes(judge func(seen, nodesFacts) types.Finding) func(context.Context) types.Finding {
	return func(ctx context.Context) types.Finding { return judge(seen{d.Seen}, d.nodesSeen(ctx)) }
}

// nodesSeen are the nodes, or why they are not known in time.
func (d *Device) nodesSeen(ctx context.Context) nodesFacts {
	nodes, done := d.nodes.get(ctx)
	if !done {
		nodes.err = ctx.Err()
	}
	return nodes
}

func (d *Device) members(context.Context) types.Finding {
	compared, _ := d.Seen.Conditions.Of(types.StateMembers)
	if !d.Seen.Agent.Runs {
		compared.Status = types.ConditionUnknown
	}
	return judgeMembers(seen{d.Seen}, compared.Status)
}

func (d *Device) drainLock(ctx context.Context) types.Finding {
	nodes := d.nodesSeen(ctx)
	var lock types.DrainLock
	var err error
	if d.live() {
		ctx, cancel := context.WithTimeout(ctx, nodesWithin)
		defer cancel()
		lock, err = d.Lock(ctx)
	} else if p := d.Seen.Drain.Progress; p != nil {
		lock.Holder, lock.Since = p.Lock.Holder, p.Lock.Since
	}
	return judgeDrainLock(seen{d.Seen}, nodes, lock, err)
}

func (d *Device) etcd(ctx context.Context) types.Finding { return judgeEtcd(d.nodesSeen(ctx)) }

func (d *Device) versions(ctx context.Context) types.Finding { return judgeVersions(d.nodesSeen(ctx)) }

func (d *Device) staleFiles(context.Context) types.Finding { return judgeFiles(d.lookForFiles()) }

func (d *Device) disk(context.Context) types.Finding {
	if !d.live() {
		return unknown("This is a copy of a device: its disks are not available.")
	}
	return judgeDisks(overview.DisksOf(d.Root))
}

func (d *Device) limits(ctx context.Context) types.Finding {
	if !d.live() {
		return unknown("This is a copy of a device: its kernel is not available.")
	}
	return judgeLimits(lookAtLimits(ctx, "/proc", d.Seen.Agent.PID))
}

// Check is one precondition of a healthy node.
type Check struct {
	Name string
	What string // the precondition, a sentence
	Look func(ctx context.Context) types.Finding
}

const patience = 2 * time.Second

// Examine carries out the checks at the same time and returns what they found,
// in their order. One that does not end in time is left behind, and its finding
// is unknown: a disk that hangs cannot be interrupted.
func Examine(ctx context.Context, checks []Check) []types.Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := make([]chan types.Finding, len(checks))
	for i, c := range checks {
		found[i] = make(chan types.Finding, 1)
		go func() { found[i] <- c.Look(ctx) }()
	}
	late := make(chan struct{})
	end := time.AfterFunc(patience+patience/4, func() { close(late) }) // a look notices the end of ctx and says what it knows
	defer end.Stop()
	findings := make([]types.Finding, len(checks))
	for i, c := range checks {
		select {
		case findings[i] = <-found[i]:
		case <-late:
			findings[i] = unknown("The check did not finish within %s.", patience)
			select { // it may have ended since, while others were waited for
			case findings[i] = <-found[i]:
			default:
			}
		}
		findings[i].Rule = c.Name
	}
	return findings
}

// Named are the checks of those names, all for none; unknown are names of none.
func Named(checks []Check, names []string) (chosen []Check, unknown []string) {
	if len(names) == 0 {
		return checks, nil
	}
	for _, name := range names {
		at := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
		if at < 0 {
			unknown = append(unknown, name)
			continue
		}
		chosen = append(chosen, checks[at])
	}
	return chosen, unknown
}

// once looks something up once, for all checks that need it.
type once[T any] struct {
	look  func(ctx context.Context) T
	first sync.Once
	done  chan struct{}
	v     T
}

// get waits for what the first one who asked has begun: a little longer than for ctx,
// at whose end the look says what it knows.
func (o *once[T]) get(ctx context.Context) (T, bool) {
	o.first.Do(func() {
		o.done = make(chan struct{})
		go func() {
			o.v = o.look(ctx)
			close(o.done)
		}()
	})
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(patience/8, func() { close(late) }) })()
	select {
	case <-o.done:
		return o.v, true
	case <-late:
		var none T
		return none, false
	}
}
