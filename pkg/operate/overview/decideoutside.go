package overview

import (
	"cmp"

	"github.com/zedkube/zedkube/types"
)

// conditionRules tell of conditions that are False, but those that other rules
// use for what they find.
func conditionRules() []rule {
	of := func(name string, severity Severity, what, remedy string, states ...types.NodeStateType) rule {
		return rule{name, anchorOutside, func(o Overview, tell func(Problem)) {
			if !o.fresh() {
				return
			}
			for _, t := range states {
				c, ok := o.Conditions.Of(t)
				if !ok || c.Status != types.ConditionFalse {
					continue
				}
				s := severity
				if left, known := c.ExpiresAt.Sub(o.ReadAt), !c.ExpiresAt.IsZero(); known && left > 0 {
					s = Warn
				}
				r := remedy
				if t == types.StateCACertificate { // k3s renews no authority
					r = renewCA
				}
				tell(Problem{Severity: s, About: string(t), Since: c.Since, What: sentence(what, cmp.Or(c.Message, c.Reason)), Remedy: r})
			}
		}}
	}
	return []rule{
		of("CertificateEnds", Bad, "A certificate is at its end", "k3s renews its certificates when it starts: restart the kube container, or reboot the device after a drain.",
			types.StateClientCertificate, types.StateCACertificate, types.StateServerCertificate),
		of("ClockOff", Bad, "The clock of this device is not in step with the cluster", "Look at the device's NTP servers: Leases, certificates and etcd depend on it.", types.StateClock),
		of("VersionUnexpected", Warn, "Kubernetes is not of the version that is expected", "Is an update under way? zedkube nodes shows each node's.", types.StateVersion),
		of("LabelsChanged", Warn, "Labels of this node are not as EVE sets them", "Put them back; the sentence names them.", types.StateLabels),
		of("MembersDiffer", Warn, "The cluster's members are not as the controller names them", "It is put right by itself; zedkube status shows what hinders it.", types.StateMembers),
	}
}

const renewCA = "k3s certificate rotate-ca --path=DIR, DIR with the new authorities, once, on one server; then restart the servers one after the other, then the agents."

// Of returns the condition of that type, where it is known.
func (c Conditions) Of(t types.NodeStateType) (types.NodeStateCondition, bool) {
	for _, s := range c.List {
		if s.Type == t {
			return s, c.Known()
		}
	}
	return types.NodeStateCondition{}, false
}

// fresh reports that what the agent says counts: what a dead one said last is
// no news.
func (o Overview) fresh() bool { return o.Agent.Runs }

// Parts of a disk that should be free.
const (
	lowDisk  = 20 // one part in twenty
	fullDisk = 100
	fewBytes = 64 << 20
)

func fileRules() []rule {
	return []rule{
		{"DiskFull", anchorFiles, findDiskFull},
		{"Unreadable", anchorFiles, findUnreadable},
	}
}

func findDiskFull(o Overview, tell func(Problem)) {
	for _, d := range o.Disks {
		p := Problem{Severity: Warn, About: d.Path, What: "The disk of " + d.Path + " is nearly full: " + bytesText(d.Free) + " of " + bytesText(d.Size) + " are free.", Remedy: "Remove what is not needed: du -x " + d.Path + " | sort -n | tail"}
		switch {
		case d.Free < min(fewBytes, d.Size/lowDisk) || d.Free < d.Size/fullDisk:
			p.Severity, p.What = Bad, "The disk of "+d.Path+" is full: "+bytesText(d.Free)+" of "+bytesText(d.Size)+" are free. What the agent says is not written any more."
		case d.Free >= d.Size/lowDisk:
			continue
		}
		tell(p)
	}
}

func findUnreadable(o Overview, tell func(Problem)) {
	for _, t := range o.Unreadable {
		tell(Problem{
			Severity: Warn, About: t.File, What: sentence(t.Why, ""),
			Remedy: "Its writer replaces it with its next word. Where it stays, look at the file and at the disk.",
		})
	}
}
