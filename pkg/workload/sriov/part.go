package sriov

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The keys of the ConfigMap: the plug-in reads the one, and each node keeps its
// part under one of its own (docs/wire.md, "SR-IOV").
const (
	configKey  = "config.json"
	mergedKey  = "merged.json"
	partPrefix = "node."
	partSuffix = ".json"
)

// What the plug-in and the paths of sysfs take. A resource whose name has any
// other letter makes every plug-in of the cluster end.
var (
	pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
	pfName     = regexp.MustCompile(`^[A-Za-z0-9_]{1,15}$`)
	pciID      = regexp.MustCompile(`^[0-9a-f]{4}$`)
)

// vf is a virtual function of a port, by which the plug-in finds it.
type vf struct {
	PF      string `json:"pf"`    // Linux name of the port
	Index   int    `json:"index"` // among the port's functions
	Vendor  string `json:"vendor"`
	Device  string `json:"device"`
	Address string `json:"address"`         // on the PCI bus
	Bound   bool   `json:"bound,omitempty"` // to vfio-pci: else the plug-in does not offer it
}

// name is the resource's, without its prefix.
func (v vf) name() string { return fmt.Sprintf("%s_vf%d", v.PF, v.Index) }

// place is the function without what its driver is.
func (v vf) place() vf { v.Bound = false; return v }

func (v vf) valid() bool {
	return pfName.MatchString(v.PF) && v.Index >= 0 && v.Index <= maxIndex &&
		pciID.MatchString(v.Vendor) && pciID.MatchString(v.Device) && pciAddress.MatchString(v.Address)
}

func compareVFs(a, b vf) int {
	return cmp.Or(strings.Compare(a.PF, b.PF), cmp.Compare(a.Index, b.Index),
		strings.Compare(a.Address, b.Address), strings.Compare(a.Vendor, b.Vendor), strings.Compare(a.Device, b.Device))
}

// part is what one node has.
type part struct {
	Since time.Time `json:"since"` // when it became so, by that node's clock
	VFs   []vf      `json:"vfs"`   // sorted, each name once
}

func partKey(node string) string { return partPrefix + node + partSuffix }

// parts are those that can be read, by node. One that cannot is as good as none.
func parts(data map[string]string) map[string]part {
	all := map[string]part{}
	for key, text := range data {
		rest, begins := strings.CutPrefix(key, partPrefix)
		node, ends := strings.CutSuffix(rest, partSuffix)
		if p, ok := readPart(text); ok && begins && ends {
			all[node] = p
		}
	}
	return all
}

// readPart believes all or nothing.
func readPart(text string) (part, bool) {
	var p part
	if json.Unmarshal([]byte(text), &p) != nil || p.VFs == nil {
		return part{}, false
	}
	names := map[string]bool{}
	for _, v := range p.VFs {
		if !v.valid() || names[v.name()] {
			return part{}, false
		}
		names[v.name()] = true
	}
	slices.SortFunc(p.VFs, compareVFs)
	return p, true
}

func (p part) text() string {
	if p.VFs == nil {
		p.VFs = []vf{}
	}
	data, _ := json.Marshal(p) // strings, numbers and a time of our own
	return string(data)
}

// merged tells since when the configuration has had all that the parts have, as
// far as anyone has noticed that it had not. A plug-in that is older may have
// started with less.
type merged struct {
	Since time.Time `json:"since"`
}

func (m merged) text() string {
	data, _ := json.Marshal(m) // a time of our own
	return string(data)
}

func readMerged(text string) time.Time {
	var m merged
	if json.Unmarshal([]byte(text), &m) != nil {
		return time.Time{}
	}
	return m.Since
}

// nothing is the fingerprint of a part of which no function can be offered.
const nothing = "none"

// fingerprint is of what the plug-in of that node can offer. A plug-in that has
// started with the same needs no restart.
func (p part) fingerprint() string {
	var lines []string
	for _, v := range p.VFs {
		if v.Bound {
			lines = append(lines, strings.Join([]string{v.name(), v.Vendor, v.Device, v.Address}, " "))
		}
	}
	if lines == nil {
		return nothing
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:8])
}
