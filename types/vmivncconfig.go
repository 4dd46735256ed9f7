package types

// VmiVNCConfig is the file that asks the kube container for a console proxy,
// vmiVNC.run; it is no topic (docs/wire.md, "Console file").
type VmiVNCConfig struct {
	VMIName   string `json:"VMIName"`
	VNCPort   uint32 `json:"VNCPort"`
	AppUUID   string `json:"AppUUID,omitempty"`   // whose console it is
	CallerPID int    `json:"CallerPID,omitempty"` // the edgeview process that wrote the file, 0 in ours
}
