package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// unknownCommand is the exit code that every help names.
const unknownCommand = 99

func TestHelpFitsATerminalAndSaysHowItEnds(t *testing.T) {
	root := New("devel", nil)
	for _, c := range everyCommand(root) {
		text := c.UsageString()
		for line := range strings.Lines(text) {
			if n := terminal.Cells(strings.TrimRight(line, "\n")); n >= 80 {
				t.Errorf("%s --help: a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		if strings.TrimSpace(c.Short) == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s has the short text %q", c.CommandPath(), c.Short)
		}
		if use := c.UseLine(); len(use) >= 88 {
			t.Errorf("%s: a usage of %d columns", use, len(use))
		}
		agent := c == root || c.Name() == "completion"
		if !agent && (!strings.Contains(c.Long, "Exit codes:\n  0") || !strings.Contains(c.Long, "  99  unknown command")) {
			t.Errorf("%s --help does not say its exit codes", c.CommandPath())
		}
	}
}

func TestTheSameFlagIsTheSameEverywhere(t *testing.T) {
	kinds := map[string]string{}
	for _, c := range everyCommand(New("devel", nil)) {
		for _, name := range []string{"output", "watch", "since", "check", "timeout", "reason"} {
			f := c.Flags().Lookup(name)
			if f == nil {
				continue
			}
			if kind := f.Value.Type() + " -" + f.Shorthand; kinds[name] == "" {
				kinds[name] = kind
			} else if kinds[name] != kind {
				t.Errorf("%s --%s is a %s, elsewhere a %s", c.CommandPath(), name, kind, kinds[name])
			}
		}
	}
}

// commanded runs a command in this process.
func commanded(ctx context.Context, args ...string) (out string, err error) {
	var b bytes.Buffer
	c := New("devel", nil)
	c.SetArgs(args)
	c.SetOut(&b)
	c.SetErr(&b)
	c.SetIn(bytes.NewReader(nil))
	err = c.ExecuteContext(ctx)
	return b.String(), err
}

func TestWrongWordsSayWhatIsRight(t *testing.T) {
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"statsu":             {unknownCommand, `unknown command "statsu"; did you mean "zedkube status"?`},
		"frobnicate":         {unknownCommand, `unknown command "frobnicate"; "zedkube --help" lists them`},
		"drain plam":         {unknownCommand, `unknown command "plam"; did you mean "zedkube drain plan"?`},
		"join frobnicate":    {unknownCommand, `unknown command "frobnicate"; "zedkube join --help" lists them`},
		"get nodes -o wide":  {unknownCommand, `unknown command "get"; did you mean "zedkube nodes"? kubectl is in "eve enter kube": kubectl get nodes`},
		"get secrets":        {unknownCommand, `unknown command "get"; did you mean "zedkube status"? kubectl is in "eve enter kube": kubectl get secrets`},
		"describe pod/cam-0": {unknownCommand, `unknown command "describe"; did you mean "zedkube top pods"? kubectl is in "eve enter kube": kubectl describe pod/cam-0`},
		"cordon node-1":      {unknownCommand, `unknown command "cordon"; did you mean "zedkube drain request"? kubectl is in "eve enter kube": kubectl cordon node-1`},
		"pods -A":            {unknownCommand, `unknown command "pods"; did you mean "zedkube top pods"? kubectl is in "eve enter kube": kubectl get pods`},
		"exec -it x":         {unknownCommand, `unknown command "exec"; kubectl is in "eve enter kube": kubectl exec`},
		"help frobnicate":    {unknownCommand, `unknown command "frobnicate"; "zedkube --help" lists them`},
		"help drain plam":    {unknownCommand, `unknown command "plam"; did you mean "zedkube drain plan"?`},
		"nodes a b":          {terminal.ExitUsage, "usage: zedkube nodes [NODE]"},
		"apps a b":           {terminal.ExitUsage, "usage: zedkube apps [APP]"},
		"status x":           {terminal.ExitUsage, "usage: zedkube status "},
		"version x":          {terminal.ExitUsage, "usage: zedkube version"},
		"run x":              {terminal.ExitUsage, "usage: zedkube run"},
		"completion":         {terminal.ExitUsage, "usage: zedkube completion bash|zsh|fish"},
		"completion pwsh":    {terminal.ExitUsage, `shell "pwsh": want bash, zsh, fish`},
		"nodes --frobnicate": {terminal.ExitUsage, `unknown flag: --frobnicate; see "zedkube nodes --help"`},
		"drain status -o":    {terminal.ExitUsage, `flag needs an argument: 'o' in -o; see "zedkube drain status --help"`},
		"audit --since soon": {terminal.ExitUsage, `--since: time "soon": want`},
		"logs x --since -1m": {terminal.ExitUsage, `--since: time "-1m": want`},
		"doctor --only x":    {terminal.ExitUsage, "there is no check x; zedkube doctor --help lists them"},
	} {
		_, err := commanded(t.Context(), append([]string{"--root", t.TempDir()}, strings.Fields(line)...)...)
		if terminal.ExitCode(err) != want.code || err == nil || !strings.HasPrefix(err.Error(), want.says) {
			t.Errorf("%s: exit code %d, %v; want %d, %s", line, terminal.ExitCode(err), err, want.code, want.says)
		}
	}
}

func TestARootThatIsNoneIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{file, file + "-not"} {
		for _, words := range everyWords() {
			_, err := commanded(t.Context(), append(words, "--root", root)...)
			if terminal.ExitCode(err) != terminal.ExitUsage || !errors.Is(err, device.ErrNoDevice) {
				t.Errorf("%q --root %s: %v", words, root, err)
			}
		}
	}
	if _, err := os.Stat(file + "-not"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
}

// everyWords are the words of every command that is not the agent, with the
// arguments that it has to have.
func everyWords() (all [][]string) {
	needs := map[string][]string{
		"unlock": {"node-1"}, "logs": {"cam"}, "detach": {"node-1", "6ba7b812-9dad-11d1-80b4-00c04fd430c8"}, "completion": {"bash"},
		"release": {"v1.35.0+k3s1"}, "remove": {"node-1"}, "forget": {"node-1"}, "revoke": {"zedkube-kubeconfig-x7k2p"}, "agent": {"node-1"},
	}
	for _, c := range everyCommand(New("devel", nil)) {
		if c.HasParent() && c.Name() != "run" {
			all = append(all, append(strings.Fields(c.CommandPath())[1:], needs[c.Name()]...))
		}
	}
	return all
}

// outside are arguments that lead a test out of its directory, or to other
// machines.
func outside(arg string) bool {
	for _, flag := range []string{"--root", "--kubeconfig", "--file", "-"} {
		if strings.HasPrefix(arg, flag) && (flag != "-" || !strings.HasPrefix(arg, "--") && strings.Contains(arg, "f") || arg == "--") {
			return true
		}
	}
	_, value, _ := strings.Cut(arg, "=")
	for _, word := range []string{arg, value} {
		if ip, err := netip.ParseAddr(word); err == nil && !ip.IsLoopback() {
			return true
		}
	}
	return strings.ContainsRune(arg, 0) // nobody can give that to a program
}

// FuzzCommands gives every command words of all kinds, where there is neither
// agent nor API server: it ends soon, with an exit code that is documented and
// says why, and prints nothing that a terminal obeys.
func FuzzCommands(f *testing.F) {
	commands := append(everyWords(), []string{"pubKubeClusterUpdateStatus"}, []string{"help"}, []string{"nonsense"}, []string{"logs"}, []string{"drain", "unlock"}, []string{"vmiDetach"}, []string{"uncordon"}, []string{"members", "remove"}, []string{"version"})
	odd := []string{
		"", "--", "-", "-o", "-o=", "-ojson", "-oyaml", "-o\njsonpath={.}", "-ojsonpath={..}", "-o=jsonpath={[*].a}", "--output=xml", "--watch", "-w", "--watch=maybe",
		"--since=-1h", "--since=9999999h", "--since=\x1b[31m", "--until=12:00", "--limit=-1", "--limit=9223372036854775808", "--op=,,", "--by=\xff", "--time", "--failed",
		"--only=", "--only=disk,\u202e", "--check", "--once", "--json", "--sort=age", "--all", "pods", "--ascii", "--format=binary", "app/x", "cluster",
		"--server=::", "--token-file=-", "--token-file=..", "--server=127.0.0.1", "--server=\x1b]0;x\a", "--cluster=00000000-0000-0000-0000-000000000000", "--candidate=fe80::1%lo", "--api-port=-1", "--api-port=65536", "--kubernetes=v9999999999999999999.1",
		"--timeout=-1s", "--timeout=1ns", "--interval=0", "--container=..", "--cancel", "--force", "--reason=" + strings.Repeat("r", 5000), "--reason=\x1b[2J\u202e\x00",
		"../../../etc/passwd", "zedagent/../../x", "a/b/c/d", "/", "zedkube/NodeDrainStatus/..", "\x1b[31mred", "%s%n", strings.Repeat("x", 100_000), "node-1\nnode-2", "1", "-1", "K3S", "--help", "--nonsense",
	}
	for i := range commands {
		f.Add(byte(i), odd[i%len(odd)], "")
	}
	for i, word := range odd {
		f.Add(byte(i*7), word, odd[(i*5+1)%len(odd)])
	}
	f.Fuzz(func(t *testing.T, which byte, first, second string) {
		args := append([]string{}, commands[int(which)%len(commands)]...)
		for _, arg := range []string{first, second} {
			if outside(arg) {
				return
			}
			args = append(args, arg)
		}
		if first == "" && second == "" {
			args = args[:len(args)-2]
		}
		tryCommand(t, args)
	})
}

func tryCommand(t *testing.T, args []string) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root) // a support bundle is written here
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	out, err := commanded(ctx, append([]string{"--root", root, "--kubeconfig", filepath.Join(root, "none")}, args...)...)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%q took %s", args, took)
	}
	switch code := terminal.ExitCode(err); code {
	case 0, terminal.ExitUsage, terminal.ExitNotPublished, terminal.ExitFound, terminal.ExitJoinTimeout, terminal.ExitJoinWithdrawn, unknownCommand:
	default:
		t.Errorf("%q ends with exit code %d", args, code)
	}
	if err != nil {
		if strings.TrimSpace(err.Error()) == "" {
			t.Errorf("%q fails and does not say why", args)
		}
		out += terminal.Complaint(err)
	}
	if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 && !packs(args) {
		t.Errorf("%q prints %q", args, out[max(i-50, 0):min(i+50, len(out))])
	}
}

// packs reports a command whose output is for programs alone.
func packs(args []string) bool {
	return args[0] == "support-bundle" || args[0] == "completion" || args[0] == "help" && len(args) > 1 && cobra.ShellCompRequestCmd == args[1]
}
