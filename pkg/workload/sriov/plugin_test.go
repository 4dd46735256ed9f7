package sriov

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// device is what a host has on its bus.
type device struct {
	pf                              string
	index                           int
	vendor, device, driver, address string
}

func deviceOf(v vf) device {
	d := device{pf: v.PF, index: v.Index, vendor: v.Vendor, device: v.Device, address: v.Address, driver: "iavf"}
	if v.Bound {
		d.driver = "vfio-pci"
	}
	return d
}

// started is what the device plug-in offers once it has read the configuration:
// addresses by resource. It follows the rules of the plug-in's release 3.7 and
// knows nothing of how the configuration comes about.
func started(config string, devices []device) (map[string][]string, error) {
	var list struct {
		ResourceList []struct {
			ResourceName, ResourcePrefix string
			Selectors                    json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(config), &list); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, r := range list.ResourceList {
		name := r.ResourcePrefix + "/" + r.ResourceName
		if !regexp.MustCompile(`^[a-zA-Z0-9_]+$`).MatchString(r.ResourceName) {
			return nil, fmt.Errorf("resource name %q", r.ResourceName)
		}
		if names[name] {
			return nil, fmt.Errorf("resource %s is given twice", name)
		}
		names[name] = true
	}
	offers, taken := map[string][]string{}, map[string]bool{}
	for _, r := range list.ResourceList {
		var forms []map[string][]string
		if json.Unmarshal(r.Selectors, &forms) != nil {
			forms = make([]map[string][]string, 1)
			if err := json.Unmarshal(r.Selectors, &forms[0]); err != nil {
				return nil, err
			}
		}
		for _, form := range forms {
			for _, d := range devices {
				if !taken[d.address] && picks(form, d) {
					taken[d.address] = true
					name := r.ResourcePrefix + "/" + r.ResourceName
					offers[name] = append(offers[name], d.address)
				}
			}
		}
	}
	return offers, nil
}

func picks(form map[string][]string, d device) bool {
	for key, is := range map[string]string{"vendors": d.vendor, "devices": d.device, "drivers": d.driver, "pciAddresses": d.address} {
		if list := form[key]; len(list) > 0 && !slices.Contains(list, is) {
			return false
		}
	}
	if len(form["pfNames"]) == 0 {
		return true
	}
	for _, item := range form["pfNames"] {
		pf, numbers, numbered := strings.Cut(item, "#")
		if strings.EqualFold(pf, d.pf) { // the first of that name counts
			return !numbered || slices.Contains(strings.Split(numbers, ","), strconv.Itoa(d.index))
		}
	}
	return false
}

// should is what a node with these functions has to offer.
func should(vfs []vf) map[string][]string {
	out := map[string][]string{}
	for _, v := range vfs {
		if v.Bound {
			out["eve.network/"+v.name()] = []string{v.Address}
		}
	}
	return out
}

func devicesOf(vfs []vf) (out []device) {
	for _, v := range vfs {
		out = append(out, deviceOf(v))
	}
	return out
}
