package services

import (
	"reflect"
	"time"

	"github.com/zedkube/zedkube/types"
)

// facts is everything decide may look at.
type facts struct {
	now        time.Time
	left       time.Time // how old the ingresses are that were published before this process
	services   source[types.Service]
	ingresses  source[types.Ingress]
	vip        source[types.KubeVIP]
	portsKnown bool
	ports      []types.NetworkPortStatus
	cluster    types.EdgeNodeClusterStatus
	last       types.KubeUserServices // published, perhaps by a former run; zero: none
	sections   map[string]types.ReportSection
}

// source is a table of the cluster as it was last seen whole.
type source[T any] struct {
	rows   map[string]T
	known  bool // it was, since this process began
	absent bool // the cluster has no such kind of object
	stale  stale
}

// stale says since when something cannot be brought up to date, and why; zero
// while it can.
type stale struct {
	since time.Time
	why   string
}

// or is the one of two that began first.
func (s stale) or(other stale) stale {
	if s.since.IsZero() || !other.since.IsZero() && other.since.Before(s.since) {
		return other
	}
	return s
}

// action is everything decide may ask for.
type action struct {
	publish  *types.KubeUserServices // nil: what is published stays
	sections []types.ReportSection
	cut      cut
}

// decide says what to publish, from facts alone. Each part is of its own
// table as it was last whole; before it has been, what is published of it stays.
func decide(f facts) action {
	v := f.last
	if f.services.known {
		v.UserService = services(f.services.rows)
	}
	if f.ingressesKnown() {
		v.UserIngress = ingresses(f, v.UserService)
	}
	if f.vip.known {
		v.LBPoolStatus = pool(f, v.UserService)
	}
	v.ServiceError = serviceError(f, v.UserService)
	whole := v
	left := fit(&v)
	a := action{cut: left}
	if f.services.known || f.ingressesKnown() || f.vip.known {
		a.publish = &v
	}
	a.sections = []types.ReportSection{
		f.section(types.ReportSection{
			Name: types.SectionServices, Known: f.services.known, Absent: f.services.absent,
			Total: len(whole.UserService), Truncated: left.services,
		}, f.services.stale, !reflect.DeepEqual(v.UserService, f.last.UserService)),
		f.section(types.ReportSection{
			Name: types.SectionIngresses, Known: f.ingressesKnown(), Absent: f.ingresses.absent,
			Total: len(whole.UserIngress), Truncated: left.ingresses,
		}, f.ingressesStale(), !reflect.DeepEqual(v.UserIngress, f.last.UserIngress)),
		f.section(types.ReportSection{
			Name: types.SectionLBPool, Known: f.vip.known, Absent: f.vip.absent,
			Total: len(addressesOf(whole.LBPoolStatus)), Truncated: left.addresses,
		}, f.services.stale.or(f.vip.stale), !reflect.DeepEqual(v.LBPoolStatus, f.last.LBPoolStatus)),
	}
	return a
}

// ingressesKnown: what nim does for an ingress depends on the type of the
// service it leads to and on the addresses of this node.
func (f facts) ingressesKnown() bool { return f.ingresses.known && f.services.known && f.portsKnown }

func (f facts) ingressesStale() stale {
	s := f.ingresses.stale.or(f.services.stale)
	if s.since.IsZero() && !f.portsKnown {
		return stale{f.left, "nim has not published the ports of this node yet"}
	}
	return s
}

// section says how good a part is, and when it last changed.
func (f facts) section(s types.ReportSection, st stale, changed bool) types.ReportSection {
	old := f.sections[s.Name]
	s.StaleSince, s.Why, s.Updated = st.since, st.why, old.Updated
	if s.Known && (changed || !old.Known || s.Total != old.Total || s.Truncated != old.Truncated) {
		s.Updated = f.now
	}
	return s
}

// The errors of docs/wire.md, "Services and ingresses".
const (
	errOrphans = "kube-vip LB removed but services still have LoadBalancer allocated IPs"
	errOutside = "services have LoadBalancer IPs outside the current kube-vip prefix"
)

// serviceError says that load-balancer addresses are in use which nobody
// announces. What is not in view now may have changed, so that an error may end
// by it but none begins.
func serviceError(f facts, list []types.KubeUserService) types.ErrorDescription {
	if !f.services.known || !f.vip.known {
		return f.last.ServiceError
	}
	text, used := "", allocated(list)
	vip, deployed := f.vip.rows[types.Global]
	switch {
	case len(used) == 0:
	case !deployed:
		text = errOrphans
	case outside(used, vip.CIDR):
		text = errOutside
	}
	complete := f.services.stale.since.IsZero() && f.vip.stale.since.IsZero()
	if !complete && text != f.last.ServiceError.Error {
		text = ""
	}
	e := types.Dated(text, f.last.ServiceError, f.now)
	if text != "" {
		e.ErrorSeverity = types.ErrorSeverityWarning
	}
	return e
}
