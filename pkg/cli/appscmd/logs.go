package appscmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/printable"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/types"
)

const logsExitCodes = `Exit codes:
  0   the log was printed
  1   wrong usage, interrupted, no such application, or it has no log
  2   the API server cannot be queried
  99  unknown command`

type logsOptions struct {
	container string
	follow    bool
	previous  bool
	since     time.Time // zero for all there is
	escape    bool      // show control characters instead of printing them
}

// NewLogsCommand prints what an application writes, wherever it runs.
func NewLogsCommand(o *device.Options) *cobra.Command {
	var l logsOptions
	var since string
	var raw bool
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "logs APP [-f] [--container NAME] [--previous] [--since 10m] [--raw]",
		Short: "Print the log of an application",
		Long: "Print the log of an application: of its containers, or the console of its virtual machine, whichever node it runs on.\n" +
			"APP is its UUID or a prefix of it, its name, or its name in Kubernetes. The lines come from the kubelet,\n" +
			"through the API server: lines that were rotated away are only in EVE's log. With -o json each line is an object.\n\n" + logsExitCodes,
		Args: terminal.Words(1),
		RunE: func(c *cobra.Command, args []string) error {
			if since != "" {
				var err error
				if l.since, err = audit.ParseTime(since, time.Now()); err != nil {
					return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("--since: %w", err))
				}
			}
			p := o.Paths()
			app, err := findApp(p, args[0])
			if err != nil {
				return err
			}
			l.escape = !raw && terminal.Of(c.OutOrStdout()).Fd >= 0
			return printLogs(c.Context(), p, app, l, &out, c.OutOrStdout())
		},
		ValidArgsFunction: terminal.CompleteArgs(appWords(o, false)),
	}
	out.Flag(c)
	flags := c.Flags()
	flags.BoolVarP(&l.follow, "follow", "f", false, "keep printing until the containers terminate")
	flags.StringVar(&l.container, "container", "", "only this container")
	flags.BoolVar(&l.previous, "previous", false, "the log of the previous instance, before the last restart")
	flags.BoolVar(&raw, "raw", false, "do not escape control characters for a terminal")
	flags.StringVar(&since, "since", "", "only lines newer than a duration or a time: 2h, 7d, 2026-01-31, 15:04 (UTC)")
	return c
}

// findApp finds the application that is called so among those of this device.
func findApp(p device.Paths, name string) (types.AppInstanceConfig, error) {
	name = terminal.Named("app", name)
	files, err := filepath.Glob(filepath.Join(p.RunDir(), "zedagent", "AppInstanceConfig", "*.json"))
	if err != nil {
		return types.AppInstanceConfig{}, fmt.Errorf("find applications: %w", err)
	}
	names := func(a types.AppInstanceConfig) (id, display, kube string) {
		return a.UUIDandVersion.UUID.String(), a.DisplayName, a.KubeName()
	}
	var apps []types.AppInstanceConfig
	for _, file := range files {
		if cfg, _, err := device.ReadRecord[types.AppInstanceConfig](file); err == nil { // another one may be the one that is asked for
			apps = append(apps, cfg)
		}
	}
	slices.SortFunc(apps, func(a, b types.AppInstanceConfig) int {
		return strings.Compare(a.UUIDandVersion.UUID.String(), b.UUIDandVersion.UUID.String())
	})
	return choose(apps, name, func(a, b string) bool { return a == b }, names)
}

type source struct {
	pod       types.Pod
	container string
}

func printLogs(ctx context.Context, p device.Paths, app types.AppInstanceConfig, o logsOptions, out *terminal.Outputs, w io.Writer) error {
	kube, done, err := kubeapi.Dial(ctx, device.Silent(), p.Kubeconfig, types.NoOperations{})
	if err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	defer done()
	pods, err := kube.AppPodsNow(ctx)
	if err != nil {
		return device.APIError(err)
	}
	sources, err := sourcesOf(app, pods, o)
	if err != nil {
		return err
	}
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := make(chan loggedLine)
	var readers errgroup.Group
	if !o.follow {
		readers.SetLimit(1) // one after the other
	}
	go func() {
		defer close(lines)
		for _, s := range sources {
			readers.Go(func() error { return s.read(ctx, kube, o, lines) })
		}
		_ = readers.Wait()
	}()
	var wrong error
	for line := range lines {
		if err := line.write(w, out, len(sources) > 1, o.escape); err != nil && wrong == nil {
			wrong = fmt.Errorf("write: %w", err)
			cancel()
		}
	}
	switch {
	case wrong != nil:
		return wrong
	case asked.Err() != nil:
		return terminal.ErrInterrupted
	}
	return device.APIError(readers.Wait())
}

func sourcesOf(app types.AppInstanceConfig, pods []types.Pod, o logsOptions) ([]source, error) {
	var sources []source
	var names []string
	runs := false
	slices.SortFunc(pods, func(a, b types.Pod) int { return a.Created.Compare(b.Created) })
	for _, pod := range pods {
		if !app.OwnsAny(pod) {
			continue
		}
		runs = true
		for _, c := range pod.Containers {
			if app.IsVMI() && c.Name != guestConsole && c.Name != o.container {
				continue
			}
			names = append(names, c.Name)
			instance := c.Now
			if o.previous {
				instance = c.Last
			}
			if (o.container == "" || o.container == c.Name) && instance.ID != "" {
				sources = append(sources, source{pod: pod, container: c.Name})
			}
		}
	}
	slices.Sort(names)
	name := terminal.Clean(app.DisplayName)
	switch {
	case !runs:
		return nil, fmt.Errorf("application %s has no pod on any node: it is not running", name)
	case len(sources) > 0:
		return sources, nil
	case o.container != "" && !slices.Contains(names, o.container):
		return nil, fmt.Errorf("application %s has no container %q; it has %s", name, terminal.Clean(o.container), strings.Join(slices.Compact(names), ", "))
	case o.previous:
		return nil, fmt.Errorf("application %s has not restarted: there is no log of an earlier run", name)
	}
	return nil, fmt.Errorf("application %s has not started yet: there is no log", name)
}

// guestConsole is the container that writes the console of a virtual machine.
const guestConsole = "guest-console-log"

func (s source) read(ctx context.Context, kube *kubeapi.Client, o logsOptions, lines chan<- loggedLine) error {
	options := types.LogOptions{Container: s.container, Previous: o.previous, Follow: o.follow, Since: o.since}
	body, err := kube.Logs(ctx, s.pod, options)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := readLines(ctx, body, loggedLine{Pod: s.pod.Name, Container: s.container}, lines); err != nil {
		return fmt.Errorf("read log of pod %s: %w", s.pod.Name, err)
	}
	return nil
}

// printedLine is how much of a line is held, in bytes: a longer one is printed in
// parts, as in EVE's log.
const printedLine = 256 << 10

// readLines hands on the lines of a log, each as one of the container that line names.
func readLines(ctx context.Context, log io.Reader, line loggedLine, lines chan<- loggedLine) error {
	in := bufio.NewReaderSize(log, printedLine)
	for {
		part, err := in.ReadSlice('\n')
		line.Continues = errors.Is(err, bufio.ErrBufferFull)
		if len(part) > 0 {
			line.Text = strings.TrimSuffix(string(part), "\n")
			select {
			case lines <- line:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		switch line.Continued = line.Continues; {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !line.Continues:
			return err
		}
	}
}

// loggedLine is a line of a log, or a part of a long one.
type loggedLine struct {
	At        time.Time `json:",omitzero"`
	Pod       string
	Container string
	Text      string // of kubelets with the time in front, which write takes off for programs
	Continued bool   `json:",omitzero"` // it goes on with the line before
	Continues bool   `json:",omitzero"` // and the next one goes on with it
}

// write writes a line as it is for people, with whose it is where it is named, else a
// document. What a guest wrote may be anything: escape is for a terminal, which would obey
// some of it.
func (l loggedLine) write(w io.Writer, out *terminal.Outputs, named, escape bool) error {
	if !out.People() {
		if at, rest, ok := strings.Cut(l.Text, " "); ok && !l.Continued {
			if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
				l.At, l.Text = t, rest
			}
		}
		return out.Encode(w, l, "")
	}
	text := l.Text
	if escape {
		text = printable.Escape(text)
	}
	if l.Continued {
		text = "[continued] " + text
	}
	if named {
		text = l.Pod + "/" + l.Container + " " + text
	}
	if l.Continues {
		text += " [continues]"
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}
