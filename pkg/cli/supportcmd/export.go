package supportcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/report/evereport"
)

const exportExitCodes = `Exit codes:
  0   everything was printed and is current
  1   wrong usage, interrupted, or the output could not be written
  2   a message is missing; without MESSAGE, one that should be there
  3   everything was printed, but a part is old or incomplete
  99  unknown command`

// The messages that there are; "app" stands for one of each application.
const (
	messageCluster = "cluster"
	messageUpdate  = "cluster-update"
	messageNode    = "cluster-node"
	messageMetrics = "metrics"
	messageApp     = "app"
)

// NewExportCommand prints what a controller would get of the cluster.
func NewExportCommand(o *device.Options) *cobra.Command {
	var format string
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "export [--format json|binary] [--watch] [MESSAGE...]",
		Short: "Print the messages that a controller would receive about the cluster",
		Long: "Print the messages that a controller would receive about the cluster, made from the files of this device:\n" +
			"  cluster         the whole cluster; only on the node that reports for it\n" +
			"  cluster-update  the update of the kube container's components\n" +
			"  cluster-node    whether this node is Ready; this one asks the API server\n" +
			"  app             of each application whether it runs here; app/UUID for one\n" +
			"  metrics         what nodes and applications use; only on the node that reports for the cluster\n" +
			"Without MESSAGE, all that exist. As json each is a separate document, with its name and its type; as\n" +
			"binary only one is written, a serialized ZInfoMsg or, for metrics, ZMetricMsg. What is missing, old or incomplete\n" +
			"is reported on stderr.\n" +
			"With --watch each that exists is printed, and again whenever it changes, as a line of JSON or, as binary, with its\n" +
			"length before it. cluster-node is what the agent publishes. A slow reader gets the newest, not each change.\n\n" + exportExitCodes,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkExport(args, format, out.Watch); err != nil {
				return terminal.ExitWith(terminal.ExitUsage, err)
			}
			to := terminal.Of(c.OutOrStdout())
			if format == "binary" && !out.People() {
				return terminal.ExitWith(terminal.ExitUsage, errors.New("--format binary cannot be combined with -o"))
			}
			if format == "binary" && to.Fd >= 0 {
				return terminal.ExitWith(terminal.ExitUsage, errors.New("a binary message cannot be shown on a terminal: write it to a file"))
			}
			if out.Watch {
				w := exportWatch{paths: o.Paths(), names: args, binary: format == "binary", form: &out}
				return w.run(c.Context(), to, c.ErrOrStderr())
			}
			return export(c.Context(), newExporter(o.Paths(), device.Now(o.Root)), args, format == "binary", &out, to, c.ErrOrStderr())
		},
		ValidArgs: []string{messageCluster, messageUpdate, messageNode, messageMetrics, messageApp},
	}
	out.Flag(c)
	out.Foreign()
	c.Flags().BoolVarP(&out.Watch, "watch", "w", false, "print each message now and whenever it changes, until interrupted")
	c.Flags().StringVar(&format, "format", "json", "json or binary")
	terminal.Completed(c, "format", "json", "binary")
	return c
}

func checkExport(names []string, format string, watch bool) error {
	if format != "json" && format != "binary" {
		return fmt.Errorf("format %q: want json or binary", terminal.Clean(format))
	}
	switch {
	case format != "binary":
	case !watch && len(names) != 1:
		return errors.New("binary is for one message: name it")
	case len(names) == 0, len(names) > 1 && slices.Contains(names, messageMetrics):
		return errors.New("a binary stream is of one type: name metrics alone, or messages without it")
	}
	for _, name := range names {
		if id, ok := strings.CutPrefix(name, messageApp+"/"); ok {
			if _, err := uuid.Parse(id); err != nil {
				return fmt.Errorf("message %q: want %s/ and the UUID of an application", terminal.Clean(name), messageApp)
			}
			continue
		}
		if !slices.Contains([]string{messageCluster, messageUpdate, messageNode, messageMetrics, messageApp}, name) {
			return fmt.Errorf("message %q: want %s, %s, %s, %s or %s", terminal.Clean(name), messageCluster, messageUpdate, messageNode, messageApp, messageMetrics)
		}
	}
	return nil
}

type exported struct {
	name    string
	message proto.Message // nil for none
	missing string        // why there is none, a sentence
	inOrder bool          // it need not be there
	doubts  []string      // what in it is old or not whole, sentences
	notes   []string      // what else is to be known of it, sentences
}

// export prints the messages of those names, all for none.
func export(ctx context.Context, e *exporter, names []string, binary bool, form *terminal.Outputs, out, said io.Writer) error {
	all, err := e.all(ctx, names)
	if err != nil {
		return err
	}
	if binary && len(all) > 1 {
		return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("binary is for one message, and there are %d of %q: name one, such as %s", len(all), names[0], all[0].name))
	}
	var missing, doubtful []string
	width, _ := terminal.Of(said).Size()
	note := func(of exported, text string) {
		for _, line := range terminal.Draw(width, false, func(s *terminal.Screen) { s.Put(0, terminal.Plain, of.name+": "+terminal.Clean(text)) }) {
			fmt.Fprintln(said, line)
		}
	}
	for _, x := range all {
		for _, text := range slices.Concat(x.doubts, x.notes) {
			note(x, text)
		}
		if len(x.doubts) > 0 {
			doubtful = append(doubtful, x.name)
		}
		if x.message == nil {
			note(x, x.missing)
			if len(names) > 0 || !x.inOrder {
				missing = append(missing, x.name)
			}
			continue
		}
		raw, err := encode(x, binary, form)
		if err == nil {
			_, err = out.Write(raw)
		}
		if err != nil {
			return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("write %s: %w", x.name, err))
		}
	}
	return verdict(missing, doubtful)
}

func verdict(missing, doubtful []string) error {
	switch {
	case len(missing) > 0:
		return terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("missing: %s", strings.Join(missing, ", ")))
	case len(doubtful) > 0:
		return terminal.ExitWith(terminal.ExitExportDoubtful, fmt.Errorf("old or incomplete: %s", strings.Join(doubtful, ", ")))
	}
	return nil
}

func encode(x exported, binary bool, form *terminal.Outputs) ([]byte, error) {
	var b bytes.Buffer
	if binary && form.Watch {
		_, err := protodelim.MarshalTo(&b, x.message)
		return b.Bytes(), err
	}
	if binary {
		return evereport.Binary(x.message)
	}
	raw, err := evereport.JSON(x.message)
	if err != nil {
		return nil, err
	}
	err = form.Document(&b, struct {
		Name    string          `json:"name"`
		Type    string          `json:"type"`
		Message json.RawMessage `json:"message"`
	}{x.name, string(x.message.ProtoReflect().Descriptor().FullName()), raw})
	return b.Bytes(), err
}
