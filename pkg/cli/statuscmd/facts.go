package statuscmd

import (
	"fmt"
	"strings"

	"github.com/zedkube/zedkube/pkg/cli/draincmd"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func (f facts) drain(d overview.Drain) {
	look, text := terminal.Plain, ""
	if p := d.Progress; p != nil {
		look, text = draincmd.PhaseText(*p)
		if p.Pods != (types.DrainPods{}) {
			text += ", " + draincmd.PodsText(p.Pods)
		}
		if n := len(p.Blockers) + len(p.Volumes); n > 0 {
			text += fmt.Sprintf(", %d block it", n)
		}
		if p.Cordon != "" {
			text += "; cordoned by " + terminal.Clean(p.Cordon)
		}
	}
	f.told("drain", d.Told, look, text)
	if d.Status != "" {
		f.line("EVE sees", d.At, terminal.Plain, terminal.Clean(d.Status)+", for "+terminal.Clean(d.RequestedBy))
	}
	if d.Request != nil {
		f.line("asked by", d.Request.RequestedAt, terminal.Plain, strings.TrimSuffix("the operator: "+terminal.Clean(d.Request.Context), ": "))
	}
}

func (f facts) lease(o overview.Overview) {
	l := o.Lease
	look, text := terminal.Plain, terminal.Clean(l.Leader)+" reports for the cluster"
	switch {
	case l.Leader == "":
		look, text = terminal.Yellow, "no node reports for the cluster"
	case l.Mine:
		text = "this node reports for the cluster"
	}
	if !l.Takes {
		text += "; this node is not a candidate"
	}
	if !l.Since.IsZero() {
		text += ", since " + terminal.Stamp(l.Since, f.now)
	}
	f.told("leader", l.Told, look, text)
}

func (f facts) report(r overview.Report) {
	stale, cut, unseen := 0, 0, 0
	for _, s := range r.Sections {
		switch {
		case s.Absent:
		case !s.StaleSince.IsZero():
			stale++
		case !s.Known:
			unseen++
		}
		if s.Truncated > 0 {
			cut++
		}
	}
	look, text := terminal.Green, fmt.Sprintf("%d sections up to date", len(r.Sections)-stale-unseen)
	if stale+unseen+cut > 0 {
		look = terminal.Yellow
	}
	for _, part := range []struct {
		n    int
		word string
	}{{stale, "stale"}, {unseen, "not seen yet"}, {cut, "cut"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.word)
		}
	}
	f.told("report", r.Told, look, text)
}

func (f facts) storage(s overview.Storage) {
	if s.Health != "" {
		look := map[string]terminal.Style{"Healthy": terminal.Green, "Degraded": terminal.Yellow, "Failed": terminal.Red}[s.Health]
		whole := 0
		for _, v := range s.Volumes {
			if v.Robustness == types.StorageVolumeRobustnessHealthy.String() {
				whole++
			}
		}
		f.line("storage", s.Since, look, fmt.Sprintf("%s, %d of %d volumes healthy", terminal.Clean(s.Health), whole, len(s.Volumes)))
	}
	var wrong []string
	for _, level := range s.Settings {
		if level.Kept && level.Why != "" {
			wrong = append(wrong, terminal.Clean(level.Name)+": "+terminal.Clean(level.Why))
		}
	}
	look, text := terminal.Plain, "as in the device's settings, as far as this node applies them"
	if len(wrong) > 0 {
		look, text = terminal.Yellow, strings.Join(wrong, "; ")
	}
	f.told("settings", s.Told, look, text)
}

func (f facts) conditions(c overview.Conditions) {
	var wrong, open []string
	for _, s := range c.List {
		switch s.Status {
		case types.ConditionTrue:
		case types.ConditionFalse:
			wrong = append(wrong, terminal.Clean(string(s.Type)))
		default:
			open = append(open, terminal.Clean(string(s.Type)))
		}
	}
	look, text := terminal.Green, fmt.Sprintf("%d of %d True", len(c.List)-len(wrong)-len(open), len(c.List))
	if len(wrong) > 0 {
		look, text = terminal.Yellow, text+"; False: "+strings.Join(wrong, ", ")
	}
	if len(open) > 0 {
		text += "; Unknown: " + strings.Join(open, ", ")
	}
	f.told("conditions", c.Told, look, text)
	var versions []string
	for _, v := range []struct{ name, version string }{{"Kubernetes", c.Kubernetes}, {"KubeVirt", c.KubeVirt}, {"Longhorn", c.Longhorn}, {"CNI", c.CNI}} {
		if v.version != "" {
			versions = append(versions, v.name+" "+terminal.Clean(v.version))
		}
	}
	if len(versions) > 0 {
		f.line("versions", c.At, terminal.Plain, strings.Join(versions, ", "))
	}
	for _, cert := range c.Certificates {
		f.line("certificate", c.At, terminal.Plain, fmt.Sprintf("%s expires %s", terminal.Clean(cert.Name), terminal.Stamp(cert.NotAfter, f.now)))
	}
}

func (f facts) disks(list []overview.Disk) {
	var texts []string
	for _, d := range list {
		if d.Size > 0 {
			free := d.Free
			texts = append(texts, fmt.Sprintf("%s %d%% free (%s)", d.Path, int(float64(free)/float64(d.Size)*100), terminal.BytesText(&free)))
		}
	}
	if len(texts) > 0 {
		f.line("disks", f.now, terminal.Plain, strings.Join(texts, ", "))
	}
}
