package types

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestWhichPodsAreAnApplications(t *testing.T) {
	id := "9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34"
	app := func(mode VirtualizationMode, generation uint32) AppInstanceConfig {
		return AppInstanceConfig{
			UUIDandVersion: UUIDandVersion{UUID: uuid.MustParse(id)}, DisplayName: "web",
			FixedResources: VMConfig{VirtualizationMode: mode}, PurgeCmd: AppInstanceOpsCmd{Counter: generation},
		}
	}
	native, vm := app(VirtualizationNoHyper, 1), app(VirtualizationHVM, 1)
	owned := func(kind, name string) Pod { return Pod{Owner: Owner{Kind: kind, Name: name}} }
	for _, c := range []struct {
		name          string
		cfg           AppInstanceConfig
		pod           Pod
		owns, ownsAny bool
	}{
		{"by its replica set", native, owned(KindReplicaSet, "web-9f27b-1"), true, true},
		{"by its label", native, Pod{App: "web-9f27b-1"}, true, true},
		{"another generation", native, owned(KindReplicaSet, "web-9f27b-10"), false, true},
		{"another application with the same name", native, Pod{App: "web-11111-1"}, false, false},
		{"what only begins so", native, Pod{App: "web-9f27b-1x"}, false, false},
		{"an owner of another kind", native, owned("Job", "web-9f27b-1"), false, false},
		{"a pod without anything", native, Pod{}, false, false},
		{"a launcher by its label", vm, Pod{AppDomain: id + ".1.2", VMI: "web-9f27b-1abcde"}, true, true},
		{"a launcher whose machine has no name yet", vm, Pod{AppDomain: id + ".1.2"}, true, true},
		{"a launcher by its owner", vm, Pod{AppDomain: id + ".1.2", Owner: Owner{Kind: "VirtualMachineInstance", Name: "web-9f27b-1abcde"}}, true, true},
		{"a launcher of another generation", vm, Pod{AppDomain: id + ".1.2", VMI: "web-9f27b-10abcde"}, false, true},
		{"a launcher of another application", vm, Pod{AppDomain: "11111111-4e15-4a02-b3d9-60c5d8e1fa34.1.2"}, false, false},
		{"a native pod of a virtual machine's name", vm, Pod{App: "web-9f27b-1"}, false, false},
	} {
		if owns, ownsAny := c.cfg.Owns(c.pod), c.cfg.OwnsAny(c.pod); owns != c.owns || ownsAny != c.ownsAny {
			t.Errorf("%s: owns %v, any %v; want %v, %v", c.name, owns, ownsAny, c.owns, c.ownsAny)
		}
		if _, found := NewAppOwners(map[string]AppInstanceConfig{"": c.cfg}).Of(c.pod); found != c.ownsAny {
			t.Errorf("%s: found among all %v, want %v", c.name, found, c.ownsAny)
		}
	}
}

func TestTheOwnerAmongAllIsTheFirstThatOwns(t *testing.T) {
	configs, modes := map[string]AppInstanceConfig{}, []VirtualizationMode{VirtualizationNoHyper, VirtualizationHVM}
	var pods []Pod
	for i := range 40 {
		cfg := AppInstanceConfig{
			UUIDandVersion: UUIDandVersion{UUID: uuid.NewSHA1(uuid.Nil, []byte{byte(i / 3)})}, DisplayName: "App_" + strconv.Itoa(i%4),
			FixedResources: VMConfig{VirtualizationMode: modes[i%2]}, PurgeCmd: AppInstanceOpsCmd{Counter: uint32(i % 5)},
		}
		configs[strconv.Itoa(i)] = cfg
		other := strings.ToUpper(uuid.NewSHA1(uuid.Nil, []byte{byte(i / 2)}).String())
		for _, name := range []string{"", cfg.KubeName(), cfg.KubeName() + "x"} {
			for _, domain := range []string{"", other + ".1.2", "x"} {
				pods = append(pods, Pod{App: name, AppDomain: domain}, Pod{AppDomain: domain, Owner: Owner{Kind: KindReplicaSet, Name: name}},
					Pod{App: name, Owner: Owner{Kind: KindReplicaSet, Name: "app-0-" + other[:5] + "-1"}})
			}
		}
	}
	owners := NewAppOwners(configs)
	for _, p := range pods {
		var want AppInstanceConfig
		for _, key := range slices.Sorted(maps.Keys(configs)) {
			if configs[key].OwnsAny(p) {
				want = configs[key]
				break
			}
		}
		if got, _ := owners.Of(p); got.UUIDandVersion != want.UUIDandVersion || got.DisplayName != want.DisplayName || got.PurgeCmd != want.PurgeCmd {
			t.Errorf("%+v is of %s %s, want %s %s", p, got.UUIDandVersion.UUID, got.KubeName(), want.UUIDandVersion.UUID, want.KubeName())
		}
	}
}
