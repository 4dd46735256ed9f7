package sriov

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// resourcePrefix is that of all resources of EVE.
const resourcePrefix = "eve.network"

// resourceName is what the plug-in takes for one.
var resourceName = regexp.MustCompile(`^[a-zA-Z0-9_]+$`)

// selectors pick the devices of a resource: those that meet every list by one
// of its members.
type selectors struct {
	Vendors      []string `json:"vendors,omitempty"`
	Devices      []string `json:"devices,omitempty"`
	Drivers      []string `json:"drivers,omitempty"`
	PFNames      []string `json:"pfNames,omitempty"`
	PCIAddresses []string `json:"pciAddresses,omitempty"`
}

type resource struct {
	Name      string          `json:"resourceName"`
	Prefix    string          `json:"resourcePrefix"`
	Selectors json.RawMessage `json:"selectors"`
}

type resourceList struct {
	Resources []json.RawMessage `json:"resourceList"`
}

// config is the plug-in's configuration, read.
type config struct {
	vfs    []vf       // of which its resources are made; never Bound
	others []resource // that are made of something else; Selectors is the whole resource
	broken bool       // the plug-in would not start with it, or it is nothing at all
}

func readConfig(text string) config {
	var list resourceList
	if json.Unmarshal([]byte(text), &list) != nil || list.Resources == nil {
		return config{broken: true}
	}
	var c config
	names := map[string]bool{}
	for _, raw := range list.Resources {
		r, ok := usable(raw)
		full := r.Prefix + "/" + r.Name
		if !ok || names[full] {
			c.broken = true
			continue
		}
		names[full] = true
		if vfs, ok := functions(raw); ok {
			c.vfs = append(c.vfs, vfs...)
			continue
		}
		c.others = append(c.others, resource{Name: r.Name, Prefix: r.Prefix, Selectors: raw})
	}
	return c
}

// usable reports that the plug-in does not end over the resource.
func usable(raw json.RawMessage) (resource, bool) {
	var r struct {
		resource
		DeviceType string `json:"deviceType"`
		// Of these the plug-in wants the type only.
		ExcludeTopology bool                         `json:"excludeTopology"`
		AdditionalInfo  map[string]map[string]string `json:"additionalInfo"`
		SelectorObjs    []any
	}
	if json.Unmarshal(raw, &r) != nil || !resourceName.MatchString(r.Name) || len(r.Selectors) == 0 || string(r.Selectors) == "null" {
		return resource{}, false
	}
	return r.resource, slices.Contains([]string{"", "netDevice", "accelerator", "auxNetDevice"}, r.DeviceType)
}

// functions are what a resource in the form of EVE's, or of ours, is made of.
func functions(raw json.RawMessage) ([]vf, bool) {
	var r resource
	if !strict(raw, &r) || r.Prefix != resourcePrefix {
		return nil, false
	}
	var forms []selectors
	if !strict(r.Selectors, &forms) {
		forms = make([]selectors, 1)
		if !strict(r.Selectors, &forms[0]) {
			return nil, false
		}
	}
	var vfs []vf
	for _, s := range forms {
		v, ok := s.function(r.Name)
		if !ok {
			return nil, false
		}
		vfs = append(vfs, v)
	}
	return vfs, len(vfs) > 0
}

// function is the one function that the selectors are for.
func (s selectors) function(name string) (vf, bool) {
	for _, list := range [][]string{s.Vendors, s.Devices, s.Drivers, s.PFNames, s.PCIAddresses} {
		if len(list) != 1 {
			return vf{}, false
		}
	}
	pf, _, _ := strings.Cut(s.PFNames[0], "#")
	index, err := strconv.Atoi(strings.TrimPrefix(name, pf+"_vf"))
	v := vf{PF: pf, Index: index, Vendor: s.Vendors[0], Device: s.Devices[0], Address: s.PCIAddresses[0]}
	ok := err == nil && v.name() == name && v.valid() && s.Drivers[0] == vfioDriver &&
		(s.PFNames[0] == pf || s.PFNames[0] == v.indexed())
	return v, ok
}

// indexed is the name of the port with the function's number, as the plug-in
// takes it.
func (v vf) indexed() string { return fmt.Sprintf("%s#%d", v.PF, v.Index) }

// strict decodes what has no fields but these.
func strict(data []byte, into any) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(into) != nil {
		return false
	}
	_, err := d.Token()
	return err == io.EOF
}

// merge is the configuration that is right on every node that has some of these
// functions: each resource once, and none that takes another node's device.
//
// A function of which no other has the PCI address on a port of that name is
// told by port and address, as EVE does. Else the number is told, too, which no
// two functions of a port share: so on each node a resource finds the function
// that it is named after, or nothing. Where nodes have a function of one name in
// different places, the resource has one selector for each place.
func merge(vfs []vf, others []resource) string {
	all := make([]vf, 0, len(vfs))
	for _, v := range vfs {
		all = append(all, v.place())
	}
	slices.SortFunc(all, compareVFs)
	all = slices.Compact(all)
	clashes := clashing(all)
	list := resourceList{Resources: []json.RawMessage{}}
	taken := map[string]bool{}
	for left := all; len(left) > 0; {
		n := 1
		for n < len(left) && left[n].name() == left[0].name() {
			n++
		}
		list.Resources = append(list.Resources, encode(resourceOf(left[:n], clashes)))
		taken[resourcePrefix+"/"+left[0].name()] = true
		left = left[n:]
	}
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b resource) int {
		return cmp.Or(strings.Compare(a.Prefix, b.Prefix), strings.Compare(a.Name, b.Name))
	})
	for _, r := range others { // last, so that they do not take a device that is named above
		if full := r.Prefix + "/" + r.Name; !taken[full] {
			taken[full] = true
			list.Resources = append(list.Resources, r.Selectors)
		}
	}
	return string(encode(list))
}

// functionAddress is where a selector without the function's number finds a device.
type functionAddress struct{ pf, address string }

func (v vf) functionAddress() functionAddress { return functionAddress{v.PF, v.Address} }

// clashing are the spots at which more than one resource finds a device.
func clashing(vfs []vf) map[functionAddress]bool {
	first, clashes := map[functionAddress]string{}, map[functionAddress]bool{}
	for _, v := range vfs {
		if name, ok := first[v.functionAddress()]; ok && name != v.name() {
			clashes[v.functionAddress()] = true
		}
		first[v.functionAddress()] = v.name()
	}
	return clashes
}

func resourceOf(vfs []vf, clashes map[functionAddress]bool) resource {
	var forms []selectors
	for _, v := range vfs {
		pf := v.PF
		if len(vfs) > 1 || clashes[v.functionAddress()] {
			pf = v.indexed()
		}
		forms = append(forms, selectors{
			Vendors: []string{v.Vendor}, Devices: []string{v.Device}, Drivers: []string{vfioDriver},
			PFNames: []string{pf}, PCIAddresses: []string{v.Address},
		})
	}
	r := resource{Name: vfs[0].name(), Prefix: resourcePrefix}
	if len(forms) == 1 {
		r.Selectors = encode(forms[0])
	} else {
		r.Selectors = encode(forms)
	}
	return r
}

func encode(v any) json.RawMessage {
	data, _ := json.Marshal(v) // strings, numbers and times of our own
	return data
}

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
	// Boot is the boot ID in which it was Bound. A reboot ends that, and neither the
	// pod of a plug-in nor its mark: the plug-in may have started before the function
	// was bound again.
	Boot string `json:"boot,omitempty"`
}

// name is the resource's, without its prefix.
func (v vf) name() string { return fmt.Sprintf("%s_vf%d", v.PF, v.Index) }

// place is the function without what its driver is.
func (v vf) place() vf { v.Bound, v.Boot = false, ""; return v }

func (v vf) valid() bool {
	return pfName.MatchString(v.PF) && v.Index >= 0 && v.Index <= maxIndex &&
		pciID.MatchString(v.Vendor) && pciID.MatchString(v.Device) && pciAddress.MatchString(v.Address)
}

func compareVFs(a, b vf) int {
	return cmp.Or(strings.Compare(a.PF, b.PF), cmp.Compare(a.Index, b.Index),
		strings.Compare(a.Address, b.Address), strings.Compare(a.Vendor, b.Vendor), strings.Compare(a.Device, b.Device))
}

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
	return string(encode(p))
}

// merged tells since when the configuration has had all that the parts have, as
// far as anyone has noticed that it had not. A plug-in that is older may have
// started with less.
type merged struct {
	Since time.Time `json:"since"`
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

// fingerprint is of what the plug-in of that node can offer, and since which boot.
// A plug-in that has started with the same needs no restart.
func (p part) fingerprint() string {
	var lines []string
	for _, v := range p.VFs {
		if v.Bound {
			line := []string{v.name(), v.Vendor, v.Device, v.Address}
			if v.Boot != "" { // else an earlier release has written it, and its mark counts
				line = append(line, v.Boot)
			}
			lines = append(lines, strings.Join(line, " "))
		}
	}
	if lines == nil {
		return nothing
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:8])
}
