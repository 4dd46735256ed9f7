package services

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// huge is a cluster with thousands of services and ingresses, few of which nim
// makes rules of that it would not make of the others.
func huge() facts {
	f := whole(deployed(types.KubeVIP{CIDR: "172.16.0.0/12", Interface: "eth3"}))
	for i := range 3000 {
		s := service("shop", fmt.Sprintf("inside-%04d", i), clusterIP, 80)
		f.services.rows[s.Key()] = s
		in := types.Ingress{Namespace: "shop", Name: fmt.Sprintf("path-%04d", i), Rules: []types.IngressPath{{Host: "<panel>", Path: "/", Service: s.Name, Port: 80}}}
		f.ingresses.rows[in.Key()] = in
	}
	for i := range 40 {
		s := balanced(fmt.Sprintf("outside-%04d", i), fmt.Sprintf("172.28.40.%d", i+1))
		f.services.rows[s.Key()] = s
	}
	tls := types.Ingress{Namespace: "shop", Name: "the-only-tls", TLSHosts: []string{"x"}, Rules: []types.IngressPath{{Host: "x", Service: "inside-0001"}}}
	ace := service("zoo", "n", nodePort, 1, func(s *types.Service) { s.Ports[0].NodePort = 30001 })
	f.ingresses.rows[tls.Key()], f.services.rows[ace.Key()] = tls, ace
	return f
}

func TestWhatNimMakesRulesOfStaysFirst(t *testing.T) {
	a := decide(huge())
	v := a.publish
	needed := 0
	for _, s := range v.UserService {
		if s.Type != clusterIP {
			needed++
		}
	}
	protocols := map[string]bool{}
	for _, i := range v.UserIngress {
		protocols[i.Protocol] = true
	}
	if needed != 41 || len(protocols) != 2 || len(v.LBPoolStatus.AllocatedIPs) != 40 {
		t.Errorf("%d services of use, ingresses of %v, %d addresses stay", needed, protocols, len(v.LBPoolStatus.AllocatedIPs))
	}
	if n := size(*v); n > pubsub.MaxMessage || n < pubsub.MaxMessage-500 {
		t.Errorf("%d bytes", n)
	}
	want := cut{services: 3041 - len(v.UserService), ingresses: 3001 - len(v.UserIngress)}
	if a.cut != want || !slices.IsSortedFunc(v.UserService, func(a, b types.KubeUserService) int { return strings.Compare(a.Namespace+a.Name, b.Namespace+b.Name) }) {
		t.Errorf("the cut is %+v, want %+v, or they are out of order", a.cut, want)
	}
}

func TestTheSameEntriesStayEveryTime(t *testing.T) {
	f := huge()
	first := decide(f)
	f.last = *first.publish
	if d := cmp.Diff(first.publish, decide(f).publish); d != "" {
		t.Error("want -, got +\n" + d)
	}
}

func TestAnEntryThatIsTooLargeKeepsNoOtherOut(t *testing.T) {
	f := whole(with(service("shop", "web", nodePort, 80)), routed(
		types.Ingress{Namespace: "a", Name: "endless", Rules: []types.IngressPath{{Path: "/" + strings.Repeat("x", 100_000), Service: "web"}}},
		types.Ingress{Namespace: "b", Name: "front", Rules: []types.IngressPath{{Path: "/", Service: "web"}}},
	))
	a := decide(f)
	if len(a.publish.UserService) != 1 || len(a.publish.UserIngress) != 1 || a.publish.UserIngress[0].Namespace != "b" || a.cut != (cut{ingresses: 1}) {
		t.Errorf("told are %+v, left out %+v", a.publish, a.cut)
	}
}

func TestNoValueIsEverTooLarge(t *testing.T) {
	text := func(r *rand.Rand) string {
		return strings.Repeat([]string{"a", "<", "\x00", "é"}[r.IntN(4)], 1<<r.IntN(12))
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		f := whole(deployed(types.KubeVIP{CIDR: text(r), Interface: text(r)}))
		f.cluster.LBConfigError.Error = text(r)
		for i := range r.IntN(300) {
			s := balanced(fmt.Sprint(i, text(r)), fmt.Sprintf("172.28.%d.%d", r.IntN(9), r.IntN(256)))
			s.Namespace = text(r)
			f.services.rows[s.Key()] = s
			in := types.Ingress{Namespace: text(r), Name: fmt.Sprint(i), Addresses: []string{text(r)}, Rules: []types.IngressPath{{Host: text(r), Path: text(r), Service: text(r)}}}
			f.ingresses.rows[in.Key()] = in
		}
		if n := size(*decide(f).publish); n > pubsub.MaxMessage {
			t.Errorf("seed %d: %d bytes", seed, n)
		}
	}
}

func TestACutValueIsAcceptedByTheRealTopic(t *testing.T) {
	log, _ := logtest.NewNullLogger()
	bus := pubsub.NewBus(t.TempDir(), log)
	topic := pubsub.NewPublication[types.KubeUserServices](bus, "zedkube")
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); bus.Run(ctx) }()
	defer func() { cancel(); <-done }()
	if err := topic.Publish(types.Global, *decide(huge()).publish); err != nil {
		t.Error(err)
	}
	if err := topic.Publish(types.Global, types.KubeUserServices{UserService: services(huge().services.rows)}); err == nil {
		t.Error("a value that was not cut is accepted: the bound is too careful")
	}
}

func TestAThousandServicesAreLookedThroughInNoTime(t *testing.T) {
	f := whole(deployed(types.KubeVIP{CIDR: "172.16.0.0/12"}))
	for i := range 1000 {
		s := service("shop", fmt.Sprint("s", i), nodePort, 80)
		f.services.rows[s.Key()] = s
	}
	took := time.Hour
	for range 5 { // the processor may be someone else's meanwhile
		begin := time.Now()
		decide(f)
		took = min(took, time.Since(begin))
	}
	t.Log(took)
	if took > 200*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}
