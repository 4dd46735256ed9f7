package clusterstatus

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestNodeFindsItsWayIntoTheCluster(t *testing.T) {
	tell(t, func(*story) {}, func(s *story) {
		if _, ok := s.status.Get(types.Global); ok {
			s.Fatal("a status without a configuration")
		}
		s.setConfig(config())
		s.expect(status())
		s.setPorts(eth0(func(p *types.NetworkPortStatus) { p.ClusterIPAddr = "" }))
		s.expect(status(named))
		s.setPorts(eth0())
		s.expect(status(ready))
		s.setPorts(eth0(func(p *types.NetworkPortStatus) { p.ClusterIPAddr = "" }))
		s.expect(status(named))
	})
}

func TestAStatusThatCouldNotBePublishedIsPublishedLater(t *testing.T) {
	tell(t, func(s *story) {
		s.status.left = 3
		_ = s.config.Publish(types.Global, config())
		_ = s.ports.Publish(types.Global, types.DeviceNetworkStatus{Ports: []types.NetworkPortStatus{eth0()}})
	}, func(s *story) {
		time.Sleep(time.Minute)
		synctest.Wait()
		s.expect(status(ready))
		if n := s.warnings(); n != 1 {
			s.Errorf("%d warnings", n)
		}
	})
}

func TestPortsBeforeConfigurationWorkAsWell(t *testing.T) {
	tell(t, func(*story) {}, func(s *story) {
		s.setPorts(eth0())
		s.setConfig(config())
		s.expect(status(ready))
	})
}

func TestStatusOutlivesAnInvalidConfigurationAndSaysSoOnce(t *testing.T) {
	tell(t, func(s *story) {
		_ = s.config.Publish(types.Global, config())
		_ = s.ports.Publish(types.Global, types.DeviceNetworkStatus{Ports: []types.NetworkPortStatus{eth0()}})
	}, func(s *story) {
		s.expect(status(ready))
		s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
		time.Sleep(10 * period)
		s.expect(status(ready))
		if n := s.warnings(); n != 1 {
			s.Errorf("%d warnings for one invalid configuration", n)
		}
		_ = s.config.Unpublish(types.Global)
		time.Sleep(10 * period)
		s.expect(status(ready))
		if n := s.warnings(); n != 2 {
			s.Errorf("%d warnings for an invalid configuration that then vanished", n)
		}
		s.setConfig(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterName = "again" }))
		s.expect(status(ready, func(st *types.EdgeNodeClusterStatus) { st.ClusterName = "again" }))
	})
}

func TestStatusOutlivesARebootInDoubtUntilTheNodeHasLeft(t *testing.T) {
	kept := config()
	at := func(state types.Membership) types.ClusterMembership {
		return types.ClusterMembership{State: state, Config: &kept}
	}
	tell(t, func(s *story) {
		s.config.silent, s.ports.silent = true, true
		_ = s.membership.Publish(types.Global, at(types.MembershipDoubtful))
	}, func(s *story) {
		s.expect(status())
		s.setConfig(types.EdgeNodeClusterConfig{Initialized: true})
		s.setPorts(eth0())
		s.expect(status(ready))
		_ = s.membership.Publish(types.Global, at(types.MembershipLeaving))
		time.Sleep(10 * period)
		s.expect(status(ready))
		_ = s.membership.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		synctest.Wait()
		if got, ok := s.status.Get(types.Global); ok {
			s.Fatalf("the node has left and its status stands: %+v", got)
		}
		s.setConfig(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID = other }))
		s.expect(status(ready, func(st *types.EdgeNodeClusterStatus) { st.ClusterID = other }))
	})
}

func TestRestartKeepsTheStatusUntilTheConfigurationIsKnown(t *testing.T) {
	tell(t, func(s *story) {
		s.config.silent, s.ports.silent = true, true
		_ = s.status.Publish(types.Global, status(ready, token))
	}, func(s *story) {
		time.Sleep(10 * period)
		s.expect(status(ready, token))
		if n := s.warnings(); n != 0 {
			s.Errorf("%d warnings while nothing is wrong", n)
		}
		s.setConfig(config())
		s.expect(status(ready, token))
		s.setPorts(eth0(func(p *types.NetworkPortStatus) { p.InvalidConfig = true }))
		s.expect(status(named, token))
		for _, e := range s.logs.AllEntries() {
			if text, _ := e.String(); strings.Contains(text, "secret") {
				s.Errorf("the token is logged: %s", text)
			}
		}
	})
}

func TestTimeOfALoadBalancerProblemStandsWhilePortsChange(t *testing.T) {
	pool := types.LBInterface{Interface: "ethernet1", IPPrefix: "192.168.1.24/29"}
	tell(t, func(s *story) {
		_ = s.config.Publish(types.Global, config(lb(pool)))
		_ = s.ports.Publish(types.Global, types.DeviceNetworkStatus{Ports: []types.NetworkPortStatus{eth0(), eth1("192.168.1.25")}})
	}, func(s *story) {
		first, _ := s.status.Get(types.Global)
		if first.LBConfigError.Error == "" || first.LBConfigError.ErrorTime.IsZero() {
			s.Fatalf("the overlap is not reported: %+v", first.LBConfigError)
		}
		time.Sleep(time.Minute)
		s.setPorts(eth0(func(p *types.NetworkPortStatus) { p.ClusterIPAddr = "" }), eth1("192.168.1.25"))
		second, _ := s.status.Get(types.Global)
		if second.ClusterIPIsReady || second.LBConfigError.ErrorTime != first.LBConfigError.ErrorTime {
			s.Errorf("want not ready and the time of the first report, got %+v", second)
		}
	})
}

func TestTheTokenFollowsThePublicationAndNeverTheCluster(t *testing.T) {
	tell(t, func(*story) {}, func(s *story) {
		s.setPorts(eth0())
		s.setConfig(config())
		s.expect(status(ready)) // without waiting for the token
		_ = s.token.Publish(types.Global, types.ClusterToken{ClusterID: one.UUID, Token: "secret"})
		synctest.Wait()
		s.expect(status(ready, token))
		moved := func(st *types.EdgeNodeClusterStatus) { st.ClusterID = other }
		s.setConfig(config(func(c *types.EdgeNodeClusterConfig) { c.ClusterID = other }))
		s.expect(status(ready, moved))
		_ = s.token.Unpublish(types.Global)
		synctest.Wait()
		s.expect(status(ready, moved))
		_ = s.token.Publish(types.Global, types.ClusterToken{ClusterID: other.UUID, Token: "secret"})
		synctest.Wait()
		s.expect(status(ready, moved, token))
		for _, e := range s.logs.AllEntries() {
			if text, _ := e.String(); strings.Contains(text, "secret") {
				s.Errorf("the token is logged: %s", text)
			}
		}
	})
}
