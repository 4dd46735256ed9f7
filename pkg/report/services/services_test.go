package services

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/types"
)

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
		_ = s.vip.Publish(types.Global, types.KubeVIP{CIDR: "172.28.40.64/28"})
		time.Sleep(time.Second)
		if e := s.value().ServiceError; e.Error != "" {
			s.Errorf("kube-vip is back and the error is %+v", e)
		}
		var said []string
		for _, e := range s.logs.AllEntries() {
			said = append(said, e.Message)
		}
		if d := cmp.Diff([]string{errOrphans, "all load balancer addresses are served by kube-vip again"}, said); d != "" {
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
