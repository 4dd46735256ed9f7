package services

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// counting counts the publications that changed something.
type counting[T any] struct {
	pubsub.Table[T]
	bell  chan struct{}
	rings int
}

func newCounting[T any]() *counting[T] {
	c := &counting[T]{bell: make(chan struct{}, 1)}
	c.Notify(c.bell)
	return c
}

func (c *counting[T]) Publish(key string, v T) error {
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
	logs      *logtest.Hook
}

// tell runs a component in fake time while play changes its inputs.
func tell(t *testing.T, setup, play func(*story)) {
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		s := &story{T: t, logs: hook, status: newCounting[types.KubeUserServices](), sections: newCounting[types.ReportSection]()}
		setup(s)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		c := &Component{
			Log: log, Pulse: &loop.Pulse{}, Services: &s.services, Ingresses: &s.ingresses, KubeVIP: &s.vip, Tables: &s.tables,
			API: &s.api, Ports: &s.ports, Cluster: &s.cluster, Status: s.status, Sections: s.sections,
		}
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
	st := types.TableStatus{Whole: whole, Since: time.Now()}
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

func TestAChangeIsToldAtOnceAndTheRestOncePerSecond(t *testing.T) {
	tell(t, usual, func(s *story) {
		s.expect("at the start", 1, 1, true)
		time.Sleep(90*time.Second + time.Millisecond)
		before := s.status.rings
		_ = s.services.Publish("shop/a", service("shop", "a", nodePort, 80))
		s.expect("after a quiet second", 2, 1, true)
		for i := range 50 {
			time.Sleep(10 * time.Millisecond)
			_ = s.services.Publish(fmt.Sprint("shop/b", i), service("shop", fmt.Sprint("b", i), nodePort, 80))
		}
		s.expect("within the second", 2, 1, true)
		time.Sleep(pause)
		s.expect("a second later", 52, 1, true)
		if n := s.status.rings - before; n != 2 {
			s.Errorf("%d publications for one burst", n)
		}
	})
}

func TestWhatIsUnchangedIsNotToldAgain(t *testing.T) {
	tell(t, usual, func(s *story) {
		time.Sleep(time.Minute)
		values, sections := s.status.rings, s.sections.rings
		for range 100 {
			_ = s.services.Publish("kube-system/dns", service("kube-system", "dns", clusterIP, 53))
			time.Sleep(5 * time.Second)
			_ = s.services.Unpublish("kube-system/dns")
			_ = s.api.Publish(types.Global, types.APIStatus{Synced: true, Apps: true})
			time.Sleep(5 * time.Second)
			_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
		}
		if s.status.rings != values || s.sections.rings != sections {
			s.Errorf("%d values and %d sections of what is unchanged", s.status.rings-values, s.sections.rings-sections)
		}
	})
}

func TestWhatAFormerRunLeftStaysUntilTheTablesAreWhole(t *testing.T) {
	former := types.KubeUserServices{
		UserService:  []types.KubeUserService{{Namespace: "shop", Name: "former"}},
		UserIngress:  []types.KubeUserIngress{{Namespace: "shop", Name: "former"}},
		LBPoolStatus: &types.LBPoolStatus{Interface: "former"},
		ServiceError: types.ErrorDescription{Error: errOutside, ErrorTime: then},
	}
	tell(t, func(s *story) { _ = s.status.Table.Publish(types.Global, former) }, func(s *story) {
		time.Sleep(time.Hour)
		if d := cmp.Diff(former, s.value()); d != "" {
			s.Error("want -, got +\n" + d)
		}
		if sec := s.section(types.SectionServices); sec.Known || sec.StaleSince.IsZero() || sec.Why == "" || !sec.Updated.IsZero() || sec.Total != 1 {
			s.Errorf("before the table is whole its section is %+v", sec)
		}
		_ = s.api.Publish(types.Global, types.APIStatus{})
		s.stands(types.TableServices, true)
		time.Sleep(time.Second)
		if v := s.value(); len(v.UserService) != 0 || len(v.UserIngress) != 1 || v.LBPoolStatus == nil || v.ServiceError.Error == "" {
			s.Errorf("with the table of services whole there is %+v", v)
		}
		s.stands(types.TableIngresses, true)
		time.Sleep(time.Second)
		if v := s.value(); len(v.UserIngress) != 1 {
			s.Errorf("before nim has told the ports the ingresses are %+v", v.UserIngress)
		}
		if sec := s.section(types.SectionIngresses); sec.Known || !strings.Contains(sec.Why, "nim") {
			s.Errorf("before nim has told the ports their section is %+v", sec)
		}
		s.ports.heard = true
		_ = s.ports.Publish(types.Global, types.DeviceNetworkStatus{})
		time.Sleep(time.Second)
		s.expect("with the ports", 0, 0, true)
		s.stands(types.TableKubeVIP, true)
		time.Sleep(time.Second)
		if d := cmp.Diff(types.KubeUserServices{}, s.value()); d != "" {
			s.Error("want -, got +\n" + d)
		}
		for _, name := range []string{types.SectionServices, types.SectionIngresses, types.SectionLBPool} {
			if sec := s.section(name); !sec.Known || !sec.StaleSince.IsZero() || sec.Why != "" || sec.Updated.IsZero() {
				s.Errorf("the section is %+v", sec)
			}
		}
	})
}

func TestNothingIsPublishedBeforeATableIsWhole(t *testing.T) {
	tell(t, func(s *story) { usual(s); s.tables = pubsub.Table[types.TableStatus]{} }, func(s *story) {
		time.Sleep(time.Hour)
		if _, ok := s.status.Get(types.Global); ok {
			s.Errorf("published is %+v", s.value())
		}
	})
}

func TestATableThatFailsLeavesWhatWasKnownOfItAndTheOthersGoOn(t *testing.T) {
	vanish := func(s *story) {
		_ = s.services.Unpublish("shop/web")
		_ = s.ingresses.Unpublish("shop/front")
		_ = s.vip.Unpublish(types.Global)
	}
	rows := map[string]struct{ services, ingresses, pool int }{
		types.TableServices: {1, 0, 0}, types.TableIngresses: {0, 1, 0}, types.TableKubeVIP: {0, 0, 1},
	}
	section := map[string]string{
		types.TableServices: types.SectionServices, types.TableIngresses: types.SectionIngresses, types.TableKubeVIP: types.SectionLBPool,
	}
	for name, want := range rows {
		tell(t, usual, func(s *story) {
			time.Sleep(time.Minute)
			s.stands(name, false)
			failed := time.Now()
			time.Sleep(time.Minute)
			vanish(s)
			time.Sleep(time.Minute)
			s.expect(name, want.services, want.ingresses, want.pool == 1)
			if e := s.value().ServiceError; e.Error != "" {
				s.Errorf("%s: a false error: %+v", name, e)
			}
			if sec := s.section(section[name]); !sec.Known || !sec.StaleSince.Equal(failed) || sec.Why != "the API server answers 500: broken" || sec.Total != want.services+want.ingresses {
				s.Errorf("%s: its section is %+v", name, sec)
			}
			s.stands(name, true)
			time.Sleep(time.Second)
			s.expect(name+" is whole again", 0, 0, false)
			if sec := s.section(section[name]); !sec.StaleSince.IsZero() || sec.Why != "" || sec.Total != 0 || !sec.Updated.After(failed) {
				s.Errorf("%s: whole again its section is %+v", name, sec)
			}
		})
	}
}

func TestAllStaysWhileTheAPIIsSilent(t *testing.T) {
	tell(t, usual, func(s *story) {
		time.Sleep(90 * time.Second)
		before, rings := s.value(), s.status.rings
		silence := time.Now()
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: silence, Reason: "connection refused"})
		_ = s.services.Unpublish("shop/web")
		_ = s.ingresses.Unpublish("shop/front")
		_ = s.vip.Unpublish(types.Global)
		time.Sleep(time.Minute)
		for _, name := range []string{types.TableServices, types.TableIngresses, types.TableKubeVIP} {
			s.stands(name, false)
		}
		time.Sleep(time.Hour)
		if d := cmp.Diff(before, s.value()); d != "" || s.status.rings != rings {
			s.Errorf("%d publications; want -, got +\n%s", s.status.rings-rings, d)
		}
		for _, name := range []string{types.SectionServices, types.SectionIngresses, types.SectionLBPool} {
			if sec := s.section(name); !sec.StaleSince.Equal(silence) || sec.Why == "" {
				s.Errorf("the section is %+v", sec)
			}
		}
		s.answers()
		s.expect("the API answers again", 0, 0, false)
	})
}

func TestIngressesFollowTheAddressesOfThePorts(t *testing.T) {
	tell(t, usual, func(s *story) {
		if ips := s.value().UserIngress[0].IngressIP; len(ips) != 1 {
			s.Errorf("addresses are %v", ips)
		}
		time.Sleep(90 * time.Second)
		_ = s.ports.Publish(types.Global, types.DeviceNetworkStatus{Ports: []types.NetworkPortStatus{{AddrInfoList: []types.AddrInfo{{Addr: net.IPv4(10, 0, 0, 1)}}}}})
		if ips := s.value().UserIngress[0].IngressIP; len(ips) != 0 {
			s.Errorf("addresses are %v", ips)
		}
	})
}

func TestTheTimeOfAnErrorStandsWhileItDoes(t *testing.T) {
	tell(t, usual, func(s *story) {
		time.Sleep(90 * time.Second)
		_ = s.vip.Unpublish(types.Global)
		began := time.Now()
		first := s.value().ServiceError
		if first.Error != errOrphans || !first.ErrorTime.Equal(began) || first.ErrorSeverity != types.ErrorSeverityWarning {
			s.Errorf("the error is %+v", first)
		}
		time.Sleep(time.Hour)
		_ = s.services.Publish("shop/b", balanced("b", "172.28.40.67"))
		time.Sleep(time.Second)
		if d := cmp.Diff(first, s.value().ServiceError); d != "" {
			s.Error("want -, got +\n" + d)
		}
		var said []string
		for _, e := range s.logs.AllEntries() {
			said = append(said, e.Message)
		}
		if d := cmp.Diff([]string{errOrphans}, said); d != "" {
			s.Error("want -, got +\n" + d)
		}
	})
}

func TestTheConfigurationsErrorIsTheNewestOne(t *testing.T) {
	tell(t, usual, func(s *story) {
		for _, text := range []string{"first", "second", ""} {
			time.Sleep(90 * time.Second)
			_ = s.cluster.Publish(types.Global, types.EdgeNodeClusterStatus{LBConfigError: types.ErrorDescription{Error: text}})
			if got := s.value().LBPoolStatus.Error.Error; got != text {
				s.Errorf("the error is %q, want %q", got, text)
			}
		}
	})
}

func TestTheCutIsLoggedWhenItBeginsAndWhenItEnds(t *testing.T) {
	tell(t, usual, func(s *story) {
		for i := range 1000 {
			_ = s.services.Publish(fmt.Sprint("shop/b", i), service("shop", fmt.Sprint("b", i), nodePort, 80))
		}
		time.Sleep(time.Minute)
		sec := s.section(types.SectionServices)
		if n := len(s.value().UserService); sec.Total != 1001 || sec.Truncated != 1001-n || sec.Truncated == 0 {
			s.Errorf("%d services are told, the section is %+v", n, sec)
		}
		for i := range 1000 {
			_ = s.services.Unpublish(fmt.Sprint("shop/b", i))
		}
		time.Sleep(time.Minute)
		var levels []logrus.Level
		for _, e := range s.logs.AllEntries() {
			levels = append(levels, e.Level)
		}
		if d := cmp.Diff([]logrus.Level{logrus.WarnLevel, logrus.InfoLevel}, levels); d != "" {
			s.Error("want -, got +\n" + d)
		}
		if sec := s.section(types.SectionServices); sec.Truncated != 0 || sec.Total != 1 {
			s.Errorf("the section is %+v", sec)
		}
	})
}
