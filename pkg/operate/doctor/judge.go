package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

const (
	// silentAgent is how old a sign of life may be, which comes every ten
	// seconds, and rebootAfter when the watchdog reboots the device (docs/wire.md,
	// "Process").
	silentAgent = time.Minute
	rebootAfter = 5 * time.Minute
)

type agentFacts struct {
	overview.Agent
	copied bool
	socket string
	answer int
	took   time.Duration
	err    error
	now    time.Time
}

func judgeAgent(f agentFacts) Finding {
	const look = "look at the device's log for source zedkube, and start it: the watchdog does so by a reboot"
	switch {
	case f.copied && f.Runs:
		return unknown("This is a copy of a device; the agent gave a sign of life shortly before it was made.")
	case f.copied:
		return warn("look at the log of that device for source zedkube", "When this copy was made the agent did not run: %s.", f.Why)
	case f.Hung:
		return fail("goroutines: curl --unix-socket "+f.socket+" http://zedkube/debug/pprof/goroutine?debug=2", "Process %d is there and gives no sign of life: %s.", f.PID, f.Why)
	case !f.Runs:
		return fail(look, "The agent does not run: %s.", f.Why)
	case f.err != nil:
		return fail("has somebody else taken the socket away? The agent makes it anew within 30 seconds", "Process %d runs, and does not answer on %s: %v.", f.PID, f.socket, f.err)
	case f.answer != http.StatusOK:
		return warn("the agent is of another version than this command, or busy", "Process %d answers on %s with %d.", f.PID, f.socket, f.answer)
	}
	return ok("Process %d runs and answered within %s.", f.PID, f.took.Round(time.Millisecond))
}

type watchdogFacts struct {
	overview.Agent
	copied     bool
	registered bool // the watchdog was told to look at the file
	now        time.Time
}

func judgeWatchdog(f watchdogFacts) Finding {
	old := f.now.Sub(f.Seen)
	switch {
	case f.Seen.IsZero() && !f.Runs:
		return unknown("There is no sign of life of an agent.")
	case f.Seen.IsZero():
		return fail("a component hangs from its start: look at the log for source zedkube", "The agent runs and has not touched its file yet.")
	case old > rebootAfter && f.registered && !f.copied:
		return fail("look at the log for source zedkube before the device reboots", "The last sign of life is %s old; the watchdog reboots the device at %s.", span(old), span(rebootAfter))
	case old > rebootAfter:
		return fail("look at the log for source zedkube", "The last sign of life is %s old.", span(old))
	case old > silentAgent:
		return warn("a component hangs; its goroutines are on the socket at /debug/pprof/goroutine?debug=2", "The last sign of life is %s old; it comes every ten seconds.", span(old))
	case old < -silentAgent:
		return warn("set the clock", "The last sign of life lies %s ahead: the clock was set back.", span(old))
	case !f.registered:
		return warn("EVE's start script makes /run/watchdog/file/zedkube.touch: nobody reboots this device if the agent hangs", "The sign of life is %s old, and the watchdog does not look at it.", span(old))
	}
	return ok("The sign of life is %s old.", span(old))
}

func judgeHypervisor(kind string, err error) Finding {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unknown("There is no /run/eve-hv-type; the agent takes the device for one with Kubernetes.")
	case err != nil:
		return warn("mend the file", "The hypervisor's type cannot be read: %v.", err)
	case types.HypervisorRunsKubernetes(kind):
		return ok("The hypervisor is of type %s.", kind)
	}
	return fail("a cluster needs an EVE image of type k", "The hypervisor is of type %q: the agent only feeds the watchdog.", kind)
}

func judgeConfiguration(c overview.Cluster) Finding {
	m := c.Membership
	switch {
	case m.State == types.MembershipLeaving:
		return warn("zedkube drain status shows how far it is; zedkube leave --cancel takes an operator's wish back", "This device is leaving its cluster: %s.", strings.TrimSuffix(m.Reason, "."))
	case m.State == types.MembershipDoubtful:
		return fail("look at the cluster's configuration at the controller: while it is invalid the device goes on as before", "The configuration is not valid any more: %s.", strings.TrimSuffix(m.Reason, "."))
	case c.Wanted && (m.State == types.MembershipMember || m.State == ""):
		return ok("The configuration is valid; the device belongs to cluster %s.", either(c.Name, c.ID))
	case c.Wanted:
		return warn("the agent has not taken the configuration up yet; does it run?", "The configuration is valid, and the device's membership is %q.", m.State)
	case m.State == types.MembershipMember:
		return fail("does zedagent run? Its topic is zedagent/EdgeNodeClusterConfig", "The device belongs to a cluster, and no valid configuration is there.")
	case m.State == types.MembershipNever || m.State == types.MembershipLeft:
		return ok("The device is in no cluster, and the controller names none.")
	}
	return unknown("There is neither a valid configuration nor a record of a membership.")
}

func either(name, other string) string {
	if name == "" {
		return other
	}
	return name
}

type addressFacts struct {
	overview.Cluster
	clustered bool
	looked    bool
	found     []netip.Addr // on the interface
	err       error
}

func judgeAddress(f addressFacts) Finding {
	prefix, perr := netip.ParsePrefix(f.Address)
	switch {
	case !f.Known() && f.Why != "":
		return unknown("The cluster's status cannot be read: %s.", f.Why)
	case !f.clustered:
		return unknown("The device is in no cluster.")
	case !f.Known():
		return unknown("The agent has published no cluster status.")
	case perr != nil:
		return fail("set the cluster's address at the controller", "The cluster address %q is no address with a mask.", f.Address)
	case f.Interface == "":
		return fail("does the device have a port with the label that the configuration names? zedkube topics nim/DeviceNetworkStatus", "No port of the device is the cluster's interface.")
	case f.looked && f.err != nil:
		return fail("is the port there? ip address", "Interface %s cannot be looked at: %v.", f.Interface, f.err)
	case f.looked && !slices.Contains(f.found, prefix.Addr().Unmap()):
		return fail("nim gives it once zedkube has published it: zedkube topics nim/DeviceNetworkStatus", "Interface %s has not the address %s; it has %s.", f.Interface, prefix.Addr(), addresses(f.found))
	case !f.AddressReady:
		return warn("zedkube topics nim/DeviceNetworkStatus: ClusterIPAddr of the port", "%s is on %s, and nim has not said so.", prefix.Addr(), f.Interface)
	case !f.looked:
		return ok("nim says that %s is on %s.", prefix.Addr(), f.Interface)
	}
	return ok("%s is on %s.", prefix.Addr(), f.Interface)
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

func judgeStatusServer(f statusFacts) Finding {
	const other = "curl http://ADDRESS:12346/status; ss -ltnp sport = 12346"
	switch {
	case !f.clustered:
		return unknown("The device is in no cluster: nothing is served.")
	case f.away:
		return unknown("The cluster address is not on this device: whoever answers there is another.")
	case !f.looked:
		return unknown("Where to ask is not known, or this is a copy of a device.")
	case f.health.err != nil && !f.runs:
		return unknown("The agent does not run, and nothing answers: %v.", f.health.err)
	case f.health.err != nil && !f.AddressReady:
		return warn("it listens once the cluster address is there", "Nothing answers: %v.", f.health.err)
	case f.health.err != nil:
		return fail("is another program's socket in the way? ss -ltnp sport = 12346", "Nothing answers: %v.", f.health.err)
	case f.health.status != http.StatusOK || f.health.body != "ok\n":
		return fail("end the other program: "+other, "Port 12346 is served, and not by this zedkube: /healthz answers %d.", f.health.status)
	case f.plain.err != nil || f.plain.status != http.StatusOK:
		return fail(other, "/status answers %d, %v.", f.plain.status, f.plain.err)
	case f.plain.body == "cluster:"+f.ID:
		return ok("It names cluster %s: other nodes may join by this one.", f.ID)
	case f.plain.body != "":
		return fail(other, "/status answers %q, which is not this cluster.", short(f.plain.body))
	case f.Role == "worker":
		return ok("It is served; nobody joins by a worker.")
	}
	return warn("zedkube status; what it waits for is told by curl -H 'Accept: application/json'", "It is served, and no node can join by this one yet: %s", reasonOf(f.because))
}

func short(text string) string {
	const longest = 100
	if len(text) > longest {
		return strings.ToValidUTF8(text[:longest], "") + "..."
	}
	return text
}

// span is a duration for people.
func span(d time.Duration) string {
	d = d.Abs()
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
