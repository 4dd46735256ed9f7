package supportcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/bundle"
	"github.com/zedkube/zedkube/pkg/operate/overview"
)

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
		name := strings.ReplaceAll(strings.TrimSuffix(line, " -o json"), " ", "-") + ".txt"
		if strings.HasSuffix(line, "json") {
			name = args[0] + ".json"
		}
		form := bundle.Text
		if strings.HasSuffix(name, ".json") {
			form = bundle.JSON
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

// answerOf asks the agent on its socket.
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

// versions are those of this program and of the kernel.
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
