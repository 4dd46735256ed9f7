package edgecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
	"github.com/zedkube/zedkube/types"
)

func keysText() string {
	var b strings.Builder
	for _, k := range settings.Keys() {
		restarts := ""
		if k.Restarts != "" {
			restarts = " (restarts " + k.Restarts + ")"
		}
		fmt.Fprintf(&b, "  %s: %s%s\n", k.Name, k.Means, restarts)
	}
	return b.String()
}

func (c *commands) enable() *cobra.Command {
	var a acting
	var ha bool
	cmd := &cobra.Command{
		Use:   "enable [--ha] [--force] [--yes | --dry-run] [KEY=VALUE]...",
		Short: "Switch KubeEdge on in the cluster, for edge nodes to join",
		Long: "Switch KubeEdge on in the cluster, for edge nodes to join: its settings, and the controller that makes and keeps all else.\n" +
			"A plan is shown first. Refused without --force where it cuts off edge nodes that were asked to join. The settings, of which\n" +
			"each has a default:\n\n" + keysText(),
		Example: "  zedkube-edge enable --dry-run\n  zedkube-edge enable --yes nodeLimit=20 serviceType=LoadBalancer",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.on(cmd)
			if ha {
				args = append(args, "ha=true")
			}
			return c.change(cmd.Context(), &a, args, true)
		},
	}
	cmd.Flags().BoolVar(&ha, "ha", false, "the same as ha=true")
	cmd.Flags().BoolVar(&a.force, "force", false, "also what cuts off edge nodes that were asked to join")
	a.flags(cmd)
	return cmd
}

func (c *commands) set() *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "set [--force] [--yes | --dry-run] KEY=VALUE...",
		Short: "Change settings of KubeEdge",
		Long: "Change settings of KubeEdge. A plan is shown first: what changes, and what is restarted for it. Refused without --force where it\n" +
			"takes away what edge nodes that were asked to join have in their own files: a port, an address, edgeBlock. The settings:\n\n" + keysText(),
		Example: "  zedkube-edge set nodeLimit=200\n  zedkube-edge set --yes advertiseAddress=192.0.2.10,192.0.2.11",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.on(cmd)
			if len(args) == 0 {
				return errors.New("name what to set, as KEY=VALUE: zedkube-edge set --help")
			}
			return c.change(cmd.Context(), &a, args, false)
		},
	}
	cmd.Flags().BoolVar(&a.force, "force", false, "also what cuts off edge nodes that were asked to join")
	a.flags(cmd)
	return cmd
}

// change sets what args say, and switches KubeEdge on where enable is true.
func (c *commands) change(ctx context.Context, a *acting, args []string, enable bool) error {
	kube, err := c.dial()
	if err != nil {
		return err
	}
	was, at, err := current(ctx, kube)
	if err != nil {
		return err
	}
	s := was
	if enable {
		s = s.Of(c.Version)
	}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if !found {
			return fmt.Errorf("%q is not KEY=VALUE", terminal.Clean(arg))
		}
		if s, err = s.Set(name, value); err != nil {
			return err
		}
	}
	s.Enabled = was.Enabled || enable
	if err := s.Validate(); err != nil {
		return refused(err)
	}
	if err := free(ctx, kube, s); err != nil {
		return refused(err)
	}
	lost, err := cutOff(ctx, kube, at, was, s)
	if err != nil {
		return err
	}
	if lost != "" && !a.force {
		return refused(errors.New(lost + ". With --force it is done"))
	}
	plan(a, was, s)
	if lost != "" {
		a.say("Warning: %s.", lost)
	}
	if on, err := a.confirm(ctx); err != nil || !on {
		return err
	}
	o := types.Operation{Op: "set edge", Target: auditTarget, Why: "zedkube edge set " + strings.Join(args, " ")}
	if enable {
		o = types.Operation{Op: "enable edge", Target: auditTarget, Why: "zedkube edge enable " + strings.Join(args, " ")}
	}
	return c.audited(o, func() error { return carryOut(ctx, kube, a, at, was, s, enable) })
}

// cutOff says whom other settings cut off; "" for nobody, as where there were none.
func cutOff(ctx context.Context, kube Cluster, at object.Object, was, s settings.Settings) (string, error) {
	if at == nil {
		return "", nil
	}
	seen, err := look(ctx, kube)
	if err != nil {
		return "", err
	}
	joined := cloud.Judge(seen, time.Now()).Joined()
	lost := cloud.CutOff(seen, was, s, len(joined))
	if len(lost) == 0 {
		return "", nil
	}
	return fmt.Sprintf("this takes away what edge nodes that were asked to join (%d) have in their own files: %s. Who uses it there is cut off until it is changed there, or it joins again",
		len(joined), strings.Join(lost, ", ")), nil
}

// auditTarget is what the audit trail says that enable, disable and set change.
const auditTarget = "configmap/" + cloud.Where + "/" + cloud.Controller

// free asks the API server whether it would take the Service, where the namespace exists already: a port may be
// another Service's.
func free(ctx context.Context, kube Cluster, s settings.Settings) error {
	there, err := kube.Get(ctx, object.Ref{Kind: object.Namespace, Name: cloud.Where})
	if err != nil || there == nil {
		return err
	}
	r, o := cloud.Probe(s)
	_, err = kube.Apply(ctx, r, o, true)
	return err
}

// plan says what will be.
func plan(a *acting, was, s settings.Settings) {
	changed := settings.Changed(was, s)
	switch {
	case s.Enabled && !was.Enabled:
		a.say("KubeEdge is to be switched on. These are made in namespace %s, and the controller makes the rest:", cloud.Where)
		a.say("  ServiceAccount, roles and Deployment %s; ConfigMap %s with the settings", cloud.Controller, cloud.Controller)
	case len(changed) == 0:
		a.say("Nothing is to be changed.")
	case !s.Enabled:
		a.say("KubeEdge is off: the settings are for when it is switched on.")
	}
	restarts := map[string]string{}
	for _, k := range settings.Keys() {
		restarts[k.Name] = k.Restarts
	}
	for _, name := range changed {
		line := fmt.Sprintf("  %s: %s -> %s", name, cmp.Or(was.Value(name), "none"), cmp.Or(s.Value(name), "none"))
		if was.Enabled && restarts[name] != "" {
			line += ", restarts " + restarts[name]
		}
		a.say("%s", line)
	}
	sayPorts(a, s)
	for _, text := range s.Warnings() {
		a.say("Warning: %s.", text)
	}
}

func sayPorts(a *acting, s settings.Settings) {
	a.say("A firewall between edge nodes and servers has to let through:")
	for _, p := range s.Open() {
		a.say("  %d/%s  %s", p.Port, strings.ToLower(p.Protocol), p.Name)
	}
}

// carryOut makes what the controller needs, and writes the settings last: from then on it acts by them.
func carryOut(ctx context.Context, kube Cluster, a *acting, at object.Object, was, s settings.Settings, enable bool) error {
	if s.Enabled {
		crds, err := cloud.Definitions()
		if err != nil {
			return err
		}
		refs, objects := cloud.Made(s, crds)
		for i, r := range refs {
			// set of another version must not take permissions back that the controller's version needs.
			if !enable && (r.Kind != object.Deployment || s.ControllerImage == was.ControllerImage) {
				continue
			}
			if _, err := kube.Apply(ctx, r, objects[i], false); err != nil {
				return err
			}
			if r.Kind != object.Namespace {
				continue
			}
			// On the first enable it could not be asked before: nothing runs yet that would try it again and again.
			if err := free(ctx, kube, s); err != nil {
				return refused(err)
			}
		}
	}
	if err := write(ctx, kube, at, s); err != nil {
		return fmt.Errorf("%w; if somebody else has just changed the settings, try again", err)
	}
	if s.Enabled && !was.Enabled {
		a.say("KubeEdge is on. It is ready in about a minute: zedkube-edge status")
	} else {
		a.say("The settings are written.")
	}
	return nil
}

func (c *commands) disable() *cobra.Command {
	var a acting
	var purge bool
	cmd := &cobra.Command{
		Use:   "disable [--purge] [--force] [--yes | --dry-run]",
		Short: "Switch KubeEdge off and remove what it has in the cluster",
		Long: "Switch KubeEdge off and remove what it has in the cluster. A plan is shown first. Pods on edge nodes go on. What lets edge\n" +
			"nodes connect again once it is switched on stays: the definitions, the Nodes, the settings, and KubeEdge's own secrets;\n" +
			"--purge removes these as well, and then every edge node has to join again. Without --force it is refused while edge nodes are\n" +
			"Ready, and with --purge while there are any, or names that were asked to join.",
		Example: "  zedkube-edge disable --dry-run\n  zedkube-edge disable --purge --yes", Args: terminal.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.on(cmd)
			return c.remove(cmd.Context(), &a, purge)
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "remove also the definitions, the Nodes of edge nodes and the namespace")
	cmd.Flags().BoolVar(&a.force, "force", false, "also while edge nodes are Ready, or have to join again")
	a.flags(cmd)
	return cmd
}

func (c *commands) remove(ctx context.Context, a *acting, purge bool) error {
	kube, err := c.dial()
	if err != nil {
		return err
	}
	s, at, err := current(ctx, kube)
	if err != nil {
		return err
	}
	seen, err := look(ctx, kube)
	if err != nil {
		return err
	}
	r := cloud.Judge(seen, time.Now())
	joined := r.Joined()
	switch {
	case a.force:
	case purge && len(joined) > 0:
		return refused(fmt.Errorf("after --purge these edge nodes have to join again: %s. With --force it is done", strings.Join(joined, ", ")))
	case len(r.Ready) > 0:
		return refused(fmt.Errorf("edge nodes are Ready: %s. With --force they lose their connection", strings.Join(r.Ready, ", ")))
	}
	crds, err := cloud.Definitions()
	if err != nil {
		return err
	}
	refs := cloud.Dropped(purge, crds)
	if purge {
		refs = append(refs, cloud.Purged(seen, time.Now())...)
	}
	a.say("KubeEdge is to be switched off. These are removed:")
	for _, ref := range refs {
		a.say("  %s", ref)
	}
	switch {
	case purge && len(joined) > 0:
		a.say("These edge nodes have to join again: %s.", strings.Join(joined, ", "))
	case !purge:
		a.say("These stay: the definitions of KubeEdge, %d edge nodes, the settings, the names that were asked to join, and KubeEdge's own secrets and record in namespace %s.", len(r.Nodes), cloud.Where)
	}
	if on, err := a.confirm(ctx); err != nil || !on {
		return err
	}
	o := types.Operation{Op: "disable edge", Target: auditTarget, Why: "zedkube edge disable"}
	if purge {
		o.Why += " --purge"
	}
	return c.audited(o, func() error { return drop(ctx, kube, a, at, s, refs, seen) })
}

// drop switches off in the settings at, where there are any, and removes objects. Of Nodes it removes the very ones that were
// seen: a member may have the name by now.
func drop(ctx context.Context, kube Cluster, a *acting, at object.Object, s settings.Settings, refs []object.Ref, seen map[object.Ref]object.Object) error {
	// First, so that a controller that still runs makes nothing again.
	if at != nil {
		s.Enabled = false
		if err := write(ctx, kube, at, s); err != nil {
			return err
		}
	}
	for _, ref := range refs {
		uid := ""
		if ref.Kind == object.Node {
			uid = seen[ref].UID()
		}
		if err := kube.Delete(ctx, ref, uid); err != nil {
			return err
		}
	}
	a.say("KubeEdge is off.")
	return nil
}

// look reads once what the controller keeps in sight.
func look(ctx context.Context, kube Cluster) (map[object.Ref]object.Object, error) {
	seen := map[object.Ref]object.Object{}
	for _, v := range cloud.Views() {
		list, err := kube.List(ctx, v)
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			seen[o.Ref(v.Ref.Kind)] = o
		}
	}
	return seen, nil
}
