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
  1   wrong usage, interrupted, no such application or pod, it has no log, or its edge node is offline or does not answer
  2   the API server cannot be queried
  99  unknown command`

type logsOptions struct {
	pod       string // namespace/name; "" for an application
	edge      string // the same, of a pod at the edge
	container string
	tail      int64 // lines, negative for all
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
		Use:   "logs APP|k3s|upgrade-component|--pod NAMESPACE/NAME [-f] [--tail N]",
		Short: "Print the log of an application, of a pod, of k3s or of EVE's upgrade-component",
		Long: "Print the log of an application: of its containers, or the console of its virtual machine, whichever node it runs on.\n" +
			"APP is its UUID or a prefix of it, its name, or its name in Kubernetes; --pod is for any other pod, --edge for one on a node\n" +
			"of KubeEdge: if that is offline, or is silent for 10 s, it ends and says what was known of it before. The lines come from the\n" +
			"kubelet, through the API server: lines that were rotated away are only in EVE's log. With -o json each line is an object.\n" +
			"k3s and upgrade-component are what k3s and EVE's updates of its components write on this device, to /persist/kubelog; they\n" +
			"need no API server. An application of that name is found by its UUID.\n\n" + logsExitCodes,
		Args: terminal.Words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if since != "" {
				var err error
				if l.since, err = audit.ParseTime(since, time.Now()); err != nil {
					return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("--since: %w", err))
				}
			}
			t := terminal.Of(c.OutOrStdout())
			l.escape = !raw && t.Fd >= 0
			if l.edge != "" {
				l.pod = l.edge
			}
			if (len(args) == 0) == (l.pod == "") {
				return terminal.ExitWith(terminal.ExitUsage, errors.New("usage: zedkube logs APP, or zedkube logs k3s, zedkube logs upgrade-component, zedkube logs --pod NAMESPACE/NAME"))
			}
			if len(args) > 0 && fileOf(args[0]) != "" {
				return l.printFile(c.Context(), o.Paths(), args[0], &out, t)
			}
			find, err := l.finder(o.Paths(), args)
			if err != nil {
				return err
			}
			return printLogs(c.Context(), o.Paths(), find, l, &out, c.OutOrStdout())
		},
		ValidArgsFunction: terminal.CompleteArgs(logWords(o)),
	}
	out.Flag(c)
	flags := c.Flags()
	flags.BoolVarP(&l.follow, "follow", "f", false, "keep printing until the containers terminate")
	flags.StringVar(&l.pod, "pod", "", "the log of this pod, NAMESPACE/NAME, instead of an application's")
	flags.StringVar(&l.edge, "edge", "", "the log of this pod, NAMESPACE/NAME, which runs on a node of KubeEdge")
	c.MarkFlagsMutuallyExclusive("pod", "edge")
	flags.StringVarP(&l.container, "container", "c", "", "only this container")
	flags.Int64Var(&l.tail, "tail", -1, "only the last `N` lines of each container; of k3s and upgrade-component 1000 if it is not given")
	flags.BoolVar(&l.previous, "previous", false, "the log of the previous instance, before the last restart")
	flags.BoolVar(&raw, "raw", false, "do not escape control characters for a terminal")
	flags.StringVar(&since, "since", "", "only lines newer than a duration or a time: 2h, 7d, 2026-01-31, 15:04 (UTC)")
	return c
}

// logWords gives what has a log to the shell.
func logWords(o *device.Options) func(context.Context) []string {
	return func(ctx context.Context) []string { return append(appWords(o, false)(ctx), logK3s, logUpgrade) }
}

// finder finds the containers whose log is asked for.
func (l logsOptions) finder(p device.Paths, args []string) (func(context.Context, *kubeapi.Client) ([]source, error), error) {
	if l.pod == "" {
		app, err := findApp(p, args[0])
		return func(ctx context.Context, kube *kubeapi.Client) ([]source, error) {
			pods, err := kube.AppPodsNow(ctx)
			if err != nil {
				return nil, device.APIError(err)
			}
			return sourcesOf(app, pods, l)
		}, err
	}
	namespace, name, ok := strings.Cut(l.pod, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("pod %q: want NAMESPACE/NAME", terminal.Clean(l.pod)))
	}
	return func(ctx context.Context, kube *kubeapi.Client) ([]source, error) {
		pod, err := kube.PodNow(ctx, namespace, name)
		if err != nil {
			return nil, device.APIError(err)
		}
		if l.edge != "" {
			if err := online(ctx, kube, p, pod); err != nil {
				return nil, err
			}
		}
		return chosen("pod "+terminal.Clean(l.pod), []types.Pod{pod}, func(types.Container) bool { return false }, l)
	}, nil
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

func printLogs(ctx context.Context, p device.Paths, find func(context.Context, *kubeapi.Client) ([]source, error), o logsOptions, out *terminal.Outputs, w io.Writer) error {
	kube, done, err := kubeapi.Dial(ctx, device.Silent(), p.Kubeconfig, types.NoOperations{})
	if err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	defer done()
	sources, err := find(ctx, kube)
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
			readers.Go(func() error {
				if o.edge != "" {
					return s.readEdge(ctx, kube, p, o, lines)
				}
				return s.read(ctx, kube, o, lines, func(bool) {})
			})
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
	name := "application " + terminal.Clean(app.DisplayName)
	pods = slices.DeleteFunc(pods, func(p types.Pod) bool { return !app.OwnsAny(p) })
	if len(pods) == 0 {
		return nil, fmt.Errorf("%s has no pod on any node: it is not running", name)
	}
	return chosen(name, pods, func(c types.Container) bool { return app.IsVMI() && c.Name != guestConsole && c.Name != o.container }, o)
}

// chosen are the containers of pods that are asked for and have a log; name is what they are of.
func chosen(name string, pods []types.Pod, skip func(types.Container) bool, o logsOptions) ([]source, error) {
	var sources []source
	var names []string
	slices.SortFunc(pods, func(a, b types.Pod) int { return a.Created.Compare(b.Created) })
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if skip(c) {
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
	switch {
	case len(sources) > 0:
		return sources, nil
	case o.container != "" && !slices.Contains(names, o.container):
		return nil, fmt.Errorf("%s has no container %q; it has %s", name, terminal.Clean(o.container), strings.Join(slices.Compact(names), ", "))
	case o.previous:
		return nil, fmt.Errorf("%s has not restarted: there is no log of an earlier run", name)
	}
	return nil, fmt.Errorf("%s has not started yet: there is no log", name)
}

// guestConsole is the container that writes the console of a virtual machine.
const guestConsole = "guest-console-log"

// logsAsker opens logs, and knows the nodes of KubeEdge.
type logsAsker interface {
	Logs(ctx context.Context, pod types.Pod, o types.LogOptions) (io.ReadCloser, error)
	EdgeNode(ctx context.Context, name string) (types.Node, bool, error)
}

// read hands on the lines of a log. waits hears when it begins to wait for the answer or more of it, and when it ends to.
func (s source) read(ctx context.Context, kube logsAsker, o logsOptions, lines chan<- loggedLine, waits func(bool)) error {
	options := types.LogOptions{Container: s.container, Previous: o.previous, Follow: o.follow, Since: o.since, Tail: max(o.tail, 0)}
	waits(true)
	body, err := kube.Logs(ctx, s.pod, options)
	waits(false)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := readLines(ctx, waitedReader{body, waits}, loggedLine{Pod: s.pod.Name, Container: s.container}, lines); err != nil {
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
