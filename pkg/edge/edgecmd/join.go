package edgecmd

import (
	"compress/gzip"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/types"
)

// binaries is where edgecore is looked for, below the root.
const binaries = "/persist/zedkube/edge"

// maxTokenFor bounds how long a token is good: KubeEdge's own are for a day.
const maxTokenFor = 24 * time.Hour

// joining is what somebody has typed.
type joining struct {
	acting
	join.Device
	output                           terminal.Outputs
	address, bundle, edgecore, pause string
	tokenFor                         time.Duration
}

// Joining is what "join -o json" prints.
type Joining struct {
	Name       string    `json:"name"`
	Address    string    `json:"address"`
	Arch       string    `json:"arch"`
	Servers    []string  `json:"servers"`
	Ports      []string  `json:"ports"` // as in 31000/tcp cloudhub
	AskedAt    time.Time `json:"askedAt"`
	Token      string    `json:"token,omitempty"` // not with --dry-run
	TokenUntil time.Time `json:"tokenUntil"`
	Command    string    `json:"command,omitempty"`
	Keadm      string    `json:"keadm,omitempty"`
	KeadmLacks []string  `json:"keadmLacks"`
	Notes      []string  `json:"notes,omitempty"`
}

func (c *commands) join() *cobra.Command {
	j := &joining{}
	cmd := &cobra.Command{
		Use:   "join NAME [--bundle FILE] [--yes | --dry-run]",
		Short: "Let a device join as an edge node",
		Long: "Let a device join as an edge node under a name: give it an address, and a token that is good for a while. Printed is one line for\n" +
			"a shell on the device, which needs edgecore in its PATH, and the line for KubeEdge's own keadm. With --bundle all of it, edgecore\n" +
			"included, is written as a tar.gz to carry there: unpack it, and run join.sh as root. A name that has not joined yet may be asked again.",
		Example: "  zedkube-edge join camera-7\n  zedkube-edge join camera-7 --arch arm64 --label site=gate --bundle camera-7.tar.gz --yes",
		Args:    terminal.Words(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			j.on(cmd)
			j.Name = args[0]
			if j.bundle == "-" || !j.output.People() {
				j.out = cmd.ErrOrStderr() // standard output is for what somebody reads by program
			}
			if j.bundle == "-" && !j.output.People() {
				return errors.New("--bundle - and -o are for standard output both: name a file")
			}
			return c.letJoin(cmd.Context(), j, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&j.address, "address", "", "`IP` of the setting edgeBlock for the device (default the lowest that is free)")
	f.StringVar(&j.Arch, "arch", "amd64", "amd64 or arm64")
	f.StringVar(&j.Runtime, "runtime", "unix:///run/containerd/containerd.sock", "`SOCKET` of the device's container runtime")
	f.StringVar(&j.CgroupDriver, "cgroup-driver", "cgroupfs", "cgroupfs or systemd, as the container runtime has it")
	f.StringArrayVar(&j.Labels, "label", nil, "`KEY=VALUE` of the Node; may be given several times")
	f.BoolVar(&j.NoTaint, "no-taint", false, "without the taint "+join.EdgeRole+":NoSchedule, so that any pod may be placed there")
	f.DurationVar(&j.tokenFor, "token-for", time.Hour, "how long the device may join with the token, 24h at most")
	f.StringVar(&j.bundle, "bundle", "", "write a tar.gz for the device to `FILE`; - for standard output")
	f.StringVar(&j.edgecore, "edgecore", "", "`FILE` of edgecore for the bundle (default <root>"+binaries+"/edgecore-ARCH, if it is there)")
	f.StringVar(&j.pause, "pause", "", "`FILE` of the pause image for the bundle, as docker save writes it")
	terminal.Completed(cmd, "arch", "amd64", "arm64")
	j.flags(cmd)
	return j.output.Flag(cmd)
}

// letJoin checks, records the wish, and says what to do on the device.
func (c *commands) letJoin(ctx context.Context, j *joining, stdout io.Writer) error {
	kube, err := c.dial()
	if err != nil {
		return err
	}
	if err := errors.Join(join.Name(j.Name), j.Validate()); err != nil {
		return err
	}
	if j.tokenFor < time.Minute || j.tokenFor > maxTokenFor {
		return fmt.Errorf("--token-for is %s, not 1m to 24h", j.tokenFor)
	}
	seen, record, at, err := lookFor(ctx, kube, j.Name)
	if err != nil {
		return err
	}
	r, now := cloud.Judge(seen, time.Now()), time.Now()
	j.Settings, j.Servers = r.Settings, r.Addresses
	if err := mayJoin(r, seen, j.Name); err != nil {
		return refused(err)
	}
	notes := notesOn(record, seen, j.Name)
	asked, err := record.Ask(j.Settings, j.Name, j.address, cloud.NodeAddresses(seen), now, now.Add(j.tokenFor))
	if err != nil {
		return refused(err)
	}
	j.Address = asked.Address
	j.say("Device %s (%s) is to join as an edge node with the address %s. Its token is good until %s.", j.Name, j.Arch, j.Address, asked.TokenUntil.Format(time.RFC3339))
	j.say("It dials %s:", strings.Join(j.Servers, ", or "))
	sayPorts(&j.acting, j.Settings)
	for _, text := range notes {
		j.say("Note: %s.", text)
	}
	if j.bundle != "" {
		if notes, err = j.withEdgecore(c.root, notes); err != nil {
			return err
		}
	}
	if on, err := j.confirm(ctx); err != nil || !on {
		if err == nil && !j.output.People() {
			err = j.output.Document(stdout, j.shown(asked, notes))
		}
		return err
	}
	if j.Token, err = mint(ctx, kube, j.Name, asked.TokenUntil); err != nil {
		return err
	}
	o := types.Operation{Op: "join edge", Target: auditNodes, Why: "zedkube edge join " + j.Name}
	if err := c.audited(o, func() error { return writeRecord(ctx, kube, at, record) }); err != nil {
		return err
	}
	return j.give(stdout, asked, notes)
}

// mayJoin says why nobody can join, or not under this name.
func mayJoin(r cloud.Report, seen map[object.Ref]object.Object, name string) error {
	node := seen[object.Ref{Kind: object.Node, Name: name}]
	_, _, since, edge := cloud.Edge(seen, name)
	switch {
	case !r.Enabled:
		return errors.New("KubeEdge is off: zedkube-edge enable --dry-run")
	case !r.Settings.HTTPS:
		return errors.New("https is false, so that no edge node can join: zedkube-edge set https=true")
	case len(r.Addresses) == 0:
		return errors.New("there is no address that an edge node could dial: zedkube-edge status")
	case r.Available == 0:
		return errors.New("no cloudcore is available: zedkube-edge status")
	case node != nil && !edge:
		return fmt.Errorf("%s is a member of the cluster", name)
	case edge && since.IsZero() && node.Condition("Ready") == "True":
		return fmt.Errorf("edge node %s is there, and Ready: zedkube-edge leave %s, first", name, name)
	}
	return nil
}

// notesOn are what somebody should know who asks for this name.
func notesOn(record join.Record, seen map[object.Ref]object.Object, name string) (list []string) {
	if past, was := record.Refused[name]; was {
		list = append(list, fmt.Sprintf("%s is refused since %s, as lost. It is allowed again by this, also for the lost device with the certificate that it has", name, past.Since.Format(time.RFC3339)))
	}
	if was, again := record.Asked[name]; again {
		list = append(list, fmt.Sprintf("%s was asked to join at %s already; tokens of before stay good until they end", name, was.AskedAt.Format(time.RFC3339)))
	}
	if seen[object.Ref{Kind: object.Node, Name: name}] != nil {
		list = append(list, fmt.Sprintf("Node %s is there, and not Ready: the device takes its place, with the pods that are placed there", name))
	}
	return list
}

// withEdgecore finds edgecore for the bundle.
func (j *joining) withEdgecore(root string, notes []string) ([]string, error) {
	if j.edgecore == "" {
		path := filepath.Join(root, binaries, "edgecore-"+j.Arch)
		if _, err := os.Stat(path); err != nil {
			text := "the bundle has no edgecore, for there is no " + path + ": join.sh needs it in the device's PATH"
			j.say("Note: %s.", text)
			return append(notes, text), nil
		}
		j.edgecore = path
	}
	f, err := elf.Open(j.edgecore)
	if err != nil {
		return nil, fmt.Errorf("read edgecore %s: %w", j.edgecore, err)
	}
	defer f.Close()
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[j.Arch]; f.Machine != want {
		return nil, fmt.Errorf("%s is for %s, not for %s", j.edgecore, f.Machine, j.Arch)
	}
	return notes, nil
}

// mint makes a token for a name with the key of cloudcore's authority.
func mint(ctx context.Context, kube Cluster, name string, until time.Time) (string, error) {
	secret, err := kube.Get(ctx, cloud.RefCA)
	if err != nil {
		return "", err
	}
	ca, key := cloud.Authority(secret)
	if len(ca) == 0 || len(key) == 0 {
		return "", fmt.Errorf("%s has no authority yet: is cloudcore up? zedkube-edge status", cloud.RefCA)
	}
	return join.Token(ca, key, name, until), nil
}

func (j *joining) shown(asked join.Asked, notes []string) Joining {
	d := Joining{
		Name: j.Name, Address: j.Address, Arch: j.Arch, Servers: j.Servers, Ports: []string{}, AskedAt: asked.AskedAt, TokenUntil: asked.TokenUntil,
		KeadmLacks: j.Lacks(), Notes: notes,
	}
	for _, p := range j.Settings.Open() {
		d.Ports = append(d.Ports, fmt.Sprintf("%d/%s %s", p.Port, strings.ToLower(p.Protocol), p.Name))
	}
	return d
}

// give prints and writes what the device needs.
func (j *joining) give(stdout io.Writer, asked join.Asked, notes []string) error {
	d := j.shown(asked, notes)
	d.Token, d.Keadm = j.Token, j.Keadm()
	var err error
	if d.Command, err = j.Command(); err != nil {
		return err
	}
	if j.bundle != "" {
		if err := j.pack(stdout); err != nil {
			return err
		}
	}
	if !j.output.People() {
		return j.output.Document(stdout, d)
	}
	if j.bundle != "" {
		j.say("The bundle is written. On the device, as root: tar xzf FILE && sh %s/join.sh", j.Dir())
	} else {
		j.say("\nOn the device, as root, with edgecore in its PATH:\n\n%s\n", d.Command)
		j.say("Or with KubeEdge's own tool, as root:\n\n%s\n", d.Keadm)
		for _, text := range d.KeadmLacks {
			j.say("  %s", text)
		}
	}
	j.say("\nThen: zedkube-edge wait %s", j.Name)
	return nil
}

// pack writes the bundle.
func (j *joining) pack(stdout io.Writer) (err error) {
	files, err := j.Files()
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path, name string
		mode       int64
	}{{j.edgecore, "edgecore", 0o755}, {j.pause, "pause.tar", 0o644}} {
		if f.path == "" {
			continue
		}
		content, err := os.Open(f.path)
		if err != nil {
			return fmt.Errorf("read %s: %w", f.name, err)
		}
		defer content.Close()
		info, err := content.Stat()
		if err != nil {
			return fmt.Errorf("read %s: %w", f.name, err)
		}
		files = append(files, join.File{Name: f.name, Mode: f.mode, Size: info.Size(), Content: content})
	}
	w := stdout
	if j.bundle != "-" {
		file, err := os.OpenFile(j.bundle, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // the token is in it
		if err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			_ = file.Chmod(0o600) // it may have been there; a stick may know no modes
		}
		w = file
	}
	return j.Write(w, gzip.BestSpeed, files)
}
