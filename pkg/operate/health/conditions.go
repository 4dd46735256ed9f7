package health

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// conditionRules tell of conditions that are False, but those that other rules
// use for what they find.
func conditionRules() []rule {
	of := func(name string, severity types.Severity, what, remedy string, states ...types.NodeStateType) rule {
		return rule{name, anchorOutside, func(o seen, tell func(types.Finding)) {
			for _, t := range states {
				c, ok := o.Conditions.Of(t)
				if !ok || c.Status != types.ConditionFalse || !o.fresh() {
					continue
				}
				f := types.Finding{Severity: severity, Evidence: what + because(cmp.Or(c.Message, c.Reason)), Remedy: remedy}
				if c.ExpiresAt.After(o.ReadAt) {
					f.Severity = types.SeverityWarn
				}
				if t == types.StateCACertificate {
					f.Remedy = renewCA
				}
				tell(f.Of(string(t), c.Since))
			}
		}}
	}
	return []rule{
		of("CertificateEnds", types.SeverityBad, "A certificate expires soon or has expired", renewCertificate,
			types.StateClientCertificate, types.StateCACertificate, types.StateServerCertificate),
		of("ClockOff", types.SeverityBad, "The clock of this device differs from the cluster's", "Look at the device's NTP servers: Leases, certificates and etcd depend on it.", types.StateClock),
		of("VersionUnexpected", types.SeverityWarn, "Kubernetes does not run the expected version", "Is an update under way? zedkube nodes shows each node's.", types.StateVersion),
		of("LabelsChanged", types.SeverityWarn, "Labels of this node differ from those that EVE sets", "Restore them; the message names them.", types.StateLabels),
		of("MembersDiffer", types.SeverityWarn, "The cluster's members differ from the controller's configuration", "It resolves by itself; zedkube status shows what prevents it.", types.StateMembers),
	}
}

// judgeConditions repeats what no other check looks at.
func judgeConditions(c overview.Conditions, runs bool) types.Finding {
	if !c.Known() {
		return unknown("The agent has published none.")
	}
	all := ok("No problem is known to the agent.")
	if !runs {
		all = unknown("The agent does not run: it knew no problem when it last ran.")
	}
	var wrong []string
	for _, x := range c.List {
		if x.Status == types.ConditionFalse {
			wrong = append(wrong, fmt.Sprintf("%s since %s: %s", x.Type, x.Since.UTC().Format(time.RFC3339), cmp.Or(x.Message, x.Reason)))
		}
	}
	if len(wrong) > 0 {
		return warn("zedkube status says what to do about each", "%s", strings.Join(wrong, " "))
	}
	return all
}
