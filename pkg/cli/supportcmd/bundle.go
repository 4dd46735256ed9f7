// Package supportcmd is what people and programs elsewhere get of a device: zedkube
// support-bundle, export, page and version, and what EVE's update script reports.
package supportcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/bundle"
	"github.com/zedkube/zedkube/pkg/operate/overview"
)

// NewBundleCommand writes an archive for those who help from afar, with what some
// of all commands say.
func NewBundleCommand(o *device.Options, all func() *cobra.Command) *cobra.Command {
	var file string
	var include []string
	c := &cobra.Command{
		Use:   "support-bundle [-f FILE|-] [--include-topic AGENT/TOPIC]",
		Short: "Write an archive with all that support needs to know about this device, without its secrets",
		Long: "Write what is needed to understand this device into one archive (tar.gz) of at most 64 MiB: what the agents publish to\n" +
			"one another, the audit trail, the agent's answers on its socket, the output of commands, and the ends of logs.\n" +
			"Of other agents' topics only the fields that zedkube knows are included, and what looks like a token, a password,\n" +
			"a key or cipher data is redacted. Review it anyway before you share it. It contains a list of its files and of what\n" +
			"is missing (zedkube-bundle.json). Without -f it is written to the current directory. Unpacked, it is a root for\n" +
			"zedkube --root DIR.\n\n" + bundleExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			out := terminal.Of(c.OutOrStdout())
			if file == "-" && out.Fd >= 0 {
				return terminal.ExitWith(terminal.ExitUsage, errors.New("an archive cannot be shown on a terminal: write it to a file"))
			}
			b := newBundle(o, all, time.Now())
			b.Include = include
			ctx := c.Context()
			if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
				// Also when the terminal goes away no part of an archive is left.
				var stop context.CancelFunc
				ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
				defer stop()
			}
			if file == "-" {
				_, err := b.Write(ctx, out)
				return bundleError(ctx, err)
			}
			if file == "" {
				file = defaultBundle(b)
			}
			m, err := writeBundle(ctx, b, file)
			if err != nil {
				return bundleError(ctx, err)
			}
			fmt.Fprintf(c.ErrOrStderr(), "%d files in %s, %d left out: see %s in it\n", len(m.Files), terminal.Clean(file), len(m.LeftOut)+m.Omitted, bundle.ManifestFile)
			return nil
		},
	}
	c.Flags().StringArrayVar(&include, "include-topic", nil, "include all fields of this topic of another agent, AGENT/TOPIC; the list in the archive says so")
	c.Flags().StringVarP(&file, "file", "f", "", `file to write, or "-" for stdout`)
	return c
}

const bundleExitCodes = `Exit codes:
  0   written; its list names what is missing
  1   wrong usage, or interrupted
  2   it could not be written
  99  unknown command`

func bundleError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted: nothing was written"))
	}
	return terminal.ExitWith(terminal.ExitNotPublished, err)
}

func newBundle(o *device.Options, all func() *cobra.Command, now time.Time) bundle.Bundle {
	p := o.Paths()
	seen := overview.Read(p.Root, now)
	return bundle.Bundle{
		Root: p.Root, Node: seen.Node.Name, Version: p.Version, Made: seen.ReadAt, Limit: bundle.DefaultLimit,
		Extras: bundleExtras(o, all, p, seen),
	}
}

// defaultBundle is a name of letters, digits and dashes in the present directory.
func defaultBundle(b bundle.Bundle) string {
	name := []byte("zedkube-support-")
	for _, r := range []byte(b.Node) {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' {
			name = append(name, r)
		}
	}
	return string(name) + "-" + b.Made.UTC().Format("20060102-150405") + ".tar.gz"
}

// writeBundle writes the whole file or none, for its owner alone. A link in its
// place is replaced, not followed.
func writeBundle(ctx context.Context, b bundle.Bundle, file string) (m bundle.Manifest, err error) {
	part, err := os.CreateTemp(filepath.Dir(file), ".zedkube-support-*") // mode 0600
	if err != nil {
		return m, fmt.Errorf("write %s: %w", file, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(part.Name()) // the reason is told
		}
	}()
	m, err = b.Write(ctx, part)
	if err == nil {
		err = part.Sync()
	}
	if cerr := part.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		return m, fmt.Errorf("write %s: %w", file, err)
	}
	return m, nil
}

// limitedBuffer keeps the front of what is written.
type limitedBuffer struct {
	kept []byte
	lost int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), maxOutput-len(b.kept))
	b.kept = append(b.kept, p[:n]...)
	b.lost += len(p) - n
	return len(p), nil
}

const (
	// maxOutput bounds the output of a command and an answer of the agent.
	maxOutput = 8 << 20
	// commandWithin and socketWithin are each for one of them: some ask the
	// API server, which may be silent.
	commandWithin = 15 * time.Second
	socketWithin  = 5 * time.Second
)

// bundleExtras are what is no file: versions, what commands say and what the
// agent answers.
func bundleExtras(o *device.Options, all func() *cobra.Command, p device.Paths, seen overview.Overview) []bundle.Source {
	extras := []bundle.Source{{Name: "versions.json", Form: bundle.JSON, Get: func(context.Context) ([]byte, error) { return versions(p.Version) }}}
	for _, line := range []string{"status", "status -o json", "doctor", "doctor -o json", "drain status", "nodes", "apps", "topics"} {
		args := strings.Fields(line)
		name, form := strings.ReplaceAll(line, " ", "-")+".txt", bundle.Text
		if command, ok := strings.CutSuffix(line, " -o json"); ok {
			name, form = command+".json", bundle.JSON
		}
		extras = append(extras, bundle.Source{Name: "commands/" + name, Form: form, Get: func(ctx context.Context) ([]byte, error) { return commandSays(ctx, o, all(), args) }})
	}
	if seen.Copied {
		return extras
	}
	return append(extras,
		answerOf(p, "agent/metrics.txt", "/metrics"), answerOf(p, "agent/goroutines.txt", "/debug/pprof/goroutine?debug=2"),
		answerOf(p, "agent/overview.json", "/api/overview"), answerOf(p, "kubernetes/nodes.json", overview.NodesPath))
}

// commandSays is what a command of this program prints, in this process.
func commandSays(ctx context.Context, o *device.Options, c *cobra.Command, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	var out, wrong limitedBuffer
	c.SetArgs(append([]string{"--root", o.Root, "--kubeconfig", o.Kubeconfig}, args...))
	c.SetOut(&out)
	c.SetErr(&wrong)
	c.SetContext(ctx)
	err := c.ExecuteContext(ctx)
	if len(out.kept) == 0 && err != nil {
		return nil, err
	}
	if args[len(args)-1] != "json" && (err != nil || len(wrong.kept) > 0) {
		out.kept = fmt.Appendf(out.kept, "\n%s[exit code %d: %v]\n", wrong.kept, terminal.ExitCode(err), err)
	}
	if out.lost > 0 {
		return nil, fmt.Errorf("it is longer than %d bytes", maxOutput)
	}
	return out.kept, nil
}

func answerOf(p device.Paths, name, path string) bundle.Source {
	s := bundle.Source{Name: name}
	if strings.HasSuffix(name, ".json") {
		s.Form = bundle.JSON
	}
	s.Get = func(ctx context.Context) ([]byte, error) {
		client := boundedhttp.NewSocketClient(p.Socket)
		defer client.CloseIdleConnections()
		return boundedhttp.Whole(ctx, client, "http://zedkube"+path, maxOutput, socketWithin)
	}
	return s
}

func versions(version string) ([]byte, error) {
	v := map[string]any{"zedkube": version, "go": runtime.Version(), "arch": runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		build := map[string]string{}
		for _, s := range info.Settings {
			build[s.Key] = s.Value
		}
		v["build"] = build
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		v["kernel"] = unix.ByteSliceToString(u.Release[:])
	}
	return json.MarshalIndent(v, "", "  ")
}
