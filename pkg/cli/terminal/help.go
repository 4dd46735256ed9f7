package terminal

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Helpful makes what a command says of itself, and of wrong words, one thing for
// all commands: lines that fit a serial console, and an error that says where to
// look.
func Helpful(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		_, _ = io.WriteString(c.OutOrStdout(), helpText(c)) // to whom it cannot be said
	})
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := io.WriteString(c.OutOrStderr(), helpText(c))
		return err
	})
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); !c.HasParent() && len(args) > 0 { // the flags of a command that there is not
			return NoCommand(c, args)
		}
		return ExitWith(ExitUsage, fmt.Errorf("%w; see %q", err, c.CommandPath()+" --help"))
	})
	root.SetHelpCommand(newHelpCommand())
}

// newHelpCommand is cobra's, with an error for a command that there is not.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command",
		RunE: func(c *cobra.Command, args []string) error {
			found, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return NoCommand(found, append(rest, args...))
			}
			return found.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []string, d cobra.ShellCompDirective) {
			found, _, _ := c.Root().Find(args)
			for _, sub := range found.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// NewCompletionCommand is cobra's, for the shells that may be on a device.
func NewCompletionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print a shell completion script for commands, flags, nodes and applications",
		Long: "Print a shell completion script for commands, flags, nodes and applications. For this session:\n" +
			"  source <(zedkube completion bash)\n",
		ValidArgs: shells,
		Args:      Words(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch root, out := c.Root(), c.OutOrStdout(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return ExitWith(ExitUsage, fmt.Errorf("shell %q: want %s", Clean(args[0]), strings.Join(shells, ", ")))
		},
	}
}

// definition matches an indented line of a word and what it means.
var definition = regexp.MustCompile(`^( +\S+ {2,})(\S.*)$`)

// helpText is all that a command says of itself, in lines that fit a terminal
// of the usual width.
func helpText(c *cobra.Command) string {
	s := &Screen{Width: usualWidth}
	putProse(s, c.Short+".")
	if c.Long != "" {
		s.Lines = nil
		putProse(s, c.Long)
	}
	s.Gap()
	s.Put(0, Plain, "Usage:")
	if c.Runnable() && (c.UseLine() != c.CommandPath() || !c.HasAvailableSubCommands()) { // else it only helps
		s.Put(2, Plain, c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		s.Put(2, Plain, c.CommandPath()+" COMMAND")
		s.Gap()
		s.Put(0, Plain, "Commands:")
		putCommands(s, c)
	}
	if c.Example != "" {
		s.Gap()
		s.Lines = append(s.Lines, "Examples:", strings.TrimRight(c.Example, "\n"))
	}
	text := strings.Join(s.Lines, "\n") + "\n"
	if flags := c.LocalFlags(); flags.HasAvailableFlags() {
		text += "\nFlags:\n" + flags.FlagUsagesWrapped(usualWidth-1)
	}
	if flags := c.InheritedFlags(); flags.HasAvailableFlags() {
		text += "\nFlags of every command:\n" + flags.FlagUsagesWrapped(usualWidth-1)
	}
	return text
}

// putProse is running text, whose lines are wrapped to the width, and what is indented,
// whose lines stay.
func putProse(s *Screen, text string) {
	running := ""
	flush := func() {
		if running != "" {
			s.Hang("", 0, Plain, running)
		}
		running = ""
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		m := definition.FindStringSubmatch(line)
		switch {
		case line == "":
			flush()
			s.Gap()
		case m != nil:
			flush()
			s.Hang(m[1], len(m[1]), Plain, m[2])
		case strings.HasPrefix(line, " "):
			flush()
			s.Lines = append(s.Lines, line)
		default:
			running += line + " "
		}
	}
	flush()
}

func putCommands(s *Screen, c *cobra.Command) {
	shown := slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool { return !sub.IsAvailableCommand() && sub.Name() != "help" })
	longest := 0
	for _, sub := range shown {
		longest = max(longest, len(sub.Name()))
	}
	for _, sub := range shown {
		s.Hang(fmt.Sprintf("  %-*s  ", longest, sub.Name()), longest+4, Plain, sub.Short)
	}
}

// Group is a command that only has others below it.
func Group(use, short, long string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Args: NoCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(below...)
	return c
}

// Words refuses another number of words than one of these.
func Words(numbers ...int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if !slices.Contains(numbers, len(args)) {
			return ExitWith(ExitUsage, fmt.Errorf("usage: %s", c.UseLine()))
		}
		return nil
	}
}

// NoCommand refuses words that name no command.
func NoCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !c.HasParent() {
		if hint := kubectlHint(c, args); hint != "" {
			return ExitWith(exitUnknownCommand, fmt.Errorf("unknown command %q; %s", Clean(args[0]), hint))
		}
	}
	c.SuggestionsMinimumDistance = 2
	hint := fmt.Sprintf("%q lists them", c.CommandPath()+" --help")
	if meant := c.SuggestionsFor(args[0]); len(meant) > 0 {
		hint = fmt.Sprintf("did you mean %q?", c.CommandPath()+" "+meant[0])
	}
	return ExitWith(exitUnknownCommand, fmt.Errorf("unknown command %q; %s", Clean(args[0]), hint))
}

// Complaint is an error as it is printed: in lines, and nothing in it is acted upon by
// a terminal. It is "" where the reader of the output is gone, or who watched has seen enough.
func Complaint(err error) string {
	if errors.Is(err, errNoReader) || errors.Is(err, ErrInterrupted) {
		return ""
	}
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		lines = append(lines, strings.Repeat(" ", min(indent, usualWidth))+Clean(line))
	}
	text := strings.Join(lines, "\n")
	if typesKubectl.MatchString(text) && !strings.Contains(text, InKube) {
		text += " (" + InKube + ")"
	}
	return text
}

// The exit codes of the commands (docs/wire.md, "Process").
const (
	ExitUsage          = 1
	ExitNotPublished   = 2 // or the API server cannot be queried
	ExitFound          = 3 // by a check, or in the way of a plan
	ExitDrainFailed    = 3
	ExitJoinTimeout    = 4
	ExitJoinWithdrawn  = 5
	ExitDetachRefused  = 3
	ExitDetachTimeout  = 4
	ExitExportDoubtful = 3
	ExitProbeUsage     = 2 // as EVE's cluster-status-probe; whatever else fails is 1
	exitUnknownCommand = 99
)

type exitError struct {
	code int
	error
}

// ExitWith is err with the exit code that the process ends with for it.
func ExitWith(code int, err error) error { return exitError{code, err} }

// Unwrap gives the reason.
func (e exitError) Unwrap() error { return e.error }

// ExitCode is what the process ends with.
func ExitCode(err error) int {
	var e exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.code
	default:
		return 1
	}
}

// ShowExitCodes are those of the commands that show something.
const ShowExitCodes = `Exit codes:
  0   it was shown
  1   wrong usage, interrupted, this is not a device, or it could not be printed
  2   there is nothing to show
  3   "status --check": something is wrong
  99  unknown command`
