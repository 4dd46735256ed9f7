package audit

import (
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// life is what topics say of the life of the cluster on this node. It is recorded
// when it changes, by what the lines say already: so a restart repeats nothing.
type life struct {
	wanted     string // setting k3s.version
	heard      bool   // it is known
	node       string // name of this one, "" while not known
	running    string // version of k3s
	change     types.KubeLifecycle
	membership types.ClusterMembership
	joined     bool
	update     types.KubeClusterUpdateStatus
}

// What the lines are about. Of each subject the last line is compared.
type subject int

const (
	ofWanted subject = iota
	ofVersion
	ofPreconditions
	ofMembership
	ofComponents
	ofRestart
	ofRestartPreconditions
)

const (
	wantVersion   = "want k3s version"
	refuseVersion = "refuse k3s version"
	checkChange   = "check k3s change"
	beginChange   = "begin k3s change"
	returnVersion = "return k3s version"
	changeVersion = "change k3s version"
	beginJoin     = "begin join"
	endJoin       = "join cluster"
	beginLeave    = "begin leave"
	endLeave      = "leave cluster"
	beginUpdate   = "begin component update"
	endUpdate     = "update component"
	checkRestart  = "check restart for certificates"
	beginRestart  = "begin restart for certificates"
	endRestart    = "restart k3s for certificates"
)

// subjects are what each of these operations is about.
var subjects = map[string]subject{
	wantVersion: ofWanted, checkChange: ofPreconditions,
	refuseVersion: ofVersion, beginChange: ofVersion, returnVersion: ofVersion, changeVersion: ofVersion,
	beginJoin: ofMembership, endJoin: ofMembership, beginLeave: ofMembership, endLeave: ofMembership,
	beginUpdate: ofComponents, endUpdate: ofComponents,
	checkRestart: ofRestartPreconditions, beginRestart: ofRestart, endRestart: ofRestart,
}

// standing is the last line about a subject, and the first of those like it.
type standing struct {
	is    types.Operation
	first time.Time
}

// newLines are the lines that are due now about the life of the cluster, and when the
// next one is; 0 for none.
func newLines(f facts) (lines []types.Operation, again time.Duration) {
	l, last := f.life, func(s subject) types.Operation { return f.stands[s].is }
	for _, o := range []types.Operation{l.wants(last(ofWanted)), l.checks(), l.changes(last(ofVersion)), l.checksRestart(), l.restarts(last(ofRestart)), l.belongs(last(ofMembership)), l.updates()} {
		if o.Op == "" || o.Target == "node/" { // the node's name is not known yet
			continue
		}
		o.Target, o.Why = text(o.Target, targetText), text(o.Why, whyText) // as they will be read
		last := f.stands[subjects[o.Op]]
		checks := o.Op == checkChange || o.Op == checkRestart
		why := checks || o.Op == endUpdate || o.Op == beginUpdate // the others' reasons vary
		if is := last.is; is.Op == o.Op && is.Target == o.Target && is.Outcome == o.Outcome && (!why || is.Why == o.Why) {
			continue
		}
		if last.is.Target == o.Target && checks { // preconditions may come and go for days
			if rest := nextCount(last.first, last.is.At).Sub(f.now); rest > 0 && rest <= countAtMost {
				if again == 0 || rest < again {
					again = rest
				}
				continue
			}
		}
		o.At = f.now
		lines = append(lines, o)
	}
	return lines, again
}

// wants is which version of k3s the controller asks for, after the last line about that.
func (l life) wants(last types.Operation) types.Operation {
	o := types.Operation{Component: "k3sconfig", By: types.SettingK3sVersion, Op: wantVersion, Target: "version/" + l.wanted, Outcome: types.OperationOK}
	switch {
	case !l.heard, l.wanted == "" && last.Op == "":
		return types.Operation{}
	case l.wanted == "":
		o.Why = "the setting is empty"
	}
	return o
}

// checks is which preconditions of a change hold it up.
func (l life) checks() types.Operation {
	o := types.Operation{Component: "k3supdate", By: types.SettingK3sVersion, Op: checkChange, Target: "version/" + l.change.To, Outcome: types.OperationOK}
	return checked(o, l.change.Preconditions)
}

// checksRestart is which preconditions of a restart for certificates hold it up.
func (l life) checksRestart() types.Operation {
	return checked(l.restart(checkRestart), l.change.Restart.Preconditions)
}

// checked is o with what is missing of these; none where there are none.
func checked(o types.Operation, preconditions []types.KubeLifecyclePrecondition) types.Operation {
	var missing, why []string
	for _, p := range preconditions {
		if !p.Holds {
			missing, why = append(missing, p.Name), append(why, p.Reason)
		}
	}
	switch {
	case len(preconditions) == 0:
		return types.Operation{}
	case len(missing) == 0:
		o.Why = "all preconditions hold"
		return o
	}
	o.Outcome, o.Why, o.Error = types.OperationRefused, "missing: "+strings.Join(missing, ", "), strings.Join(why, " ")
	return o
}

// changes is what becomes of a change, after the last line about it.
func (l life) changes(last types.Operation) types.Operation {
	c := l.change
	o := types.Operation{Component: "k3supdate", By: types.SettingK3sVersion, Op: changeVersion, Target: "version/" + c.To, Why: strings.TrimSpace(c.Reason + " " + c.Commit)}
	if c.Kind == types.K3sOverride {
		o.By = types.SettingK3sOverride
	}
	switch {
	case c.Kind == types.K3sRestart: // its own lines tell of it
		return types.Operation{}
	case c.Phase == types.LifecycleRefused:
		o.Op, o.Outcome = refuseVersion, types.OperationRefused
	case c.Phase == types.LifecycleChanges:
		o.Op, o.Outcome = beginChange, types.OperationOK
	case c.Phase == types.LifecycleReturns:
		o.Op, o.Target, o.Outcome = returnVersion, "version/"+c.From, types.OperationOK
	case c.Phase == types.LifecycleFailed:
		o.Outcome, o.Error = types.OperationFailed, c.Failed.Why
	case c.Phase == types.LifecycleStuck && c.To != "":
		o.Outcome = types.OperationUnanswered
	case c.Phase == types.LifecycleIdle && last.Target == "version/"+l.running && (last.Op == beginChange || last.Outcome == types.OperationUnanswered):
		o.Target, o.Outcome = last.Target, types.OperationOK
	default:
		return types.Operation{}
	}
	return o
}

// restart is an operation of a restart for certificates, by the one who wishes it.
func (l life) restart(op string) types.Operation {
	o := types.Operation{Component: "k3supdate", By: "k3supdate", Op: op, Target: "node/" + l.node, Outcome: types.OperationOK}
	if l.change.Restart.Wish == types.RestartAsked {
		o.By = byOperator
	}
	return o
}

// restarts is what becomes of a restart for certificates, after the last line about one.
func (l life) restarts(last types.Operation) types.Operation {
	c := l.change
	o := l.restart(beginRestart)
	switch restarts := c.Kind == types.K3sRestart; {
	case restarts && c.Phase == types.LifecycleChanges:
		o.Why = string(c.Restart.Wish) + ": " + c.Reason
	case restarts && c.Phase == types.LifecycleStuck:
		o.Op, o.Outcome, o.Why = endRestart, types.OperationUnanswered, c.Reason
	case c.Phase == types.LifecycleIdle && (last.Op == beginRestart || last.Outcome == types.OperationUnanswered):
		o.Op, o.By, o.Target, o.Error = endRestart, last.By, last.Target, c.Restart.Failed
		if restarts {
			o.Why = c.Reason
		}
		if o.Error != "" {
			o.Outcome = types.OperationFailed
		}
	default:
		return types.Operation{}
	}
	return o
}

// belongs is what becomes of a join or a leave, after the last line about one.
func (l life) belongs(last types.Operation) types.Operation {
	m := l.membership
	o := types.Operation{Component: "membership", By: "CONTROLLER", Target: last.Target, Why: m.Reason, Outcome: types.OperationOK}
	if m.Config != nil {
		o.Target = "cluster/" + m.Config.ClusterID.UUID.String()
	}
	if m.ByOperator {
		o.By = byOperator
	}
	switch {
	case m.State == types.MembershipMember && l.joined:
		o.Op = endJoin
	case m.State == types.MembershipMember && (last.Op != endJoin || last.Target != o.Target): // once joined, it only joins another one
		o.Op = beginJoin
	case m.State == types.MembershipLeaving:
		o.Op = beginLeave
	case m.State == types.MembershipLeft && last.Op != "":
		o.Op = endLeave
	}
	return o
}

// updates is what becomes of the update of a component by the kube container.
func (l life) updates() types.Operation {
	u := l.update
	o := types.Operation{
		Component: "kube-container", Op: endUpdate, Target: "component/" + u.Component.String(), Outcome: types.OperationOK,
		Why: "to KubeVersion " + strconv.FormatUint(uint64(u.DestinationKubeUpdateVersion), 10),
	}
	switch u.Status {
	case types.KubeCompUpdateUnknown:
		return types.Operation{}
	case types.KubeCompUpdateDownload, types.KubeCompUpdateInProgress:
		o.Op = beginUpdate
	case types.KubeCompUpdateDownloadFailed, types.KubeCompUpdateFailed:
		o.Outcome, o.Error = types.OperationFailed, u.Error
	}
	return o
}

// follow keeps the last line about each subject.
func follow(stands map[subject]standing, o types.Operation) {
	of, ok := subjects[o.Op]
	if !ok {
		return
	}
	first := o.At
	if last := stands[of]; last.is.Op == o.Op && last.is.Target == o.Target {
		first = last.first
	}
	stands[of] = standing{o, first}
}
