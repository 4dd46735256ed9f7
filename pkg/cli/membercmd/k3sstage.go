package membercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3setcd"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

func newK3sStageCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	var g staging
	c := out.Flag(&cobra.Command{
		Use:   "stage [FILE] [--version VERSION] [--sha256 SUM]",
		Short: "Verify a k3s binary and keep it beside the one in use",
		Long: "Verify a k3s binary and keep it beside the one in use, of which nothing is changed: k3s goes on. Without FILE it is\n" +
			"downloaded from the release of k3s on GitHub. Its SHA-256 has to be the one in the release's own list, which is downloaded, or\n" +
			"the one in --sha256. Then it is run once, as nobody, and has to print VERSION. At most one is staged.\n\n" + k3sExitCodes,
		Example: "  zedkube k3s stage /mnt/usb/k3s --version v1.34.4+k3s1 --sha256 SUM",
		Args:    terminal.Words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			p := o.Paths()
			g.files, g.releases = k3sFiles(p), k3sbinary.NewReleases(runtime.GOARCH)
			if len(args) > 0 {
				g.file = args[0]
			}
			if g.version == "" {
				s, _, err := device.ReadRecord[types.K3sVersionStatus](p.TopicFile(device.Self, "K3sVersionStatus"))
				if g.version = s.Wanted; err != nil || g.version == "" {
					return terminal.ExitWith(terminal.ExitUsage, errors.New("the setting k3s.version names no version: name it by --version"))
				}
			}
			return out.RunAction(c, func(w io.Writer) error {
				s, err := g.run(c.Context())
				ctx := types.Because(types.ActAs(c.Context(), "command"), "OPERATOR", "zedkube k3s stage "+g.file)
				types.Did(ctx, device.CommandRecord(p), "stage k3s", "version/"+g.version, err)
				if err == nil {
					fmt.Fprintf(w, "k3s %s is staged: %s\n", s.Version, terminal.Clean(s.Path))
				}
				return err
			})
		},
	})
	c.Flags().StringVar(&g.version, "version", "", "the `VERSION` it has to be; default the setting k3s.version")
	c.Flags().StringVar(&g.sum, "sha256", "", "the `SUM` it has to have, instead of the one in the release's list")
	return c
}

// staging is what is to be staged, and from where.
type staging struct {
	files              k3sbinary.Files
	releases           k3sbinary.Releases
	file, version, sum string // "" for the release's own
}

func (g staging) run(ctx context.Context) (s k3sbinary.Staged, err error) {
	if _, err := types.ParseK3sVersion(g.version); err != nil {
		return s, terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("version %q: %w", terminal.Clean(g.version), err))
	}
	if g.sum != "" {
		if err := k3sbinary.CheckSum(g.sum); err != nil {
			return s, terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("--sha256: %w", err))
		}
	}
	// Before anything is downloaded.
	if err := g.files.CheckSpace(); err != nil {
		return s, err
	}
	sum := g.sum
	if sum == "" {
		sum, err = g.releases.Sum(ctx, g.version)
	}
	if err != nil {
		return s, err
	}
	stage := func(ctx context.Context, from io.Reader) (err error) {
		s, err = g.files.Stage(ctx, from, g.version, sum)
		return err
	}
	if g.file == "" {
		return s, g.releases.Fetch(ctx, g.version, stage)
	}
	f, err := safefile.Open(g.file)
	if err != nil {
		return s, err
	}
	defer f.Close()
	err = stage(ctx, f)
	return s, err
}

func newK3sSnapshotCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "snapshot",
		Short: "Take a snapshot of the datastore of this server",
		Long: "Have k3s take a snapshot of etcd on this server, and read it back. k3s keeps the last three of these beside its own ones.\n" +
			"On a single node with SQLite the datastore is copied instead, while k3s runs; one copy is kept.\n" +
			"It has all objects of the cluster, Secrets too, and stays on this device. See docs/commands.md, \"zedkube k3s snapshot\".\n\n" + k3sExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			p := o.Paths()
			return out.RunAction(c, func(w io.Writer) error {
				snapshots, err := k3sSnapshots(k3sFiles(p))
				if err != nil {
					return err
				}
				name, said, err := saveK3s(c.Context(), snapshots)
				ctx := types.Because(types.ActAs(c.Context(), "command"), "OPERATOR", "zedkube k3s snapshot")
				types.Did(ctx, device.CommandRecord(p), "take snapshot", "snapshot/"+cmp.Or(name, "zedkube"), err)
				fmt.Fprint(w, said)
				return err
			})
		},
	})
}

// saveK3s takes a snapshot of etcd, or on a single node, which may have none, a copy of the
// datastore that it has instead.
func saveK3s(ctx context.Context, snapshots k3setcd.Snapshots) (name, said string, err error) {
	if _, err := os.Stat(filepath.Join(snapshots.Server, "db/state.db")); err == nil && !k3setcd.Exists(snapshots.Server) {
		dir, err := k3setcd.CopySQLite(ctx, snapshots.Server, time.Now())
		if err != nil {
			return "", "", err
		}
		return filepath.Base(dir), "The datastore was copied: " + terminal.Clean(dir) + "\n", nil
	}
	s, err := snapshots.Save(ctx)
	if err != nil {
		return "", "", err
	}
	size := uint64(max(s.Size, 0))
	return s.Name, fmt.Sprintf("Snapshot %s was taken and read back: %s\n", terminal.Clean(s.Name), terminal.BytesText(&size)), nil
}
