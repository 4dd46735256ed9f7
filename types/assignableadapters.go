package types

// IoType says what kind of device an adapter is; EVE has more of them.
type IoType uint8

// The kinds zedkube tells apart.
const (
	IoNetEth   IoType = 1  // Ethernet port
	IoNetEthVF IoType = 12 // virtual function of an SR-IOV port
)

// String returns EVE's name of the kind.
func (t IoType) String() string {
	return enumName("IoType", []string{IoNetEth: "IoNetEth", IoNetEthVF: "IoNetEthVF"}, t)
}

// VfInfo places a virtual function.
type VfInfo struct {
	Index   uint8
	PFIface string // Linux name of the port it belongs to, or ""
}

// IoBundle is the part of an adapter that zedkube reads. Only bundles of type
// IoNetEthVF with a PCI address count, and the number of the function is in
// Phylabel (docs/wire.md, "AssignableAdapters").
type IoBundle struct {
	Type         IoType
	Phylabel     string // <port>vf<number>
	Logicallabel string
	PciLong      string // PCI address, or ""
	VfParams     VfInfo
}

// AssignableAdapters is domainmgr's word on the devices that applications may
// get, under key "global". Fields zedkube does not read are left out.
type AssignableAdapters struct {
	Initialized  bool
	IoBundleList []IoBundle
}
