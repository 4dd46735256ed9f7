package services

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// counting counts the publications that changed something.
type counting[T any] struct {
	pubsub.Table[T]
	bell  chan struct{}
	rings int
	first func() error // called before a row is published, which its error prevents; nil for nothing
}

func newCounting[T any]() *counting[T] {
	c := &counting[T]{bell: make(chan struct{}, 1)}
	c.Notify(c.bell)
	return c
}

func (c *counting[T]) Publish(key string, v T) error {
	if c.first != nil {
		if err := c.first(); err != nil {
			return err
		}
	}
	err := c.Table.Publish(key, v)
	select {
	case <-c.bell:
		c.rings++
	default:
	}
	return err
}

// unheard is a topic of which nothing has come yet.
type unheard struct {
	pubsub.Table[types.DeviceNetworkStatus]
	heard bool
}

func (u *unheard) Synced() bool { return u.heard }

type story struct {
	*testing.T
	services  pubsub.Table[types.Service]
	ingresses pubsub.Table[types.Ingress]
	vip       pubsub.Table[types.KubeVIP]
	tables    pubsub.Table[types.TableStatus]
	api       pubsub.Table[types.APIStatus]
	ports     unheard
	cluster   pubsub.Table[types.EdgeNodeClusterStatus]
	status    *counting[types.KubeUserServices]
	sections  *counting[types.ReportSection]
	former    types.FormerReports
	logs      *logtest.Hook
}

// begun is a component that has not looked yet, and what is around it.
func begun(t *testing.T, setup func(*story)) (*story, *Component) {
	log, hook := logtest.NewNullLogger()
	s := &story{T: t, logs: hook, status: newCounting[types.KubeUserServices](), sections: newCounting[types.ReportSection]()}
	setup(s)
	return s, &Component{
		Log: log, Pulse: &loop.Pulse{}, Services: &s.services, Ingresses: &s.ingresses, KubeVIP: &s.vip, Tables: &s.tables,
		API: &s.api, Ports: &s.ports, Cluster: &s.cluster, Status: s.status, Sections: s.sections,
		Former: s.former,
	}
}

// tell runs a component in fake time while play changes its inputs.
func tell(t *testing.T, setup, play func(*story)) {
	synctest.Test(t, func(t *testing.T) {
		s, c := begun(t, setup)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx) }()
		synctest.Wait()
		play(s)
		cancel()
		<-done
	})
}

// usual is a node of a cluster with a service, an ingress and kube-vip, all in view.
func usual(s *story) {
	s.ports.heard = true
	_ = s.ports.Publish(types.Global, types.DeviceNetworkStatus{Ports: []types.NetworkPortStatus{port("192.168.7.5")}})
	_ = s.vip.Publish(types.Global, types.KubeVIP{CIDR: "172.28.40.64/28", Interface: "eth3"})
	_ = s.services.Publish("shop/web", balanced("web", "172.28.40.66"))
	_ = s.ingresses.Publish("shop/front", types.Ingress{
		Namespace: "shop", Name: "front", Addresses: []string{"192.168.7.5"}, Rules: []types.IngressPath{{Service: "web", Port: 80}},
	})
	s.answers()
}

func (s *story) answers() {
	_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
	for _, name := range []string{types.TableServices, types.TableIngresses, types.TableKubeVIP} {
		s.stands(name, true)
	}
}

func (s *story) stands(name string, whole bool) {
	st := types.TableStatus{Complete: whole, Since: time.Now()}
	if !whole {
		st.Why = "the API server answers 500: broken"
	}
	_ = s.tables.Publish(name, st)
}

func (s *story) value() types.KubeUserServices {
	synctest.Wait()
	v, _ := s.status.Get(types.Global)
	return v
}

func (s *story) section(name string) types.ReportSection {
	synctest.Wait()
	sec, _ := s.sections.Get(name)
	return sec
}

func (s *story) expect(when string, services, ingresses int, pool bool) {
	s.Helper()
	v := s.value()
	if len(v.UserService) != services || len(v.UserIngress) != ingresses || (v.LBPoolStatus != nil) != pool {
		s.Errorf("%s: got %+v, want %d services, %d ingresses, pool %t", when, v, services, ingresses, pool)
	}
}
