package sriov

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

const (
	vfioDriver = "vfio-pci"
	// maxIndex is the last function that a port can have.
	maxIndex = 1<<16 - 1
)

// label is domainmgr's name of a function: the port's, and the number.
var label = regexp.MustCompile(`^(.+)vf([0-9]{1,5})$`)

type scanned struct {
	vfs      []vf             // sorted, each name and each address once
	unread   []string         // addresses of which sysfs shows nothing, or not enough
	bound    []string         // addresses of those that were bound just now
	unbound  map[string]error // addresses of those that were to be, and why they are not
	problems []string         // a sentence each, sorted
}

// sysfs is the folder where the kernel shows its devices.
type sysfs string

// scan reads what sysfs shows of the functions, and binds to vfio-pci those that
// no driver has. One that another driver has may be in use by the host and is
// left to it.
func (s sysfs) scan(bundles []types.IoBundle) scanned {
	var out scanned
	names, addresses := map[string]bool{}, map[string]bool{}
	for _, b := range bundles {
		v, err := s.function(b)
		if err == nil && (names[v.name()] || addresses[v.Address]) {
			err = errors.New("its name or address is also used by another function")
		}
		if err == nil {
			v.Bound, err = s.bound(v.Address, &out)
			names[v.name()], addresses[v.Address] = true, true
			out.vfs = append(out.vfs, v)
		} else if _, unread := errors.AsType[*fs.PathError](err); unread { // or it is not there yet; else it is invalid
			out.unread = append(out.unread, b.PciLong)
		}
		if err != nil {
			out.problems = append(out.problems, fmt.Sprintf("%q at %q: %v", b.Phylabel, b.PciLong, err))
		}
	}
	slices.SortFunc(out.vfs, compareVFs)
	slices.Sort(out.problems)
	return out
}

func (s sysfs) function(b types.IoBundle) (vf, error) {
	// Before anything becomes part of a path.
	if !pciAddress.MatchString(b.PciLong) {
		return vf{}, errors.New("this is not a PCI address")
	}
	parts := label.FindStringSubmatch(b.Phylabel)
	if parts == nil {
		return vf{}, errors.New("its label does not end in vf and a number")
	}
	index, err := strconv.Atoi(parts[2])
	if err != nil || index > maxIndex {
		return vf{}, errors.New("the number in its label is too large for a function")
	}
	pf, err := s.link(b.PciLong, "physfn")
	if err != nil {
		return vf{}, err
	}
	v := vf{PF: s.portName(b, parts[1]), Index: index, Address: b.PciLong}
	if !pfName.MatchString(v.PF) {
		return vf{}, fmt.Errorf("the device plug-in accepts no resource named after port %q", v.PF)
	}
	at, err := s.link(pf, "virtfn"+strconv.Itoa(index))
	if err != nil {
		return vf{}, err
	}
	if at != b.PciLong {
		return vf{}, fmt.Errorf("function %d of the port is at %s", index, at)
	}
	first, err := s.link(pf, "virtfn0")
	if err != nil {
		return vf{}, err
	}
	if v.Vendor, err = s.id(first, "vendor"); err == nil {
		v.Device, err = s.id(first, "device")
	}
	return v, err
}

func (s sysfs) portName(b types.IoBundle, labelled string) string {
	if b.VfParams.PFIface != "" {
		return b.VfParams.PFIface
	}
	entries, err := os.ReadDir(s.device(b.PciLong, "physfn", "net"))
	if err != nil || len(entries) == 0 {
		return labelled
	}
	return entries[0].Name() // sorted
}

// bound reports that vfio-pci has the device, after it was given to it if need be.
func (s sysfs) bound(address string, out *scanned) (bool, error) {
	switch driver, err := s.driver(address); {
	case err != nil:
		return false, err
	case driver == vfioDriver:
		return true, nil
	case driver != "":
		return false, fmt.Errorf("it is bound to driver %s", driver)
	}
	if err := s.bind(address); err != nil {
		if out.unbound == nil {
			out.unbound = map[string]error{}
		}
		out.unbound[address] = err
		return false, err
	}
	out.bound = append(out.bound, address)
	return true, nil
}

func (s sysfs) bind(address string) error {
	err := write(s.device(address, "driver_override"), vfioDriver)
	if err == nil {
		err = write(filepath.Join(string(s), "bus/pci/drivers_probe"), address)
	}
	if err != nil {
		return fmt.Errorf("bind it to %s: %w", vfioDriver, err)
	}
	// The probe succeeds whether a driver takes the device or not.
	driver, err := s.driver(address)
	if err == nil && driver != vfioDriver {
		err = fmt.Errorf("%s does not accept it", vfioDriver)
	}
	return err
}

// driver is the name of the device's driver, "" for none.
func (s sysfs) driver(address string) (string, error) {
	target, err := os.Readlink(s.device(address, "driver"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return filepath.Base(target), err
}

// link is the address of the device that a link of another one leads to.
func (s sysfs) link(address, name string) (string, error) {
	target, err := os.Readlink(s.device(address, name))
	if err != nil {
		return "", err
	}
	if target = filepath.Base(target); !pciAddress.MatchString(target) {
		return "", fmt.Errorf("%s of %s points to %q", name, address, target)
	}
	return target, nil
}

// id is the vendor's or the device's number.
func (s sysfs) id(address, name string) (string, error) {
	data, err := safefile.Read(s.device(address, name), safefile.Small)
	if err != nil {
		return "", err
	}
	id := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(string(data))), "0x")
	if !pciID.MatchString(id) {
		return "", fmt.Errorf("%s of %s is %q", name, address, id)
	}
	return id, nil
}

func (s sysfs) device(address string, names ...string) string {
	return filepath.Join(append([]string{string(s), "bus/pci/devices", address}, names...)...)
}

// write never makes a file.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return failpoint.Do("write to", path, func() error {
		_, err := f.WriteString(text)
		return errors.Join(err, f.Close())
	})
}
