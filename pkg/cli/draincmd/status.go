// Package draincmd is zedkube drain: its state, a plan, and what an operator may ask
// for.
package draincmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func newDrainStatusCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	cluster := false
	c := &cobra.Command{
		Use:   "status [NODE] [--cluster] [--watch]",
		Short: "Show the progress of the drain, what blocks it and what to do about it",
		Long: "Show the progress of this node's drain, what blocks it and what to do about it.\n" +
			"It reads only files: neither the agent nor the API server has to run.\n" +
			"Of another node, and with --cluster of all, the agent of this node asks theirs; what is watched then does not end.\n\n" + exitCodes,
		Args:              terminal.Words(0, 1),
		ValidArgsFunction: terminal.CompleteArgs(device.NodeNames(o)),
		RunE: func(c *cobra.Command, args []string) error {
			if of := otherNode(o.Paths(), args); cluster || of != "" {
				return device.ShowCluster(c, o.Paths(), &out, of, func(v device.ClusterView) terminal.View {
					if of == "" {
						v.Nodes = terminal.Selected(&out, v.Nodes)
					}
					return viewCluster(v, of)
				})
			}
			read := func() drainRecord { return readDrain(o.Paths(), device.Now(o.Root)) }
			look := func(context.Context) terminal.View { return view(read()) }
			if out.Watch {
				look = watch(read)
			}
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), terminal.WatchEvery, look)
		},
	}
	terminal.List[clusterview.Row](&out, c, "node", drainTable(device.ClusterView{}))
	device.ClusterFlag(c, &out, &cluster, "show the drains of all nodes", drainTable(device.ClusterView{}))
	c.Flags().BoolVarP(&out.Watch, "watch", "w", false, "keep showing it until the drain has ended; exit code 0: complete, 3: failed or withdrawn")
	return c
}

const exitCodes = `Exit codes:
  0   done; with "status --watch": the drain is complete
  1   wrong usage, interrupted, or failed
  2   the request could not be written, or the API server cannot be queried
  3   "status --watch": the drain failed, or was withdrawn
  99  unknown command`

// NewDrainCommand is the parent of what an operator may say about drains.
func NewDrainCommand(o *device.Options) *cobra.Command {
	return terminal.Group("drain", "Drain this node, show its progress and what blocks it",
		"Drain this node, show its progress and what blocks it.\ndocs/operations.md explains every state, docs/runbook.md every remedy.\n\n"+exitCodes,
		newDrainStatusCommand(o), newDrainPlanCommand(o), newDrainRequestCommand(o), newDrainCancelCommand(o),
		newKeepCordonCommand(o), newUnlockCommand(o))
}

// watch looks at the record until its drain has ended: with nil when it is complete or the
// node has left, an error with exit code 3 when it has failed or was withdrawn, and 1 before that.
func watch(read func() drainRecord) func(context.Context) terminal.View {
	ran := false // a drain was seen under way
	return func(context.Context) terminal.View {
		r := read()
		v := view(r)
		v.Err = terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted: the drain has not ended"))
		over, err := r.ending()
		ran = ran || r.underWay()
		switch {
		case over:
			v.Ended, v.Err = true, err
		case ran && r.idle() && r.left: // its last steps were shorter than the time between two looks
			v.Ended, v.Err = true, nil
		case ran && r.idle():
			v.Ended, v.Err = true, terminal.ExitWith(terminal.ExitDrainFailed, errors.New("the drain was withdrawn: "+terminal.Clean(r.Progress.Reason)))
		}
		return v
	}
}

func view(r drainRecord) terminal.View {
	text := summary(r)
	data := r
	if r.Progress != nil {
		progress := *r.Progress
		progress.Journal = types.NodeDrainJournal{} // what the agent remembers is not for others
		data.Progress = &progress
	}
	v := terminal.View{Data: data, Steady: text, Rows: []terminal.Row{{Text: text}}, Draw: func(s *terminal.Screen) { putDrain(s, r) }}
	if r.Node != "" {
		v.Names = []string{r.Node}
	}
	if r.Progress == nil && r.Status == nil {
		v.Err = errors.New("no drain status could be read")
	}
	return v
}

// summary is the record in a line, without what changes by itself.
func summary(r drainRecord) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if !r.Agent.Runs {
		add("THE AGENT DOES NOT RUN")
	}
	for _, problem := range r.Problems {
		add("%s", terminal.Clean(problem))
	}
	p := r.Progress
	switch {
	case p == nil && r.Status == nil:
		add("no drain status")
	case p == nil:
		add("%s", terminal.Clean(r.Status.Status.String()))
	default:
		_, text := PhaseText(*p)
		add("%s", text)
		if p.Reason != "" {
			add("%s", terminal.Clean(p.Reason))
		}
		if p.Pods != (types.DrainPods{}) {
			add("pods %s", PodsText(p.Pods))
		}
		parts = append(parts, BlockTexts(*p)...)
	}
	return strings.Join(parts, "; ")
}

// BlockTexts say how many pods and volumes block a drain, or are left by one that was forced.
func BlockTexts(p types.NodeDrainProgress) (texts []string) {
	add := func(n int, what string) {
		switch {
		case n == 0:
		case p.Forced:
			texts = append(texts, phrase.Counted(n, what)+" left")
		case n == 1:
			texts = append(texts, "1 "+what+" blocks it")
		default:
			texts = append(texts, phrase.Counted(n, what)+" block it")
		}
	}
	add(len(p.Blockers)+max(p.BlockersOmitted, 0), "pod")
	add(len(p.Volumes)+max(p.VolumesOmitted, 0), "volume")
	return texts
}

// drainRecord is what the files of a device say about its drain. It needs
// neither the agent nor the API server.
type drainRecord struct {
	Node      string // "" for unknown
	ReadAt    time.Time
	Agent     device.AgentLife
	WrittenAt time.Time                // when Progress was; zero without one
	Progress  *types.NodeDrainProgress // nil for none that can be read
	Status    *types.NodeDrainStatus   // what EVE's agents are told; nil for none that can be read
	Request   *types.NodeDrainRequest  // the operator's, while it stands
	Forced    bool                     // a force file is in effect
	Force     []overview.ForceFile     `json:",omitempty"` // those that are there
	Problems  []string                 // what could not be read, and why
	Advice    []advice

	left bool // the membership says so
}

// readDrain reads all there is. What is missing or bad is said in the record.
func readDrain(p device.Paths, now time.Time) drainRecord {
	r := drainRecord{ReadAt: now.UTC(), Agent: device.LifeOfAgent(p, now)}
	if info, err := device.OwnName(p); err == nil {
		r.Node = info.NodeName()
	}
	r.Progress, r.WrittenAt = readOptional[types.NodeDrainProgress](&r, p.TopicFile(device.Self, "NodeDrainProgress"))
	r.Status, _ = readOptional[types.NodeDrainStatus](&r, p.TopicFile(device.Self, "NodeDrainStatus"))
	r.Request, _ = readOptional[types.NodeDrainRequest](&r, p.TopicFile(device.CommandAgent, "NodeDrainRequest"))
	// Read after the progress: it says that the node has left before the progress no longer does.
	m, _, _ := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership"))
	r.left = m.State == types.MembershipLeft && m.Without == nil // without the cluster nothing is drained
	r.Force = overview.ForceFiles(p.Root)
	r.Forced = slices.ContainsFunc(r.Force, func(f overview.ForceFile) bool { return f.Ignored == "" })
	r.Advice = adviseFor(r, p)
	return r
}

// readOptional reads one file into the record; a file that is not there is no problem.
func readOptional[T any](r *drainRecord, path string) (*T, time.Time) {
	v, at, err := device.ReadRecord[T](path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, time.Time{}
	case err != nil:
		r.Problems = append(r.Problems, err.Error())
		return nil, time.Time{}
	}
	return &v, at.UTC()
}

// ending says how the drain of the record has ended; over is false while it
// has not.
func (r drainRecord) ending() (over bool, err error) {
	fails := func(why string) (bool, error) {
		return true, terminal.ExitWith(terminal.ExitDrainFailed, errors.New("the drain failed: "+terminal.Clean(why)))
	}
	switch {
	case r.Progress == nil && r.Status == nil:
		return false, nil
	case r.Progress == nil && r.Status.Status == types.DrainComplete:
		return true, nil
	case r.Progress == nil && (r.Status.Status == types.DrainFailedCordon || r.Status.Status == types.DrainFailedDrain):
		return fails(r.Status.Status.String())
	case r.Progress == nil || r.requestedAgain():
		return false, nil
	case r.Progress.Phase == types.PhaseComplete || r.Progress.Left:
		return true, nil
	case r.failed():
		return fails(r.Progress.Reason)
	}
	return false, nil
}

func (r drainRecord) failed() bool {
	return r.Progress != nil && (r.Progress.Phase == types.PhaseNoCordon || r.Progress.Phase == types.PhaseNotEmpty)
}

// requestedAgain reports that the operator's request is newer than the failure:
// the agent is about to begin again.
func (r drainRecord) requestedAgain() bool {
	return r.failed() && r.Request != nil && r.Request.RequestedAt.After(r.Progress.Ended)
}

// idle reports that there is no drain, nor one about to begin.
func (r drainRecord) idle() bool {
	return r.Progress != nil && r.Progress.Phase == types.PhaseIdle && r.Request == nil
}

// underWay reports a drain that has not ended.
func (r drainRecord) underWay() bool {
	return r.Progress != nil && (r.Progress.Phase == types.PhaseGates || r.Progress.Phase == types.PhaseEmptying)
}

type advice struct {
	Command string
	Why     string
}

func adviseFor(r drainRecord, p device.Paths) []advice {
	var list []advice
	add := func(command, why string) { list = append(list, advice{command, why}) }
	if !r.Agent.Runs {
		add("grep -h zedkube /persist/newlog/collect/dev.log* | tail", "find out why the agent is not running; when it runs again, the drain continues where it stopped")
		add("zgrep zedkube /persist/newlog/keepSentQueue/dev.log.*.gz | tail", "the same, in the logs that were already sent to the controller")
	}
	switch {
	case r.Progress == nil:
		add("zedkube drain plan", "see what a drain would do now; changes nothing")
	case r.Progress.Left:
	case r.Progress.Phase == types.PhaseIdle:
		add("zedkube drain plan", "see what a drain would do now; changes nothing")
		add("zedkube drain request", "drain this node; it is not rebooted afterwards")
		switch r.Progress.Cordon {
		case "kept":
			add("zedkube uncordon "+nodeWord(r), "make this node schedulable again")
		case "operator":
			add("zedkube audit --op cordon,uncordon", "find out who cordoned this node, and ask them first")
			add("zedkube uncordon "+nodeWord(r), "make this node schedulable again, once they agree")
		}
	default:
		adviseDuring(r, p, add)
	}
	for _, f := range r.Force {
		why := "remove the force file: EVE sees the real drain status again"
		if f.Ignored != "" {
			why = "remove the force file, which has no effect"
		}
		add("rm "+filepath.Join(p.Root, f.File), why)
	}
	return list
}

// adviseDuring is for a drain that runs or has just ended.
func adviseDuring(r drainRecord, p device.Paths, add func(command, why string)) {
	pr := r.Progress
	own := slices.Contains(pr.Requesters, "OPERATOR")
	if pr.Phase == types.PhaseGates && pr.Lock.Holder != "" && !pr.Lock.Mine && pr.Lock.Holder != r.Node {
		add("zedkube drain unlock "+shellWord(pr.Lock.Holder), "only if that node is powered off on purpose: it may have the only copy of data, or be needed for quorum")
	}
	switch {
	case r.failed():
		add("zedkube drain plan", "see what still blocks the drain; changes nothing")
		add("zedkube drain request", "try again; a new reboot, shutdown or update command does so too")
	case own:
		add("zedkube drain cancel", "withdraw your request; the node becomes schedulable again unless another request remains")
	case slices.Contains(pr.Requesters, types.RequestedByK3s):
		add("zedkube k3s status", "see the change of k3s for which this node is drained; before it begins, zedkube k3s hold ends the drain")
	case r.underWay():
		add("zedkube drain status --watch", "watch its progress")
	}
	if r.underWay() {
		add(fmt.Sprintf(`echo '{"Status":9,"RequestedBy":1}' > %s`, p.ForceDrain[0]),
			"report the drain as complete now: the remaining pods go down with the device, regardless of disruption budgets and replicas")
		add(fmt.Sprintf(`echo '{"Status":1,"RequestedBy":1}' > %s`, p.ForceDrain[0]),
			"stop the drain; while this file exists, the next reboot or update proceeds without a drain")
	}
	if pr.Phase == types.PhaseComplete && pr.Cordon == "zedkube" {
		add("zedkube drain keep-cordon", "keep this node unschedulable after the drain as well")
	}
}

// nodeWord is the own node's name in a command.
func nodeWord(r drainRecord) string {
	if r.Node == "" {
		return "<node>"
	}
	return shellWord(r.Node)
}

// shellWord is a name from a record in a command that somebody may paste: a
// name that is none of Kubernetes' is not repeated.
func shellWord(name string) string {
	if !types.IsObjectName(name) {
		return "<holder>"
	}
	return name
}
