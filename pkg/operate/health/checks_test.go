package health

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

const (
	OK      = types.SeverityOK
	Unknown = types.SeverityUnknown
	Warn    = types.SeverityWarn
	Fail    = types.SeverityBad
)

var (
	now    = time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	errOdd = errors.New("connection refused")
)

// row is a rule: what it finds, and words of its evidence.
type row struct {
	name    string
	got     types.Finding
	verdict types.Severity
	says    string
}

// judge checks rows, and that whatever is bad comes with a remedy.
func judge(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		if r.got.Severity != r.verdict || !strings.Contains(r.got.Evidence, r.says) {
			t.Errorf("%s: %s, %q; want %s, %q", r.name, r.got.Severity, r.got.Evidence, r.verdict, r.says)
		}
		if bad := r.got.Severity == Warn || r.got.Severity == Fail; bad != (r.got.Remedy != "") {
			t.Errorf("%s: %s with the remedy %q", r.name, r.got.Severity, r.got.Remedy)
		}
		if strings.Contains(r.got.Evidence, "%!") || r.got.Evidence == "" {
			t.Errorf("%s: %q", r.name, r.got.Evidence)
		}
	}
}

func told() overview.Source { return overview.Source{At: now} }

func TestAgent(t *testing.T) {
	runs := overview.Agent{Runs: true, PID: 7, Seen: now}
	judge(t, []row{
		{"it answers", judgeAgent(agentFacts{Agent: runs, answer: 200, took: time.Millisecond}), OK, "Process 7 is running and answered within 1ms"},
		{"it does not answer", judgeAgent(agentFacts{Agent: runs, socket: "/s", err: errOdd}), Fail, "does not answer on /s: connection refused"},
		{"it answers oddly", judgeAgent(agentFacts{Agent: runs, answer: 404}), Warn, "with 404"},
		{"it is dead", judgeAgent(agentFacts{Agent: overview.Agent{Why: "process 7 is gone"}}), Fail, "process 7 is gone"},
		{"it hangs", judgeAgent(agentFacts{Agent: overview.Agent{Hung: true, PID: 7, Why: "its last heartbeat was long ago"}}), Fail, "The agent hangs: its process exists, and its last heartbeat was long ago"},
		{"of a copy", judgeAgent(agentFacts{Agent: runs, copied: true}), Unknown, "copy"},
		{"of a copy of a device without", judgeAgent(agentFacts{Agent: overview.Agent{Why: "it has no pid file"}, copied: true}), Warn, "was not running"},
	})
}

func TestWatchdog(t *testing.T) {
	at := func(old time.Duration, registered bool) types.Finding {
		return judgeWatchdog(seen{overview.Overview{ReadAt: now, Agent: overview.Agent{Runs: true, Seen: now.Add(-old)}}}, registered)
	}
	judge(t, []row{
		{"fresh", at(5*time.Second, true), OK, "5s old"},
		{"nobody looks", at(5*time.Second, false), Warn, "does not check"},
		{"it hangs", at(90*time.Second, true), Warn, "90s old"},
		{"it is about to reboot", at(301*time.Second, true), Fail, "reboots the device"},
		{"old and nobody looks", at(time.Hour, false), Fail, "60m old"},
		{"the clock was set back", at(-time.Hour, true), Warn, "in the future"},
		{"never", judgeWatchdog(seen{overview.Overview{ReadAt: now, Agent: overview.Agent{Runs: true}}}, false), Fail, "not touched"},
		{"no agent", judgeWatchdog(seen{overview.Overview{ReadAt: now}}, false), Unknown, "no heartbeat"},
	})
}

func TestHypervisor(t *testing.T) {
	judge(t, []row{
		{"k", judgeHypervisor("k", nil), OK, "type k"},
		{"the old name", judgeHypervisor("kubevirt", nil), OK, "kubevirt"},
		{"another", judgeHypervisor("kvm", nil), Fail, `"kvm"`},
		{"empty", judgeHypervisor("", nil), Fail, `""`},
		{"none", judgeHypervisor("", fs.ErrNotExist), Unknown, "There is no"},
		{"unreadable", judgeHypervisor("", errOdd), Warn, "cannot be read"},
	})
}

func TestConfiguration(t *testing.T) {
	of := func(wanted bool, state types.Membership) types.Finding {
		return judgeConfiguration(seen{overview.Overview{Cluster: overview.Cluster{Name: "plant", Wanted: wanted, Membership: overview.Membership{State: state, Reason: "so it is."}}}})
	}
	judge(t, []row{
		{"a member", of(true, types.MembershipMember), OK, "plant"},
		{"not taken up", of(true, types.MembershipNever), Warn, "never"},
		{"no agent has run", of(true, ""), OK, "plant"},
		{"lost", of(false, types.MembershipMember), Fail, "no valid configuration"},
		{"doubtful", of(false, types.MembershipDoubtful), Fail, "so it is."},
		{"leaving", of(true, types.MembershipLeaving), Warn, "leaving its cluster: so it is."},
		{"none", of(false, types.MembershipNever), OK, "does not belong to a cluster"},
		{"left", of(false, types.MembershipLeft), OK, "does not belong to a cluster"},
		{"nothing", of(false, ""), Unknown, "neither"},
	})
}

func TestAddress(t *testing.T) {
	of := func(change func(*addressFacts)) types.Finding {
		f := addressFacts{
			Cluster:   overview.Cluster{Source: told(), Interface: "eth2", Address: "10.90.7.21/24", AddressReady: true},
			clustered: true, looked: true, found: []netip.Addr{netip.MustParseAddr("192.168.1.2"), netip.MustParseAddr("10.90.7.21")},
		}
		change(&f)
		return judgeAddress(f)
	}
	judge(t, []row{
		{"there", of(func(*addressFacts) {}), OK, "10.90.7.21 is on eth2"},
		{"nim has not said so", of(func(f *addressFacts) { f.AddressReady = false }), Warn, "nim has not"},
		{"of a copy", of(func(f *addressFacts) { f.looked = false }), OK, "nim reports that 10.90.7.21 is on eth2"},
		{"of a copy, not ready", of(func(f *addressFacts) { f.looked, f.AddressReady = false, false }), Warn, "nim has not"},
		{"not there", of(func(f *addressFacts) { f.found = f.found[:1] }), Fail, "it has 192.168.1.2"},
		{"no address at all", of(func(f *addressFacts) { f.found = nil }), Fail, "it has none"},
		{"no such interface", of(func(f *addressFacts) { f.err = errOdd }), Fail, "cannot be inspected"},
		{"no port", of(func(f *addressFacts) { f.Interface = "" }), Fail, "No port"},
		{"no address", of(func(f *addressFacts) { f.Address = "x" }), Fail, `"x"`},
		{"IPv6", of(func(f *addressFacts) {
			f.Address, f.found = "fd00::1/64", []netip.Addr{netip.MustParseAddr("fd00::1")}
		}), OK, "fd00::1"},
		{"another one of loopback", of(func(f *addressFacts) {
			f.Interface, f.Address, f.found = "lo", "127.7.173.12/24", []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		}), OK, "127.7.173.12 is on lo"},
		{"of loopback, elsewhere", of(func(f *addressFacts) { f.Address = "127.7.173.12/24" }), Fail, "it has 192.168.1.2"},
		{"no cluster", of(func(f *addressFacts) { f.clustered = false }), Unknown, "not belong to a cluster"},
		{"not published", of(func(f *addressFacts) { f.Source = overview.Source{} }), Unknown, "published no"},
		{"unreadable", of(func(f *addressFacts) { f.Source = overview.Source{Why: "odd"} }), Unknown, "odd"},
	})
}

func TestStatusServer(t *testing.T) {
	of := func(change func(*statusFacts)) types.Finding {
		f := statusFacts{
			Cluster: overview.Cluster{Source: told(), ID: "5d0c", AddressReady: true, Role: "server"}, clustered: true, runs: true,
			statusAnswers: statusAnswers{
				looked: true, health: answered{status: 200, body: "ok\n"}, plain: answered{status: 200, body: "cluster:5d0c"}, secure: answered{status: 200, body: "cluster:5d0c", byTLS: true},
				because: answered{status: 200, body: `{"why":"The Node has no etcd label yet."}`},
			},
		}
		change(&f)
		return judgeStatusServer(f)
	}
	judge(t, []row{
		{"right", of(func(*statusFacts) {}), OK, "5d0c by TLS and by plain HTTP"},
		{"right in plain alone", of(func(f *statusFacts) { f.secure = answered{err: clusterauth.ErrOtherToken} }), Warn, "cannot join through this one: its certificate is of another cluster token"},
		{"without a token", of(func(f *statusFacts) { f.secure = answered{err: clusterauth.ErrNoToken} }), Warn, "no cluster token yet"},
		{"another answer by TLS", of(func(f *statusFacts) { f.secure.body = "" }), Fail, `200, "" by TLS`},
		{"not yet", of(func(f *statusFacts) { f.plain.body = "" }), Warn, "no etcd label"},
		{"not yet, and hostile", of(func(f *statusFacts) { f.plain.body, f.because.body = "", `{"why":7` }), Warn, "does not give a reason"},
		{"a worker", of(func(f *statusFacts) { f.plain.body, f.Role = "", "worker" }), OK, "worker"},
		{"another cluster", of(func(f *statusFacts) { f.plain.body = "cluster:" + strings.Repeat("x", 500) }), Fail, "not this cluster"},
		{"an error", of(func(f *statusFacts) { f.plain.status = 500 }), Fail, "500"},
		{"another program", of(func(f *statusFacts) { f.health.status = 404 }), Fail, "not by this zedkube"},
		{"silence", of(func(f *statusFacts) { f.health.err = errOdd }), Fail, "refused"},
		{"silence without an address", of(func(f *statusFacts) { f.health.err, f.AddressReady = errOdd, false }), Warn, "refused"},
		{"silence without an agent", of(func(f *statusFacts) { f.health.err, f.runs = errOdd, false }), Unknown, "The agent is not running, and nothing answers"},
		{"it would be another's", of(func(f *statusFacts) { f.away = true }), Unknown, "not on this device"},
		{"not asked", of(func(f *statusFacts) { f.looked = false }), Unknown, "copy"},
		{"no cluster", of(func(f *statusFacts) { f.clustered = false }), Unknown, "not belong to a cluster"},
	})
}

func TestKubeconfig(t *testing.T) {
	whole := kubeconfig{Kubeconfig: Kubeconfig{Server: "https://127.0.0.1:6443", Client: &x509.Certificate{}, Authorities: []*x509.Certificate{{}}}, path: "/k", mode: 0o600}
	of := func(live bool, change func(*kubeconfig)) types.Finding {
		k := whole
		change(&k)
		return judgeKubeconfig(k, live)
	}
	judge(t, []row{
		{"usable", of(true, func(*kubeconfig) {}), OK, "a client certificate"},
		{"a token", of(true, func(k *kubeconfig) { k.Client, k.Token = nil, "x" }), OK, "a token"},
		{"open to others", of(true, func(k *kubeconfig) { k.mode = 0o644 }), Warn, "-rw-r--r--"},
		{"no authority", of(true, func(k *kubeconfig) { k.Authorities = nil }), Warn, "no CA"},
		{"bad", of(true, func(k *kubeconfig) { k.why = "the kubeconfig names no user" }), Fail, "names no user"},
		{"none", of(true, func(k *kubeconfig) { k.gone, k.why = true, "there is none" }), Fail, "there is none"},
		{"of a copy", of(false, func(k *kubeconfig) { k.why = "its key is hidden" }), OK, "127.0.0.1"},
		{"none in a copy", of(false, func(k *kubeconfig) { k.gone = true }), Unknown, "no kubeconfig"},
	})
}

func TestAPI(t *testing.T) {
	judge(t, []row{
		{"it answers", judgeAPI(apiFacts{address: "a:6443", status: 200, took: time.Millisecond}), OK, "after 1ms"},
		{"slowly", judgeAPI(apiFacts{address: "a:6443", status: 200, took: 1500 * time.Millisecond}), Warn, "1.5s"},
		{"it refuses us", judgeAPI(apiFacts{address: "a:6443", status: 401}), Fail, "401"},
		{"it fails", judgeAPI(apiFacts{address: "a:6443", status: 503}), Fail, "503"},
		{"silence", judgeAPI(apiFacts{address: "a:6443", err: errOdd}), Fail, "refused"},
		{"late", judgeAPI(apiFacts{}), Fail, "in time"},
		{"no kubeconfig", judgeAPI(apiFacts{why: "there is none"}), Unknown, "there is none"},
		{"a copy", judgeAPIOfCopy(overview.API{Answers: types.ConditionTrue}), OK, "copy"},
		{"a copy of silence", judgeAPIOfCopy(overview.API{Answers: types.ConditionFalse, Why: "refused."}), Fail, "refused."},
		{"a copy of nothing", judgeAPIOfCopy(overview.API{}), Unknown, "copy"},
	})
}

func TestCertificates(t *testing.T) {
	of := func(begins, ends time.Duration) types.Finding {
		return judgeCertificate(certificateFacts{which: clientCertificate, now: now, cert: &x509.Certificate{
			Subject: pkix.Name{CommonName: "system:admin"}, NotBefore: now.Add(begins), NotAfter: now.Add(ends),
		}})
	}
	const day = 24 * time.Hour
	judge(t, []row{
		{"long", of(-day, 100*day), OK, "100 days"},
		{"soon", of(-day, 13*day), Warn, "13d"},
		{"over", of(-day, -time.Hour), Fail, "60m ago"},
		{"not yet", of(day, 100*day), Fail, "not valid for another 24h"},
		{"none", judgeCertificate(certificateFacts{why: "no kubeconfig."}), Unknown, "no kubeconfig."},
		{"a token", judgeCertificate(certificateFacts{token: true}), OK, "token"},
	})
}

func TestClock(t *testing.T) {
	of := func(clocks ...clock) types.Finding { return judgeClock(clocks, now) }
	judge(t, []row{
		{"agree", of(clock{"node a", time.Second, false}), OK, "at most 1s"},
		{"apart", of(clock{"node a", time.Second, false}, clock{"node b", -10 * time.Second, false}), Warn, "node b is 10s behind"},
		{"far apart", of(clock{"node a", 10 * time.Minute, false}), Fail, "10m ahead"},
		{"only itself", of(clock{"the API server", 0, true}), Unknown, "the same clock"},
		{"itself, and far apart", of(clock{"the API server", time.Hour, true}), Fail, "ahead"},
		{"nobody", of(), Unknown, "No host whose clock could be compared"},
		{"before the certificate", judgeClock([]clock{{"node a", 0, false}}, clusterauth.ValidFrom().Add(-time.Second)), Fail, "shows 2025-12-31, and the certificate of the status servers is valid from 2026-01-01"},
		{"as it begins", judgeClock([]clock{{"node a", 0, false}}, clusterauth.ValidFrom()), OK, "at most 0s"},
	})
}

func TestPeers(t *testing.T) {
	fine, old := peerAnswer{"a", answered{status: 200, byTLS: true}}, peerAnswer{"b", answered{status: 404}}
	of := func(node string, err error) peerAnswer { return peerAnswer{node, answered{err: err}} }
	judge(t, []row{
		{"all answer", judgePeers([]peerAnswer{fine, old, fine}), OK, "by TLS: 2, by plain HTTP: 1."},
		{"one is silent", judgePeers([]peerAnswer{fine, of("c", errOdd)}), OK, "by TLS: 1, by plain HTTP: 0; no answer from c."},
		{"all are", judgePeers([]peerAnswer{of("c", errOdd)}), Unknown, "No other node has answered"},
		{"there is none", judgePeers(nil), Unknown, "No other node has answered"},
		{"another certificate", judgePeers([]peerAnswer{fine, of("c", clusterauth.ErrOtherToken)}), Warn, "c: its certificate is of another cluster token"},
		{"another bearer", judgePeers([]peerAnswer{of("c", clusterauth.ErrOtherBearer), fine}), Warn, "c: its certificate is ours, and it refuses our bearer"},
		{"without TLS now", judgePeers([]peerAnswer{of("c", clusterauth.ErrDowngrade), of("d", clusterauth.ErrNoToken)}), Warn, "c: it does not speak TLS now"},
		{"no token here", judgePeers([]peerAnswer{of("d", clusterauth.ErrNoToken)}), Warn, "d: it answers by TLS, and this device has no cluster token"},
		{"no token there", judgePeers([]peerAnswer{fine, of("d", &net.OpError{Op: "remote error", Err: errOdd})}), Warn, "d: remote error"},
	})
}

func TestEachCheckIsOfItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range (&Device{}).Checks() {
		if seen[c.Name] || c.What == "" || c.Look == nil || strings.ToLower(c.Name) != c.Name {
			t.Errorf("%q: %q", c.Name, c.What)
		}
		seen[c.Name] = true
	}
	if chosen, unknown := Named((&Device{}).Checks(), []string{"disk", "odd"}); len(chosen) != 1 || chosen[0].Name != "disk" || len(unknown) != 1 {
		t.Errorf("%v, %v", chosen, unknown)
	}
}
