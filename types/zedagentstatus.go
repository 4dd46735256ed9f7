package types

// ConfigGetStatus is how the last fetch of the configuration went.
type ConfigGetStatus uint8

// The fetch results; only success and a saved copy make a node eligible to
// report for the cluster.
const (
	ConfigGetUnset ConfigGetStatus = iota
	ConfigGetSuccess
	ConfigGetFail
	ConfigGetTemporaryFail
	ConfigGetReadSaved
)

// String returns EVE's name of the result.
func (s ConfigGetStatus) String() string {
	return enumName("ConfigGetStatus", []string{"Unset", "Success", "Fail", "TemporaryFail", "ReadSaved"}, s)
}

// ZedAgentKey is the key of ZedAgentStatus.
const ZedAgentKey = "zedagent"

// ZedAgentStatus is zedagent's word on its own state, under ZedAgentKey.
// Fields zedkube does not read are left out.
type ZedAgentStatus struct {
	ConfigGetStatus ConfigGetStatus
}
