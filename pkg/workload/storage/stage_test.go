package storage

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func device(name string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)) }

// stage is a cluster of n1 and n2, in fake time. Longhorn is there, with one
// disk on each node, and everything in it as the settings want it.
type stage struct {
	*testing.T
	nodes    pubsub.Table[types.Node]
	api      pubsub.Table[types.APIStatus]
	tables   pubsub.Table[types.TableStatus]
	disks    pubsub.Table[types.LonghornNode]
	settings pubsub.Table[types.LonghornSetting]
	jobs     pubsub.Table[types.SnapshotJob]
	cluster  *kubetest.Cluster
	agents   map[string]*agent
}

// spoken is what zedagent says, once it has said all of it.
type spoken struct {
	pubsub.Table[types.ConfigItemValueMap]
	waits atomic.Bool
}

func (s *spoken) Synced() bool { return !s.waits.Load() }

// agent is the component on one node.
type agent struct {
	settings spoken
	info     pubsub.Table[types.EdgeNodeInfo]
	leader   pubsub.Table[types.KubeLeaderElectInfo]
	status   pubsub.Table[types.KubeStorageStatus]
	news     atomic.Int64 // how often status has changed
	kube     Kube
	log      *logtest.Hook
	stop     func()
}

func play(t *testing.T, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, agents: map[string]*agent{}}
		s.cluster = &kubetest.Cluster{
			Nodes: &s.nodes, API: &s.api, Disks: &s.disks, LonghornSettings: &s.settings, SnapshotJobs: &s.jobs,
		}
		s.cluster.SetFault(kubetest.None)
		for _, name := range []string{"n1", "n2"} {
			_ = s.nodes.Publish(name, types.Node{Name: name, UUID: device(name).String()})
			s.reserve(name, 2*gb)
		}
		s.cluster.EditSetting(types.LonghornDrainPolicy, defaultPolicy)
		s.schedule(defaultCron)
		s.see(types.TableStatus{Complete: true})
		tell(s)
		for _, a := range s.agents {
			a.stop()
		}
	})
}

// see says how well Longhorn is seen.
func (s *stage) see(status types.TableStatus) {
	for _, name := range []string{types.TableLonghornNode, types.TableDrainPolicy, types.TableSnapshotJob} {
		_ = s.tables.Publish(name, status)
	}
}

// fault makes the API fail, and the tables old.
func (s *stage) fault(f kubetest.Fault) {
	s.cluster.SetFault(f)
	s.see(types.TableStatus{Complete: f == kubetest.None, Why: map[bool]string{true: "the server is silent"}[f != kubetest.None]})
}

// start runs the agent of a node, perhaps after an earlier run.
func (s *stage) start(name string, leads bool) *agent {
	a := s.agents[name]
	if a == nil {
		a = &agent{kube: s.cluster}
		s.agents[name] = a
		_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: device(name)})
		_ = a.settings.Publish(types.Global, types.ConfigItemValueMap{})
	}
	a.lead(leads)
	log, hook := logtest.NewNullLogger()
	a.log = hook
	begin := time.Now()
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Settings: &a.settings, Info: &a.info, Leader: &a.leader, Nodes: &s.nodes,
		Tables: &s.tables, OwnDisks: &s.disks, LonghornSettings: &s.settings, SnapshotJobs: &s.jobs, Kube: a.kube,
		Uptime: func() time.Duration { return time.Minute + time.Since(begin) }, Status: &a.status,
	}
	bell := make(chan struct{}, 1)
	a.status.Notify(bell)
	ctx, cancel := context.WithCancel(s.Context())
	done, counted := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	go func() {
		defer close(counted)
		for {
			select {
			case <-bell:
				a.news.Add(1)
			case <-ctx.Done():
				return
			}
		}
	}()
	a.stop = func() { cancel(); <-done; <-counted }
	synctest.Wait()
	return a
}

func (a *agent) lead(leads bool) {
	_ = a.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: leads})
}

// say sets one setting.
func (a *agent) say(key string, v types.ConfigItemValue) {
	was, _ := a.settings.Get(types.Global)
	items := map[string]types.ConfigItemValue{key: v}
	for k, v := range was.GlobalSettings {
		if k != key {
			items[k] = v
		}
	}
	_ = a.settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: items})
}

func (a *agent) says() types.KubeStorageStatus {
	synctest.Wait()
	s, _ := a.status.Get(types.Global)
	return s
}

func (s *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// reserve has someone else reserve on the node's disk.
func (s *stage) reserve(node string, bytes int64) {
	s.cluster.EditDisks(node, func(n *types.LonghornNode) {
		n.Disks = []types.LonghornDisk{{Name: "disk", Reserved: bytes, Maximum: 100 * gb}}
	})
}

// schedule has EVE's own zedkube, say, make the job or change its schedule.
func (s *stage) schedule(cron string) {
	s.cluster.EditJob(func(j *types.SnapshotJob) *types.SnapshotJob {
		if j == nil {
			j = &types.SnapshotJob{Task: "snapshot", Groups: []string{"default"}, Retain: 3, Concurrency: 1, Ours: true}
		}
		j.Cron = cron
		return j
	})
}

func (s *stage) policy() string {
	synctest.Wait()
	p, _ := s.settings.Get(types.LonghornDrainPolicy)
	return p.Value
}

func (s *stage) reserved(node string) int64 {
	synctest.Wait()
	n, _ := s.disks.Get(node)
	return n.Disks[0].Reserved
}

// cron is the job's schedule, "-" for no job.
func (s *stage) cron() string {
	synctest.Wait()
	j, ok := s.jobs.Get(types.SnapshotJobName)
	if !ok {
		return "-"
	}
	return j.Cron
}

// wrote is how often anything was asked of the cluster.
func (s *stage) wrote(verbs ...string) (n int) {
	synctest.Wait()
	for _, v := range verbs {
		n += len(s.cluster.Calls(v))
	}
	if len(verbs) == 0 {
		n = len(s.cluster.Calls(""))
	}
	return n
}

// logged counts the log lines that hold text.
func (a *agent) logged(text string) (n int) {
	for _, e := range a.log.AllEntries() {
		line, _ := e.String()
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
