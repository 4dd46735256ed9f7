package services

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

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

// What the former run left was last known to be true when that was last seen to
// work, or when it began to doubt it.
func TestWhatAFormerRunLeftIsAsOldAsWhatIsKnownOfThatRun(t *testing.T) {
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of fake time
	alive, doubted := began.Add(-46*time.Second), began.Add(-time.Hour)
	tell(t, func(s *story) {
		s.former = types.FormerReports{Alive: alive, Stale: map[string]time.Time{types.SectionLBPool: doubted}}
		_ = s.status.Table.Publish(types.Global, types.KubeUserServices{UserIngress: []types.KubeUserIngress{{Name: "former"}}})
	}, func(s *story) {
		dated := func(when string, want map[string]time.Time) {
			time.Sleep(2 * time.Second)
			for name, since := range want {
				if sec := s.section(name); !sec.StaleSince.Equal(since) {
					s.Errorf("%s: %+v, want stale since %s", when, sec, since)
				}
			}
		}
		left := map[string]time.Time{types.SectionServices: alive, types.SectionIngresses: alive, types.SectionLBPool: doubted}
		dated("before any list", left)
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Reason: "connection refused"})
		dated("the API is silent", left)
		_ = s.api.Publish(types.Global, types.APIStatus{})
		s.stands(types.TableServices, false)
		s.stands(types.TableIngresses, true)
		s.stands(types.TableKubeVIP, true)
		left[types.SectionLBPool] = alive // it is made from what the former run left of services
		dated("without services", left)
		s.stands(types.TableServices, true)
		dated("before nim has told the ports", map[string]time.Time{types.SectionServices: {}, types.SectionIngresses: alive, types.SectionLBPool: {}})
		s.ports.heard = true
		_ = s.ports.Publish(types.Global, types.DeviceNetworkStatus{})
		time.Sleep(time.Minute)
		failed := time.Now()
		s.stands(types.TableIngresses, false)
		dated("after it has been seen", map[string]time.Time{types.SectionIngresses: failed})
	})
}

func TestIngressesWaitForTheServicesTheyLeadTo(t *testing.T) {
	tell(t, func(s *story) { usual(s); s.stands(types.TableServices, false) }, func(s *story) {
		time.Sleep(time.Minute)
		s.expect("without services", 0, 0, true)
		s.stands(types.TableServices, true)
		time.Sleep(time.Second)
		if v := s.value(); len(v.UserIngress) != 1 || v.UserIngress[0].ServiceType != loadBalancer {
			s.Errorf("with services there are %+v", v.UserIngress)
		}
		time.Sleep(time.Minute)
		s.stands(types.TableServices, false)
		_ = s.ingresses.Unpublish("shop/front")
		time.Sleep(time.Second)
		s.expect("known services are enough", 1, 0, true)
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
			s.expect(name+" is complete again", 0, 0, false)
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
		time.Sleep(pause) // it may have looked while not all of that was said
		s.expect("the API answers again", 0, 0, false)
	})
}

func TestAClockThatIsSetBackHoldsNothingUp(t *testing.T) {
	_, c := begun(t, usual)
	if err := c.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	// No test can set the clock: what has no reading of the monotonic one is
	// measured with the one that can be set.
	if c.looked.IsZero() || c.looked == c.looked.Round(0) {
		t.Errorf("the pause is measured by the wall clock, from %v", c.looked)
	}
}

func TestASectionIsCalledTrueOnlyAfterItIs(t *testing.T) {
	s, c := begun(t, usual)
	isTrue := func() bool {
		sec, _ := s.sections.Get(types.SectionServices)
		return sec.Known && sec.StaleSince.IsZero()
	}
	var full error
	s.status.first = func() error {
		if isTrue() {
			t.Error("the section is called true, and the services are not told yet")
		}
		return full
	}
	step := func(when string, want bool) {
		t.Helper()
		c.looked = time.Time{}
		if err := c.Step(t.Context()); !errors.Is(err, full) {
			t.Errorf("%s: %v", when, err)
		}
		if isTrue() != want {
			t.Errorf("%s the section is called true: %v", when, !want)
		}
	}
	full = errors.New("no space left on device")
	step("while they cannot be written", false)
	full = nil
	step("when they can", true)
	s.status.first = nil
	s.stands(types.TableServices, false)
	step("when they cannot be listed", false)
}

func TestWhatASilentServerSaysIsToldInFewWords(t *testing.T) {
	tell(t, usual, func(s *story) {
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Reason: strings.Repeat("x", 1<<20)})
		time.Sleep(2 * time.Second)
		if sec := s.section(types.SectionServices); sec.StaleSince.IsZero() || sec.Why == "" || len(sec.Why) > 2*maxWhy {
			s.Errorf("it says %d bytes, stale since %v", len(sec.Why), sec.StaleSince)
		}
	})
}
