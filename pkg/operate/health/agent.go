package health

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// rebootAfter is how old a heartbeat is when the watchdog reboots the device
// (docs/wire.md, "Process").
const rebootAfter = 5 * time.Minute

func findAgentDead(o seen, tell func(types.Finding)) {
	if !o.Agent.Runs && !o.Agent.Hung {
		tell(bad("Its log says why. While it is down nothing is drained, repaired or reported; running applications keep running.",
			"The agent is not running: %s. Everything below is what it last published.", o.Agent.Why).Of("", o.Agent.Seen))
	}
}

func findAgentHung(o seen, tell func(types.Finding)) {
	if o.Agent.Hung {
		tell(bad("Save its goroutines (zedkube support-bundle); the watchdog reboots the device after five minutes.",
			"The agent hangs: its process exists, and %s.", o.Agent.Why).Of("", o.Agent.Seen))
	}
}

type agentFacts struct {
	overview.Agent
	copied bool
	socket string
	answer int
	took   time.Duration
	err    error
}

func judgeAgent(f agentFacts) types.Finding {
	switch {
	case f.copied && f.Runs:
		return unknown("This is a copy of a device; the agent had a heartbeat shortly before it was made.")
	case f.copied:
		return warn("look at the log of that device for source zedkube", "When this copy was made the agent was not running: %s.", f.Why)
	}
	o := seen{overview.Overview{Agent: f.Agent}}
	if found, is := o.first(findAgentDead, findAgentHung); is {
		return found
	}
	switch {
	case f.err != nil:
		return bad("has another process replaced the socket? The agent recreates it within 30 seconds", "Process %d is running but does not answer on %s: %v.", f.PID, f.socket, f.err)
	case f.answer != http.StatusOK:
		return warn("the agent has another version than this command, or is busy", "Process %d answers on %s with %d.", f.PID, f.socket, f.answer)
	}
	return ok("Process %d is running and answered within %s.", f.PID, f.took.Round(time.Millisecond))
}

// judgeWatchdog judges the heartbeat. registered is whether the watchdog checks it.
func judgeWatchdog(o seen, registered bool) types.Finding {
	old := o.ReadAt.Sub(o.Agent.Seen)
	switch {
	case o.Agent.Seen.IsZero() && !o.Agent.Runs:
		return unknown("There is no heartbeat of an agent.")
	case o.Agent.Seen.IsZero():
		return bad("a component has hung since its start: check the log for source zedkube", "The agent is running but has not touched its watchdog file yet.")
	case old > rebootAfter && registered && !o.Copied:
		return bad("look at the log for source zedkube before the device reboots", "The last heartbeat is %s old; the watchdog reboots the device at %s.", span(old), span(rebootAfter))
	case old > rebootAfter:
		return bad("look at the log for source zedkube", "The last heartbeat is %s old.", span(old))
	case old > overview.SilentAgent:
		return warn("a component hangs; its goroutines are on the socket at /debug/pprof/goroutine?debug=2", "The last heartbeat is %s old; there is one every ten seconds.", span(old))
	case old < -overview.SilentAgent:
		return warn("set the clock", "The last heartbeat is %s in the future: the clock was set back.", span(old))
	case !registered:
		return warn("create /run/watchdog/file/zedkube.touch (EVE's start script does); without it a hung agent is not detected", "The heartbeat is %s old, and the watchdog does not check it.", span(old))
	}
	return ok("The heartbeat is %s old.", span(old))
}

func judgeHypervisor(kind string, err error) types.Finding {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unknown("There is no /run/eve-hv-type; the agent assumes that the device runs Kubernetes.")
	case err != nil:
		return warn("fix the file", "The hypervisor's type cannot be read: %v.", err)
	case types.HypervisorRunsKubernetes(kind):
		return ok("The hypervisor is of type %s.", kind)
	}
	return bad("a cluster needs an EVE image of type k", "The hypervisor is of type %q: the agent only feeds the watchdog.", kind)
}

func findNotAMember(o seen, tell func(types.Finding)) {
	state := o.Cluster.Membership.State
	if o.Cluster.Wanted && o.Cluster.Membership.Known() && (state == types.MembershipNever || state == types.MembershipLeft) {
		tell(warn("The agent normally does so within seconds: check the agent and its log.",
			"The controller configures this device as a member of a cluster, but the agent has not applied this yet.").Of("", o.Cluster.Membership.At))
	}
}

func findMembershipDoubtful(o seen, tell func(types.Finding)) {
	if m := o.Cluster.Membership; m.State == types.MembershipDoubtful {
		tell(bad("Look at the configuration at the controller. Do not run \"zedkube leave\" unless the device is to leave.",
			"It is uncertain whether this device still belongs to its cluster; everything continues as before%s", because(m.Reason)).Of("", m.InvalidSince))
	}
}

func findLeaving(o seen, tell func(types.Finding)) {
	if m := o.Cluster.Membership; m.State == types.MembershipLeaving {
		tell(warn("Wait: zedkube drain status. A valid configuration that arrives now still cancels it; zedkube leave --cancel withdraws an operator's request.",
			"This node is leaving its cluster%s", because(m.Reason)).Of("", m.InvalidSince))
	}
}

func findClusterConfigBad(o seen, tell func(types.Finding)) {
	c := o.Cluster
	if c.Error != "" {
		tell(bad("Fix what it names, at the controller.", "The cluster's configuration cannot be used%s", because(c.Error)).Of("", c.ErrorSince))
	}
	if c.LBError != "" {
		tell(warn("Change the prefix or the interface at the controller.", "The load balancer's addresses cannot be used%s", because(c.LBError)).Of("", c.LBErrorSince))
	}
}

func judgeConfiguration(o seen) types.Finding {
	c := o.Cluster
	m := c.Membership
	if f, is := o.first(findMembershipDoubtful, findLeaving, findNotAMember); is {
		return f
	}
	switch {
	case c.Wanted && (m.State == types.MembershipMember || m.State == ""):
		return ok("The configuration is valid; the device belongs to cluster %s.", cmp.Or(c.Name, c.ID))
	case c.Wanted:
		return warn("the agent has not applied the configuration yet; is it running?", "The configuration is valid, and the device's membership is %q.", m.State)
	case m.State == types.MembershipMember:
		return bad("is zedagent running? Its topic is zedagent/EdgeNodeClusterConfig", "The device belongs to a cluster, but there is no valid configuration.")
	case m.State == types.MembershipNever || m.State == types.MembershipLeft:
		return ok("The device does not belong to a cluster, and the controller configures none.")
	}
	return unknown("There is neither a valid configuration nor a record of a membership.")
}

// noPort is that no port of the device is the cluster's.
func noPort() types.Finding {
	return bad("Look at the ports in the device's configuration and at nim's DeviceNetworkStatus: zedkube topics nim/DeviceNetworkStatus",
		"No port of this device has the label that the cluster's configuration names.")
}

func findAddressNotReady(o seen, tell func(types.Finding)) {
	c := o.Cluster
	if !c.Known() || c.ID == "" || c.AddressReady || !o.older(c.At, startPatience) {
		return
	}
	f := noPort()
	if c.Interface != "" {
		f.Evidence = "The cluster address " + cmp.Or(c.Address, "(none)") + " is not on interface " + c.Interface + "."
	}
	tell(f.Of("", c.At))
}

type addressFacts struct {
	overview.Cluster
	clustered bool
	looked    bool
	found     []netip.Addr // on the interface
	err       error
}

func judgeAddress(f addressFacts) types.Finding {
	prefix, perr := netip.ParsePrefix(f.Address)
	switch {
	case !f.Known() && f.Why != "":
		return unknown("The cluster's status cannot be read: %s.", f.Why)
	case !f.clustered:
		return unknown("The device does not belong to a cluster.")
	case !f.Known():
		return unknown("The agent has published no cluster status.")
	case perr != nil:
		return bad("set the cluster's address at the controller", "The cluster address %q is not an address with a prefix length.", f.Address)
	case f.Interface == "":
		return noPort()
	case f.looked && f.err != nil:
		return bad("does the port exist? ip address", "Interface %s cannot be inspected: %v.", f.Interface, f.err)
	case f.looked && !has(f.found, prefix.Addr().Unmap()):
		return bad("nim assigns it once zedkube has published it: zedkube topics nim/DeviceNetworkStatus", "Interface %s does not have address %s (it has %s).", f.Interface, prefix.Addr(), addresses(f.found))
	case !f.AddressReady:
		return warn("zedkube topics nim/DeviceNetworkStatus: ClusterIPAddr of the port", "%s is on %s, but nim has not reported it.", prefix.Addr(), f.Interface)
	case !f.looked:
		return ok("nim reports that %s is on %s.", prefix.Addr(), f.Interface)
	}
	return ok("%s is on %s.", prefix.Addr(), f.Interface)
}

// has reports that an interface with the addresses found answers for one. The loopback interface
// answers for all of its kind.
func has(found []netip.Addr, one netip.Addr) bool {
	return slices.Contains(found, one) || one.IsLoopback() && slices.ContainsFunc(found, netip.Addr.IsLoopback)
}

func addresses(list []netip.Addr) string {
	if len(list) == 0 {
		return "none"
	}
	texts := make([]string, len(list))
	for i, a := range list {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}

type statusFacts struct {
	overview.Cluster
	statusAnswers
	clustered bool
	runs      bool
	away      bool // the address is on no interface of this device
}

func judgeStatusServer(f statusFacts) types.Finding {
	const other = "curl http://ADDRESS:12346/status; ss -ltnp sport = 12346"
	switch {
	case !f.clustered:
		return unknown("The device does not belong to a cluster: nothing is served.")
	case f.away:
		return unknown("The cluster address is not on this device: another host answers there.")
	case !f.looked:
		return unknown("The address to query is not known, or this is a copy of a device.")
	case f.health.err != nil && !f.runs:
		return unknown("The agent is not running, and nothing answers: %v.", f.health.err)
	case f.health.err != nil && !f.AddressReady:
		return warn("it listens once the cluster address is there", "Nothing answers: %v.", f.health.err)
	case f.health.err != nil:
		return bad("is another program's socket in the way? ss -ltnp sport = 12346", "Nothing answers: %v.", f.health.err)
	case f.health.status != http.StatusOK || f.health.body != "ok\n":
		return bad("stop the other program: "+other, "Port 12346 is served, but not by this zedkube: /healthz answers %d.", f.health.status)
	case f.plain.err != nil || f.plain.status != http.StatusOK:
		return bad(other, "/status answers %d, %v.", f.plain.status, f.plain.err)
	case f.plain.body == "cluster:"+f.ID && f.secure.err != nil:
		return warn("does the running agent have the token? zedkube topics EdgeNodeClusterStatus", "It names cluster %s by plain HTTP. Nodes whose EVE asks by TLS cannot join through this one: %v.", f.ID, f.secure.err)
	case f.plain.body == "cluster:"+f.ID && (f.secure.status != http.StatusOK || f.secure.body != f.plain.body):
		return bad("zedkube support-bundle", "/status answers %d, %q by TLS, and names cluster %s by plain HTTP.", f.secure.status, phrase.Cut(f.secure.body, 100), f.ID)
	case f.plain.body == "cluster:"+f.ID:
		return ok("It names cluster %s by TLS and by plain HTTP: other nodes may join through this one.", f.ID)
	case f.plain.body != "":
		return bad(other, "/status answers %q, which is not this cluster.", phrase.Cut(f.plain.body, 100))
	case f.Role == "worker":
		return ok("It is served; nodes cannot join through a worker.")
	}
	return warn("zedkube status; what it waits for is shown by curl -H 'Accept: application/json'", "It is served, and no node can join through this one yet: %s", reasonOf(f.because))
}
