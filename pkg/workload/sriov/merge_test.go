package sriov

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/test/seeds"
)

func at(pf string, index int, address string) vf {
	return vf{PF: pf, Index: index, Vendor: "15b3", Device: "101e", Address: address, Bound: true}
}

func TestOneNodesConfigurationIsByteForByteWhatEVEsPluginReads(t *testing.T) {
	want := `{"resourceList":[{"resourceName":"eth5_vf1","resourcePrefix":"eve.network","selectors":{"vendors":["15b3"],"devices":["101e"],` +
		`"drivers":["vfio-pci"],"pfNames":["eth5"],"pciAddresses":["0000:3b:0a.1"]}}]}`
	if d := cmp.Diff(want, merge([]vf{at("eth5", 1, "0000:3b:0a.1")}, nil)); d != "" {
		t.Error(d)
	}
}

func TestTheMergeTellsFunctionsApartWhereNodesDiffer(t *testing.T) {
	const x, y = "0000:3b:0a.1", "0000:af:02.1"
	one := func(name, pf, address string) string {
		return fmt.Sprintf(`{"resourceName":%q,"resourcePrefix":"eve.network","selectors":{"vendors":["15b3"],"devices":["101e"],`+
			`"drivers":["vfio-pci"],"pfNames":[%q],"pciAddresses":[%q]}}`, name, pf, address)
	}
	for _, test := range []struct {
		name string
		vfs  []vf
		want string
	}{
		{"none", nil, ""},
		{"the same on all nodes is told once, as EVE does", []vf{at("eth5", 1, x), at("eth5", 1, x)}, one("eth5_vf1", "eth5", x)},
		{"sorted by port and number", []vf{at("eth5", 10, x), at("eth5", 9, y)}, one("eth5_vf9", "eth5", y) + "," + one("eth5_vf10", "eth5", x)},
		{
			"another port may have the address elsewhere",
			[]vf{at("eth4", 1, x), at("eth5", 1, x)},
			one("eth4_vf1", "eth4", x) + "," + one("eth5_vf1", "eth5", x),
		},
		{
			"another function of a port of that name has the address elsewhere",
			[]vf{at("eth5", 1, x), at("eth5", 3, x)},
			one("eth5_vf1", "eth5#1", x) + "," + one("eth5_vf3", "eth5#3", x),
		},
		{
			"one name in two places",
			[]vf{at("eth5", 1, y), at("eth5", 1, x)},
			`{"resourceName":"eth5_vf1","resourcePrefix":"eve.network","selectors":[` +
				`{"vendors":["15b3"],"devices":["101e"],"drivers":["vfio-pci"],"pfNames":["eth5#1"],"pciAddresses":["0000:3b:0a.1"]},` +
				`{"vendors":["15b3"],"devices":["101e"],"drivers":["vfio-pci"],"pfNames":["eth5#1"],"pciAddresses":["0000:af:02.1"]}]}`,
		},
	} {
		got := merge(test.vfs, nil)
		if d := cmp.Diff(`{"resourceList":[`+test.want+`]}`, got); d != "" {
			t.Errorf("%s: %s", test.name, d)
		}
		read := readConfig(got)
		if again := merge(read.vfs, read.others); again != got || read.broken {
			t.Errorf("%s: read back it is %s", test.name, again)
		}
	}
}

func TestResourcesThatOthersMadeAreKeptVerbatimBehindOurs(t *testing.T) {
	theirs := `{"resourceName":"nics","resourcePrefix":"intel.com","isRdma":true,"selectors":{"vendors":["8086"]}}`
	whole := `{"resourceName":"eth5_vfs","resourcePrefix":"eve.network","selectors":{"pfNames":["eth5"]}}`
	read := readConfig(`{"resourceList":[` + theirs + `,` + whole + `]}`)
	if len(read.vfs) != 0 || len(read.others) != 2 || read.broken {
		t.Fatalf("read %+v", read)
	}
	own := []vf{at("eth5", 1, "0000:3b:0a.1")}
	got := merge(own, read.others)
	if again := readConfig(got); len(again.others) != 2 || string(again.others[1].Selectors) != theirs || string(again.others[0].Selectors) != whole {
		t.Errorf("kept as %s", got)
	}
	if offers, err := started(got, devicesOf(own)); err != nil || !cmp.Equal(should(own), offers) {
		t.Errorf("offered are %v, %v", offers, err)
	}
}

func TestWhatWouldEndThePluginIsNotTakenOver(t *testing.T) {
	good := merge([]vf{at("eth5", 1, "0000:3b:0a.1")}, nil)
	resource := good[len(`{"resourceList":[`) : len(good)-2]
	for _, text := range []string{
		``, `null`, `{}`, `[]`, `{"resourceList":7}`, `{"resourceList":[` + resource, `{"resourceList":[` + resource + `,` + resource + `]}`,
		`{"resourceList":[` + resource + `,{"resourceName":"eth5.7_vf1","resourcePrefix":"eve.network","selectors":{}}]}`,
		`{"resourceList":[{"resourceName":"a","selectors":null},` + resource + `]}`, `{"resourceList":[{"resourceName":"a"}]}`,
		`{"resourceList":[7,null,"x"]}`, `{"resourceList":[{"resourceName":"a","deviceType":"fpga","selectors":{}}]}`,
	} {
		read := readConfig(text)
		if !read.broken {
			t.Errorf("%s is taken for good", text)
		}
		if _, err := started(merge(read.vfs, read.others), nil); err != nil {
			t.Errorf("of %s becomes what ends the plug-in: %v", text, err)
		}
	}
}

func FuzzTheMergeOfAnythingStartsThePlugin(f *testing.F) {
	f.Add(merge([]vf{at("eth5", 1, "0000:3b:0a.1"), at("eth5", 1, "0000:3b:0a.2")}, nil))
	f.Add(`{"resourceList":[{"resourceName":"nics","resourcePrefix":"intel.com","selectors":{"vendors":["8086"]}}]}`)
	own := []vf{at("eth5", 1, "0000:3b:0a.1"), at("eth5", 3, "0000:3b:0a.3")}
	f.Fuzz(func(t *testing.T, text string) {
		read := readConfig(text)
		var list resourceList
		got := merge(append(read.vfs, own...), read.others)
		if err := json.Unmarshal([]byte(got), &list); err != nil {
			t.Fatal(err)
		}
		if again := readConfig(got); again.broken {
			t.Errorf("%s becomes %s", text, got)
		}
	})
}

// cluster is the functions of some nodes whose ports have the same names and
// whose buses have the same addresses, in another order on each.
func cluster(r *rand.Rand, nodes int) [][]vf {
	var out [][]vf
	for range nodes {
		var vfs []vf
		for p, pf := range []string{"eth0", "eth1", "eth2", "enp3s0f0"}[r.IntN(3):] {
			kind := []string{"1520", "154c"}[r.IntN(2)]
			for index, slot := range r.Perm(6)[:r.IntN(5)] {
				if r.IntN(3) == 0 {
					continue
				}
				vfs = append(vfs, vf{
					PF: pf, Index: index, Vendor: "8086", Device: kind,
					Address: fmt.Sprintf("0000:%02x:02.%d", p, slot), Bound: r.IntN(5) > 0,
				})
			}
		}
		slices.SortFunc(vfs, compareVFs)
		out = append(out, vfs)
	}
	return out
}

func TestOnEveryNodeAResourceIsTheFunctionItIsNamedAfter(t *testing.T) {
	for seed := range seeds.Each(t, 500) {
		r := rand.New(rand.NewPCG(seed, 1))
		nodes := cluster(r, 1+r.IntN(4))
		config := merge(slices.Concat(nodes...), nil)
		for n, vfs := range nodes {
			offers, err := started(config, devicesOf(vfs))
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, config)
			}
			if d := cmp.Diff(should(vfs), offers); d != "" {
				t.Fatalf("seed %d, node %d: %s\n%s", seed, n, d, config)
			}
		}
		if read := readConfig(config); merge(read.vfs, read.others) != config {
			t.Fatalf("seed %d: read back it is another: %s", seed, config)
		}
	}
}
