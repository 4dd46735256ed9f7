// Package auditcmd is zedkube audit, and the same for the page.
package auditcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/types"
)

const auditExitCodes = `Exit codes:
  0   it was shown, or nothing was found
  1   wrong usage, or it could not be printed
  2   nothing has been recorded here, or a part cannot be read; the rest is shown
  99  unknown command`

// auditLimit is how many operations people are shown unless they ask for more.
const auditLimit = 200

// auditing is one call of the command.
type auditing struct {
	terminal.Outputs
	paths device.Paths

	since, until string
	ops          []string
	components   []string
	by           []string
	target       string
	failed       bool
	limit        int
	times        bool // and not ages
	limited      bool // the limit was given

	filter audit.Filter
}

// NewAuditCommand shows what zedkube did.
func NewAuditCommand(o *device.Options) *cobra.Command {
	var a auditing
	c := &cobra.Command{
		Use:   "audit [--since 2h] [--op OP,...] [--failed] [--watch]",
		Short: "Show what zedkube did to the cluster and to this device: who requested it, why, and the outcome",
		Long: "Show what this node's zedkube did to the cluster and to the device, newest last: who requested it, why, and the\n" +
			"outcome. Repeated attempts are one line. It reads files, so it works without the agent\n" +
			"and, with --root, on a copy.\n\n" + auditExitCodes,
		Example: "  zedkube audit --op cordon,uncordon       who cordoned this node\n" +
			"  zedkube audit --failed --since 2h        what went wrong\n" +
			"  zedkube audit --target cam-0 --watch     what is done to an application, live\n" +
			"  zedkube audit --by OPERATOR -o json",
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			a.paths, a.limited = o.Paths(), c.Flags().Changed("limit")
			return a.run(c)
		},
	}
	a.Outputs.Flag(c)
	a.Outputs.WatchFlag(c)
	f := c.Flags()
	f.StringVar(&a.since, "since", "", "only operations newer than a duration or a time: 2h, 7d, 2026-01-31, 15:04 (UTC)")
	f.StringVar(&a.until, "until", "", "only operations begun before a time, or longer ago than a duration")
	f.StringSliceVar(&a.ops, "op", nil, "only these operations, such as cordon,evict; the first word is enough")
	f.StringSliceVar(&a.components, "component", nil, "only what these components did, such as drain,apps; \"command\" for commands")
	f.StringSliceVar(&a.by, "by", nil, "only operations requested by these, such as OPERATOR,UPDATE")
	f.StringVar(&a.target, "target", "", "only what was done to targets that contain this text")
	f.BoolVar(&a.failed, "failed", false, "only what was refused, failed or was not answered")
	f.IntVar(&a.limit, "limit", auditLimit, "show at most this many, the newest; 0 for all; with -o all unless it is given")
	f.BoolVar(&a.times, "time", false, "show times (UTC) instead of ages")
	return c
}

func (a *auditing) run(c *cobra.Command) error {
	if err := errors.Join(a.Outputs.Parse(), a.parse(time.Now())); err != nil {
		return terminal.ExitWith(terminal.ExitUsage, err)
	}
	if _, err := os.Stat(a.paths.Audit); err != nil && (!a.Watch || !errors.Is(err, fs.ErrNotExist)) {
		return terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("nothing was recorded here: %w", err))
	}
	t := terminal.Of(c.OutOrStdout())
	if a.Watch {
		look := a.watch(t.Live && a.People(), c.ErrOrStderr())
		return a.Outputs.Follow(c.Context(), t, terminal.Watch{Look: look, Every: terminal.WatchEvery, Events: true})
	}
	l := a.look(time.Now())
	a.remark(c.ErrOrStderr(), l)
	return cmp.Or(a.Outputs.Print(t, a.view(l)), l.err)
}

// parse makes a filter of the flags.
func (a *auditing) parse(now time.Time) error {
	a.filter = audit.Filter{Ops: a.ops, Components: a.components, By: a.by, Target: a.target, Failed: a.failed}
	var errs []error
	for _, at := range []struct {
		flag, text string
		to         *time.Time
	}{{"--since", a.since, &a.filter.Since}, {"--until", a.until, &a.filter.Until}} {
		if at.text == "" {
			continue
		}
		var err error
		if *at.to, err = audit.ParseTime(at.text, now); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at.flag, err))
		}
	}
	if a.limit < 0 {
		errs = append(errs, fmt.Errorf("--limit %d: want 0 or more", a.limit))
	}
	return errors.Join(errs...)
}

// auditLook is what one look found.
type auditLook struct {
	Operations []types.Operation `json:"operations"`
	Problems   audit.Problems    `json:"problems,omitzero"`
	Remarks    []string          `json:"remarks,omitempty"` // what is missing in the operations and why, a sentence each

	now     time.Time
	earlier int    // of those that were found, not shown
	all     int    // that there are
	foreign string // who else cordoned this node, "" for nobody
	err     error
}

// look reads what there is and takes what is wanted, the newest last.
func (a *auditing) look(now time.Time) auditLook {
	all, problems, err := audit.Read(a.paths.Audit)
	l := auditLook{
		Operations: []types.Operation{}, Problems: problems, Remarks: audit.Remarks(problems, err),
		now: now, all: len(all), foreign: a.foreignCordon(),
	}
	if err != nil {
		l.err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("a part of the audit trail cannot be read"))
	}
	for _, o := range all {
		if a.filter.Wants(o) {
			l.Operations = append(l.Operations, o)
		}
	}
	if most := a.limit; most > 0 && len(l.Operations) > most && (a.People() || a.limited) {
		l.earlier = len(l.Operations) - most
		l.Operations = l.Operations[l.earlier:]
	}
	return l
}

// foreignCordon says who else cordoned this node: what others do is not on our
// record, but a user who looks for a cordon has to see it all the same.
func (a *auditing) foreignCordon() string {
	if len(a.components)+len(a.by) > 0 || a.target != "" || len(a.ops) > 0 && !slices.Contains(a.ops, "cordon") {
		return ""
	}
	for _, file := range []string{a.paths.PersistentFile(device.Self, "KubeNodeConditions"), a.paths.TopicFile(device.Self, "KubeNodeConditions")} {
		row, _, err := device.ReadRecord[types.KubeNodeConditions](file)
		if err != nil {
			continue
		}
		for _, c := range row.Conditions {
			if c.Type == types.StateCordon && c.Status == types.ConditionFalse {
				return c.Message
			}
		}
	}
	return ""
}
