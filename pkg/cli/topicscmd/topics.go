// Package topicscmd is zedkube topics.
package topicscmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/topicview"
)

// NewTopicsCommand shows any topic of any agent.
func NewTopicsCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "topics [AGENT/TOPIC[/KEY]] [--watch]",
		Short: "Show the topics that the agents of this device publish",
		Long: "Show the topics that the agents of this device publish: without an argument all topics, with one the values of that topic.\n" +
			"TOPIC alone is enough where only one agent has it. Enumerations are shown by name, secrets are masked,\n" +
			"and of other agents' topics only the fields that zedkube knows are shown.\n" +
			"With --watch it prints a line for each field that changes, in all topics or in that one.\n" +
			"It reads files below <root>/run and <root>/persist only.\n\n" + topicsExitCodes,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("usage: %s", c.UseLine()))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeTopics(o.Paths(), args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.Parse(); err != nil {
				return err
			}
			s, err := selectTopics(o.Paths(), strings.Join(args, ""))
			t := terminal.Of(c.OutOrStdout())
			switch {
			case err != nil:
				return err
			case out.Watch:
				w := topicsWatch{selected: s, outputs: &out, out: t, said: c.ErrOrStderr()}
				return w.run(c.Context())
			case s.topic == nil:
				return out.Show(c.Context(), t, time.Second, s.list)
			}
			return s.showValues(t, &out, c.ErrOrStderr())
		},
	}
	out.Flag(c)
	c.Flags().BoolVarP(&out.Watch, "watch", "w", false, "print a line, or with -o a document, for each field that changes")
	return c
}

const topicsExitCodes = `Exit codes:
  0   shown
  1   wrong usage, or the output could not be written
  2   there is no such topic or key, or a value cannot be read
  99  unknown command`

// selectedTopics are all topics of a device, or one of them.
type selectedTopics struct {
	root  string
	topic *topicview.Topic // nil for all
	key   string           // "" for all
}

// selectTopics finds the topic that an argument names; none for "".
func selectTopics(p device.Paths, arg string) (selectedTopics, error) {
	s := selectedTopics{root: p.Root}
	if arg == "" {
		return s, nil
	}
	topics, listed := topicview.List(p.Root)
	var same []string
	for _, t := range topics {
		rest, is := strings.CutPrefix(arg+"/", t.String()+"/")
		if is && strings.Count(rest, "/") <= 1 {
			s.topic, s.key = &t, strings.TrimSuffix(rest, "/")
			return s, nil
		}
		if strings.EqualFold(t.Name, arg[strings.LastIndex(arg, "/")+1:]) {
			same = append(same, terminal.Clean(t.String()))
			s.topic = &t
		}
	}
	switch {
	case len(same) == 1 && !strings.Contains(arg, "/"):
		return s, nil
	case len(same) > 0:
		return s, terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("%s: %w; did you mean %s?", terminal.Clean(arg), topicview.ErrNone, strings.Join(same, ", ")))
	}
	return s, terminal.ExitWith(terminal.ExitNotPublished, errors.Join(fmt.Errorf("%s: %w; zedkube topics lists them", terminal.Clean(arg), topicview.ErrNone), listed))
}

func completeTopics(p device.Paths, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	topics, _ := topicview.List(p.Root) // what cannot be read is not offered
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = terminal.Clean(t.String())
	}
	return names
}

// list is one look at all topics.
func (s selectedTopics) list(context.Context) terminal.View { return s.listAt(time.Now()) }

func (s selectedTopics) listAt(now time.Time) terminal.View {
	topics, err := topicview.List(s.root)
	switch {
	case err != nil:
		err = terminal.ExitWith(terminal.ExitNotPublished, err)
	case len(topics) == 0:
		err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("no topic was found below run and persist/status"))
	}
	view := terminal.Table{Columns: []terminal.Column{{Title: "TOPIC"}, {Title: "KEYS", Keep: 2, Right: true}, {Title: "SIZE", Keep: 3, Right: true}, {Title: "AGE", Keep: 4, Right: true}, {Title: "KIND", Keep: 1}}}
	for _, t := range topics {
		kind, age, size := "plain", "", uint64(max(t.Bytes, 0)) //nolint:gosec // not negative
		if t.Persistent {
			kind = "persistent"
		}
		if !t.Written.IsZero() {
			age = terminal.Span(now.Sub(t.Written))
		}
		view.Rows = append(view.Rows, []terminal.Cell{{Text: terminal.Clean(t.String())}, {Text: fmt.Sprint(t.Keys)}, {Text: terminal.BytesText(&size)}, {Text: age}, {Text: kind}})
	}
	if topics == nil {
		topics = []topicview.Topic{}
	}
	return terminal.View{Data: topics, Draw: view.Draw, Err: err}
}

// showValues prints the values of the topic.
func (s selectedTopics) showValues(t terminal.Terminal, out *terminal.Outputs, said io.Writer) error {
	values, err := topicview.Read(s.root, *s.topic, s.key)
	if err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, errors.New(terminal.Clean(err.Error())))
	}
	for _, v := range values {
		if v.Why != "" {
			fmt.Fprintf(said, "%s/%s: %s\n", terminal.Clean(s.topic.String()), terminal.Clean(v.Key), terminal.Clean(v.Why))
			err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("not every value can be read"))
		}
	}
	if !out.People() {
		var data any = values
		if s.key != "" {
			data = values[0].Value
		}
		return errors.Join(out.Encode(t, data, "  "), err)
	}
	for _, v := range values {
		if v.Why != "" {
			continue
		}
		if _, werr := fmt.Fprintf(t, "%s/%s, written %s\n", terminal.Clean(s.topic.String()), terminal.Clean(v.Key), terminal.Stamp(v.Written, time.Now())); werr != nil {
			return fmt.Errorf("write: %w", werr)
		}
		if werr := terminal.WriteJSON(t, v.Value, "  "); werr != nil {
			return fmt.Errorf("write: %w", werr)
		}
	}
	return err
}

// fieldText is a value of JSON for people: text without its quotes.
func fieldText(raw string) string {
	var s string
	if json.Unmarshal([]byte(raw), &s) == nil && s != "" {
		raw = s
	}
	return terminal.Clean(raw)
}
