package services

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func configured(f *facts) {
	f.cluster = types.EdgeNodeClusterStatus{
		LBInterfaces: []types.LBInterface{{Interface: "eth1"}, {Interface: "eth2"}}, LBIPPrefixes: []string{"172.28.40.64/28", "172.28.41.0/24"},
	}
}

func wrong(f *facts) {
	f.cluster.LBConfigError = types.ErrorDescription{Error: "bad prefix", ErrorTime: then, ErrorSeverity: types.ErrorSeverityError}
}

func balanced(name, ip string) types.Service {
	return service("shop", name, loadBalancer, 80, asks(ip))
}

func TestThePoolIsWhatIsDeployedAndElseWhatIsConfiguredWrong(t *testing.T) {
	vip := types.KubeVIP{CIDR: "172.28.40.64/28, 172.28.41.0/24", Interface: "eth3"}
	problem := types.ErrorDescription{Error: "bad prefix", ErrorTime: then, ErrorSeverity: types.ErrorSeverityError}
	rows := map[string]struct {
		f    facts
		want *types.LBPoolStatus
	}{
		"there is none where nothing is deployed":                {f: whole()},
		"none either where it is only configured":                {f: whole(configured)},
		"all prefixes of what is deployed are told":              {f: whole(deployed(vip), configured), want: &types.LBPoolStatus{Interface: "eth3", IPPrefix: "172.28.40.64/28,172.28.41.0/24"}},
		"what is deployed leaves out is told as configured":      {f: whole(deployed(types.KubeVIP{}), configured), want: &types.LBPoolStatus{Interface: "eth1,eth2", IPPrefix: "172.28.40.64/28,172.28.41.0/24"}},
		"an error of the configuration is told without the pool": {f: whole(configured, wrong), want: &types.LBPoolStatus{Interface: "eth1,eth2", IPPrefix: "172.28.40.64/28,172.28.41.0/24", Error: problem}},
		"and with it": {f: whole(deployed(vip), wrong), want: &types.LBPoolStatus{Interface: "eth3", IPPrefix: "172.28.40.64/28,172.28.41.0/24", Error: problem}},
		"the addresses of services are told once, in order": {
			f:    whole(deployed(vip), with(balanced("c", "172.28.40.70"), balanced("b", "172.28.40.7"), balanced("a", "172.28.40.70"), balanced("d", "0.0.0.0"))),
			want: &types.LBPoolStatus{Interface: "eth3", IPPrefix: "172.28.40.64/28,172.28.41.0/24", AllocatedIPs: []string{"172.28.40.7", "172.28.40.70"}},
		},
		"a prefix that is none is an error of its own": {
			f: whole(deployed(types.KubeVIP{CIDR: "172.28.40.64/28,eth0", Interface: "eth3"})),
			want: &types.LBPoolStatus{Interface: "eth3", IPPrefix: "172.28.40.64/28,eth0", Error: types.ErrorDescription{
				Error: `configuration of kube-vip: "eth0" is not a CIDR`, ErrorTime: then, ErrorSeverity: types.ErrorSeverityError,
			}},
		},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(r.want, decide(r.f).publish.LBPoolStatus); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}

func TestAnErrorOfTheConfigurationGoesWhenItIsGone(t *testing.T) {
	f := whole(wrong, deployed(types.KubeVIP{Interface: "eth3"}))
	f.last = *decide(f).publish
	f.cluster.LBConfigError.Error = "another"
	if got := decide(f).publish.LBPoolStatus.Error.Error; got != "another" {
		t.Errorf("the error is %q", got)
	}
	f.cluster = types.EdgeNodeClusterStatus{}
	if got := decide(f).publish.LBPoolStatus.Error; got.Error != "" {
		t.Errorf("the error is %+v", got)
	}
}

func TestEndlessTextsOfThePoolAreCut(t *testing.T) {
	f := whole(deployed(types.KubeVIP{CIDR: strings.Repeat("172.28.40.64/28,", 100_000), Interface: strings.Repeat("x", 1_000_000)}), func(f *facts) {
		f.cluster.LBConfigError.Error = strings.Repeat("<", 100_000)
	})
	v := decide(f).publish
	if n := size(*v); n > pubsub.MaxMessage || v.LBPoolStatus.IPPrefix == "" || strings.HasSuffix(v.LBPoolStatus.IPPrefix, ",") {
		t.Errorf("%d bytes, prefixes %.50s", n, v.LBPoolStatus.IPPrefix)
	}
	if again := decide(f).publish; !cmp.Equal(v, again) {
		t.Error("cut otherwise the next time")
	}
}

func TestAddressesThatNobodyAnnouncesAreAnError(t *testing.T) {
	vip := func(cidr string) func(*facts) { return deployed(types.KubeVIP{CIDR: cidr}) }
	unseen := func(f *facts) { f.vip.stale.since = then }
	erring := func(text string) func(*facts) {
		return func(f *facts) {
			f.last.ServiceError = types.ErrorDescription{Error: text, ErrorTime: then.Add(-time.Hour), ErrorSeverity: types.ErrorSeverityWarning}
		}
	}
	in := with(balanced("a", "172.28.40.66"))
	rows := map[string]struct {
		f    facts
		want string
	}{
		"no load balancer, no error":                        {f: whole()},
		"kube-vip is gone and addresses are left":           {f: whole(in), want: errOrphans},
		"they are inside the prefix":                        {f: whole(in, vip("172.28.40.64/28"))},
		"they are inside one of the prefixes":               {f: whole(in, vip("10.1.1.0/24,172.28.40.64/28"))},
		"one is outside all prefixes":                       {f: whole(with(balanced("a", "172.28.40.66"), balanced("b", "172.28.40.90")), vip("10.1.1.0/24,172.28.40.64/28")), want: errOutside},
		"one that asks for any address is nowhere":          {f: whole(with(balanced("a", "0.0.0.0")), vip("172.28.40.64/28"))},
		"without prefixes nobody can tell":                  {f: whole(in, vip(""))},
		"with one that cannot be read nobody can tell":      {f: whole(in, vip("10.1.1.0/24,x"))},
		"none begins while kube-vip is not in view":         {f: whole(in, unseen)},
		"none begins while services are not in view":        {f: whole(in, func(f *facts) { f.services.stale.since = then })},
		"one stays while kube-vip is not in view":           {f: whole(in, unseen, erring(errOrphans)), want: errOrphans},
		"one ends though kube-vip is not in view":           {f: whole(unseen, erring(errOrphans))},
		"one of a former run stays until kube-vip is known": {f: whole(func(f *facts) { f.vip.known = false }, erring(errOrphans)), want: errOrphans},
		"none begins before kube-vip is known":              {f: whole(in, func(f *facts) { f.vip.known = false })},
		"one becomes the other":                             {f: whole(in, vip("10.1.1.0/24"), erring(errOrphans)), want: errOutside},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			got := decide(r.f).publish.ServiceError
			want := types.ErrorDescription{}
			if r.want != "" {
				want = types.ErrorDescription{Error: r.want, ErrorTime: then, ErrorSeverity: types.ErrorSeverityWarning}
			}
			if r.want == r.f.last.ServiceError.Error {
				want = r.f.last.ServiceError
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error("want -, got +\n" + d)
			}
		})
	}
}
