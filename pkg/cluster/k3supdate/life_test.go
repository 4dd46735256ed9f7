package k3supdate

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/cluster/k3scerts"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/k3stls"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// certified is the agent of a device whose k3s has real certificates: the API server answers as long as
// a client and it accept each other's.
type certified struct {
	*agent
	*k3stls.K3s
	zedagent pubsub.Table[types.ZedAgentStatus]

	mu       sync.Mutex
	start    time.Duration // uptime of k3s
	restarts []time.Time
	refuses  func() error // what its supervisor says to a restart
	broken   bool         // it does not come up with certificates of after the first start
	first    time.Time
}

func newCertified(a *agent, life, authority time.Duration) *certified {
	a.stop()
	a.stop = func() {}
	k, err := k3stls.New(a.hold+".k3s", life, authority)
	if err != nil {
		a.Fatal(err)
	}
	_ = a.status.Publish(types.Global, types.EdgeNodeClusterStatus{ClusterIPPrefix: &net.IPNet{IP: net.IPv4(10, 0, 0, 1), Mask: net.CIDRMask(24, 32)}})
	c := &certified{agent: a, K3s: k, start: time.Since(a.booted), first: time.Now()}
	_ = c.zedagent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess})
	return c
}

// Find is that of K3s.
func (c *certified) Find() (k3sprocess.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return k3sprocess.Process{PID: 7, Start: c.start}, nil
}

// Restart takes k3s half a minute.
func (c *certified) Restart(context.Context, k3sprocess.Process) error {
	if c.refuses != nil {
		return c.refuses()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restarts = append(c.restarts, time.Now())
	c.boot()
	return nil
}

func (c *certified) boot() {
	c.Stop()
	time.AfterFunc(30*time.Second, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		err := c.Start()
		admin, err2 := c.Read(k3stls.Admin)
		c.start = time.Since(c.booted)
		if err := errors.Join(err, err2); err != nil || c.broken && admin.NotAfter.After(c.first.Add(c.Life)) {
			c.Stop()
		}
	})
}

// on is the device switched on for that time: the watch of certificates and the changes of k3s run,
// and the API server is asked once a minute.
func (c *certified) on(d time.Duration) {
	ctx, cancel := context.WithCancel(types.ActAs(c.Context(), "k3supdate"))
	var all sync.WaitGroup
	log, _ := logtest.NewNullLogger()
	watch := &k3scerts.Component{
		Log: log, Pulse: &loop.Pulse{}, Dirs: []string{c.hold + ".k3s"}, Info: &c.info, Status: &c.status, Agent: &c.zedagent, Nodes: &c.nodes, Clocks: &pubsub.Table[types.NodeClock]{}, API: &c.api,
		Journal: &c.journal, Operations: types.NoOperations{}, Certificates: &c.certs,
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			return c.Dial(port)
		},
	}
	changes := c.component()
	changes.K3s = c
	all.Go(func() { watch.Run(ctx) })
	all.Go(func() { changes.Run(ctx) })
	for range int(d / time.Minute) {
		time.Sleep(time.Minute)
		synctest.Wait()
		if answers := c.answers() == nil; answers != (c.fault() == kubetest.None) {
			c.cluster.SetFault(map[bool]kubetest.Fault{true: kubetest.None, false: kubetest.Refused}[answers])
		}
	}
	cancel()
	all.Wait()
}

func (c *certified) fault() kubetest.Fault {
	if api, _ := c.api.Get(types.Global); !api.Answers() {
		return kubetest.Refused
	}
	return kubetest.None
}

func (c *certified) answers() error {
	conn, err := c.Dial("6443")
	if err == nil {
		err = c.Ask(conn)
	}
	return err
}

// after is that device some days after its k3s was first started, for an hour of which it says what it says.
func (c *certified) after(days int) (state types.K3sCertificateState, wish types.K3sRestartWish) {
	time.Sleep(time.Until(c.first.Add(time.Duration(days) * day)))
	c.on(time.Hour)
	certs, _ := c.certs.Get(types.Global)
	if len(certs.Leaves) < len(k3stls.Leaves()) || certs.ClockDoubt != "" {
		c.Errorf("after %d days: %+v", days, certs)
	}
	return certs.Leaves[0].State, c.is().Restart.Wish
}

// lacking are the leaves that are not in their place, or have expired.
func (c *certified) lacking() (names []string) {
	for _, file := range k3stls.Leaves() {
		if cert, err := c.Read(file); err != nil || !cert.NotAfter.After(time.Now()) {
			names = append(names, file)
		}
	}
	return names
}

func TestRealCertificatesAreRenewedOfflineOnceTheyHaveExpired(t *testing.T) {
	play(t, "n1", func(s *site) {
		c := newCertified(s.agents[0], 365*day, 3650*day)
		if err := os.WriteFile(c.hold, []byte("harvest"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			days    int
			state   types.K3sCertificateState
			wish    types.K3sRestartWish
			answers bool
		}{
			{1, types.CertFine, "", true},
			{244, types.CertFine, "", true},
			{246, types.CertRenewable, "", true},
			{304, types.CertRenewable, "", true},
			{306, types.CertDue, types.RestartDue, true},
			{350, types.CertDue, types.RestartDue, true},
			{352, types.CertUrgent, types.RestartUrgent, true},
			{364, types.CertUrgent, types.RestartUrgent, true},
			{366, types.CertUrgent, types.RestartExpired, false},
		} {
			state, wish := c.after(row.days)
			if answers := c.fault() == kubetest.None; state != row.state || wish != row.wish || answers != row.answers {
				t.Errorf("after %d days: %s, %q, the API server answers: %v", row.days, state, wish, answers)
			}
		}
		if len(c.restarts) != 0 || len(c.lacking()) != len(k3stls.Leaves()) {
			t.Fatalf("restarted %v; %v have expired", c.restarts, c.lacking())
		}
		if err := os.Remove(c.hold); err != nil {
			t.Fatal(err)
		}
		c.on(time.Hour)
		certs, _ := c.certs.Get(types.Global)
		j, _ := c.journal.Get(types.Global)
		if len(c.restarts) != 1 || len(c.lacking()) != 0 || certs.Leaves[0].State != types.CertFine || c.answers() != nil || j.Step != "" || j.Restarts.Failed != "" || s.cluster.Lock().Holder != "" {
			t.Errorf("restarted %v, %v lack; %+v: %+v", c.restarts, c.lacking(), j, c.is())
		}
		if state, wish := c.after(600); state != types.CertFine || wish != "" || len(c.restarts) != 1 {
			t.Errorf("later: %s, %q, restarted %v", state, wish, c.restarts)
		}
	})
}

func TestRealCertificatesAreRenewedWhenTheyAreDueBeforeAnyClientIsRefused(t *testing.T) {
	play(t, "n1", func(s *site) {
		c := newCertified(s.agents[0], 365*day, 3650*day)
		for days := 1; days < 1000; days += 28 { // switched on for an hour every fourth week
			if c.after(days); c.fault() != kubetest.None {
				t.Fatalf("after %d days: %v: %+v", days, c.answers(), c.is())
			}
		}
		var after []int
		for _, at := range c.restarts {
			after = append(after, int(at.Sub(c.first)/day))
		}
		if !slices.Equal(after, []int{309, 617, 925}) || s.cluster.Lock().Holder != "" {
			t.Errorf("restarted after %v days", after)
		}
	})
}

func TestWithAnAuthorityThatHasExpiredNothingIsRestarted(t *testing.T) {
	play(t, "n1", func(s *site) {
		c := newCertified(s.agents[0], 365*day, 300*day)
		for _, days := range []int{1, 299} {
			if c.after(days); c.fault() != kubetest.None {
				t.Errorf("after %d days: %v", days, c.answers())
			}
		}
		if certs, _ := c.certs.Get(types.Global); certs.Authorities[0].State != types.CertUrgent {
			t.Errorf("%+v", certs.Authorities)
		}
		for _, days := range []int{301, 310, 352, 366, 380} { // no leaf is valid without its authority
			c.after(days)
		}
		r := c.is().Restart
		if c.fault() == kubetest.None || r.Wish != types.RestartExpired || !strings.Contains(r.Reason, `authority server-ca expired on`) || !strings.Contains(r.Reason, `"Rotating the CA"`) || len(c.restarts) != 0 {
			t.Errorf("restarted %v, the API server answers: %v, %+v", c.restarts, c.fault() == kubetest.None, r)
		}
	})
}

// TestAForcedResetThatIsCutOffAnywhereLeavesEveryCertificate: the agent was killed behind each line of the
// journal, before its effect, in the middle of it and after it.
func TestAForcedResetThatIsCutOffAnywhereLeavesEveryCertificate(t *testing.T) {
	for name, row := range map[string]struct {
		aside    int  // files that are aside, -1 for all
		restored bool // as the journal says
		down     bool // k3s was restarted, and does not come up with new ones
		restarts int  // in the end
		failed   string
	}{
		"before any file was moved":          {0, false, false, 1, ""},
		"between two files":                  {2, false, false, 1, ""},
		"before k3s was restarted":           {-1, false, false, 1, ""},
		"while k3s does not come up":         {-1, false, true, 1, "put back"},
		"before they were put back":          {-1, true, true, 1, "put back"},
		"between two that were put back":     {2, true, true, 1, "put back"},
		"before k3s was restarted with them": {0, true, true, 1, "put back"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, "n1", func(s *site) {
				a := s.agents[0]
				c := newCertified(a, 365*day, 3650*day)
				c.on(time.Hour)
				before, _ := c.certs.Get(types.Global)
				request := types.CertsResetRequest{RequestedAt: time.Now().UTC(), Force: true}
				_ = c.reset.Publish(types.Global, request)
				j := types.KubeLifecycleJournal{
					Step: types.K3sStepChange, From: old, To: old, Kind: types.K3sRestart, BootID: "boot", Began: time.Since(c.booted), Restarted: true, Wish: types.RestartAsked, Force: true,
					Leaves: map[string]time.Time{}, Restarts: types.K3sRestarts{At: request.RequestedAt.Truncate(time.Second), Answers: request.RequestedAt}, Restored: row.restored,
				}
				dir := a.hold + ".k3s"
				for _, leaf := range before.Leaves {
					j.Leaves[leaf.Where] = leaf.NotAfter
				}
				_ = c.journal.Publish(types.Global, j)
				_, _ = s.cluster.SetDrainLock(t.Context(), types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3sChange})
				_, files, err := LeafFiles{Dirs: []string{dir}}.find()
				if err != nil {
					t.Fatal(err)
				}
				if row.down {
					c.broken = true
					for _, file := range files { // k3s has made new ones
						if err := errors.Join(move(filepath.Join(dir, file), filepath.Join(keptOf(dir, request.RequestedAt), file)), c.Make(file, 400*day)); err != nil {
							t.Fatal(err)
						}
					}
					c.Stop()
					c.start = time.Since(c.booted) + time.Second
					if row.restored {
						for _, file := range files[:len(files)-max(row.aside, 0)] {
							if row.aside >= 0 {
								if err := os.Rename(filepath.Join(keptOf(dir, request.RequestedAt), file), filepath.Join(dir, file)); err != nil {
									t.Fatal(err)
								}
							}
						}
						j.Began = c.start + time.Second
						_ = c.journal.Publish(types.Global, j)
					}
				} else if row.aside != 0 {
					for _, file := range files[:(row.aside+len(files)+1)%(len(files)+1)] {
						if err := move(filepath.Join(dir, file), filepath.Join(keptOf(dir, request.RequestedAt), file)); err != nil {
							t.Fatal(err)
						}
					}
				}
				c.on(2 * time.Hour)
				got, _ := c.journal.Get(types.Global)
				if lacking := c.lacking(); len(lacking) > 0 || c.answers() != nil || got.Step != "" || s.cluster.Lock().Holder != "" || len(c.restarts) != row.restarts || !strings.Contains(got.Restarts.Failed, row.failed) || row.failed == "" && got.Restarts.Failed != "" {
					t.Errorf("%v lack; restarted %d times; %+v; %s: %s", lacking, len(c.restarts), got, c.is().Phase, c.is().Reason)
				}
				if after, _ := c.Read(k3stls.Admin); after.NotAfter.Equal(before.Leaves[0].NotAfter) == (row.failed == "") {
					t.Errorf("the certificate of the clients expires on %s, before on %s", after.NotAfter, before.Leaves[0].NotAfter)
				}
			})
		})
	}
}
