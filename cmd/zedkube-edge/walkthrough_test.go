//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/pkg/edge/edgecmd"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/golden"
	"github.com/zedkube/zedkube/test/rig"
)

// line is a command of docs/edge.md, "Walk-through", with what the document shows below it.
type line struct {
	device  bool // it is typed on the device, not on a server
	command string
	shows   []string
}

var prompt = regexp.MustCompile(`^(node-1|camera-7)# (.*)$`)

// walkThrough is what the document has the reader type.
func walkThrough(t *testing.T) (lines []line) {
	t.Helper()
	text, err := os.ReadFile("../../docs/edge.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n## Walk-through\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	for text := range strings.Lines(section) {
		shown, indented := strings.CutPrefix(strings.TrimRight(text, "\n"), "    ")
		if !indented {
			continue
		}
		if m := prompt.FindStringSubmatch(shown); m != nil {
			lines = append(lines, line{device: m[1] == "camera-7", command: m[2]})
		} else if n := len(lines); n > 0 {
			lines[n-1].shows = append(lines[n-1].shows, shown)
		}
	}
	wanted := []string{"nodes --edge", "top nodes --edge", "top pods --edge", "logs --edge", "edge disable --purge"}
	for _, c := range edgecmd.New(edgecmd.Program{}).Commands() {
		if !c.Hidden {
			wanted = append(wanted, "edge "+c.Name())
		}
	}
	for _, words := range wanted {
		if !slices.ContainsFunc(lines, func(l line) bool { return strings.HasPrefix(l.command, "zedkube "+words) }) {
			t.Errorf("the walk-through of docs/edge.md has no zedkube %s", words)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return lines
}

// On this machine, on which no route can be made, edge nodes have addresses of its own.
const (
	shownBlock  = "100.127.254."
	playedBlock = "127.100.254."
)

var (
	day     = regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`)
	servers = regexp.MustCompile(`\b192\.0\.2\.`) // in the document
)

// steady is text as it is compared: without times and the like, and with the document's addresses.
func steady(text string) []string {
	text = servers.ReplaceAllString(strings.ReplaceAll(text, playedBlock, shownBlock), "127.0.2.")
	lines := strings.Split(day.ReplaceAllString(golden.Steady(text), "DAY"), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// differ says where what was printed is not what is shown, of which "..." stands for any lines, or for the
// rest of one; "" for nowhere.
func differ(printed, shown []string) string {
	for len(shown) > 0 && shown[0] != "..." {
		begin, open := strings.CutSuffix(shown[0], " ...")
		if len(printed) == 0 || printed[0] != shown[0] && !(open && strings.HasPrefix(printed[0], begin)) {
			return fmt.Sprintf("the document shows %q, and printed is %q", shown[0], printed[:min(len(printed), 1)])
		}
		printed, shown = printed[1:], shown[1:]
	}
	if len(shown) == 0 {
		if len(printed) > 0 {
			return fmt.Sprintf("the document does not show %q", printed[0])
		}
		return ""
	}
	why := ""
	for i := range len(printed) + 1 {
		if why = differ(printed[i:], shown[1:]); why == "" {
			return ""
		}
	}
	return why
}

// reader does what docs/edge.md says, on a cluster of which cloudcore and the device are played.
type reader struct {
	*site
	rig    *rig.Rig
	device device
}

// device is what is played of the edge node: its files are those of the bundle.
type device struct {
	name, address string
	joinScript    string // what it says
	off           func() // ends edgecore
}

// TestTheWalkThroughOfTheDocument runs each command of the section, in order, and compares what it prints. A command
// that only looks is given until it shows that. That a purge leaves nothing TestEdge proves: the API server may take minutes
// to end a definition as young as these.
func TestTheWalkThroughOfTheDocument(t *testing.T) {
	lines := walkThrough(t)
	rg := rig.New(t, rig.Options{Name: "walk", Cluster: devcluster.Options{Nodes: 3}})
	rg.Boot(t)
	s := newSite(t, rg.Cluster)
	s.until("the servers are there", func() error {
		list, err := s.kube.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/control-plane"})
		if err == nil && len(list.Items) != 3 {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
	ctx, cancel := context.WithCancel(t.Context())
	played := make(chan struct{})
	go func() { defer close(played); s.playCloudcore(ctx) }()
	defer func() { cancel(); <-played }()
	r := &reader{site: s, rig: rg}
	t.Chdir(t.TempDir())
	for i := 0; i < len(lines); {
		n := i + 1
		for n < len(lines) && lines[n].device {
			n++
		}
		r.types(ctx, lines[i:n])
		if i == 0 {
			defer s.control(ctx, "controller-1")()
			s.begun()
		}
		i = n
	}
}

// printed is what a command has printed so far.
type printed struct{ cmdtest.Printed }

func (p *printed) differs(shown []string) error {
	all := p.String()
	if why := differ(steady(all), shown); why != "" {
		return fmt.Errorf("%s, of\n%s", why, all)
	}
	return nil
}

var looks = regexp.MustCompile(`^zedkube (edge status|nodes|top|logs)\b`)

// types gives the first command on a server, and the others on the device, each once what is shown before it was printed.
func (r *reader) types(ctx context.Context, lines []line) {
	r.Helper()
	r.Logf("%s: %s", time.Now().Format(rig.Clock), lines[0].command)
	shown := lines[0].shows
	if looks.MatchString(lines[0].command) && len(lines) == 1 {
		r.until(lines[0].command, func() error {
			var out printed
			if err := r.runs(&out, lines[0].command); err != nil {
				return fmt.Errorf("%w\n%s", err, out.String())
			}
			return out.differs(steady(strings.Join(shown, "\n")))
		})
		return
	}
	var out printed
	ended := make(chan error, 1)
	go func() { ended <- r.runs(&out, lines[0].command) }()
	for _, l := range lines[1:] {
		r.until("what is shown before "+l.command, func() error { return out.differs(steady(strings.Join(shown, "\n"))) })
		r.onDevice(ctx, l.command)
		shown = slices.Concat(shown, l.shows)
	}
	if err := <-ended; err != nil {
		r.Fatalf("%s: %v\n%s", lines[0].command, err, out.String())
	}
	if err := out.differs(steady(strings.Join(shown, "\n"))); err != nil {
		r.Fatalf("%s: %v", lines[0].command, err)
	}
}

// runs gives a command on node-1. Where the document switches KubeEdge on, edge nodes are given addresses of this machine.
func (r *reader) runs(out *printed, command string) error {
	words := strings.Fields(command)[1:]
	if words[0] != "edge" {
		text, err := r.rig.Fleet.Members[0].Command(words...)
		_, _ = out.Write(text)
		return err
	}
	if words[1] == "enable" {
		words = append(words, "edgeBlock="+playedBlock+"0/24")
	}
	return r.commandTo(out, words[1:]...)
}

// onDevice gives a command on the device: the scripts change a whole machine, so a shell that is to run one says which one
// instead, and what follows of it is played.
func (r *reader) onDevice(ctx context.Context, command string) {
	r.Helper()
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", `sh() { echo "$*"; }; `+command).CombinedOutput()
	if err != nil {
		r.Fatalf("%s: %v\n%s", command, err, out)
	}
	switch script := strings.TrimSpace(string(out)); {
	case r.device.off == nil && filepath.Base(script) == "join.sh":
		r.joins(ctx, filepath.Dir(script))
	case r.device.off != nil && filepath.Base(script) == "leave.sh" && regexp.MustCompile(`(?m)^cp leave\.sh .*`+filepath.Dir(script)+"/$").MatchString(r.device.joinScript):
		r.device.off()
		if err := patch(ctx, r.forNode(r.device.name), r.device.name, is("False", r.device.address), "status"); err != nil {
			r.Fatal(err)
		}
	default:
		r.Fatalf("the device has no %s", script)
	}
}

// joins plays what follows of join.sh: cloudcore registers the device, which serves as a kubelet and runs a pod.
func (r *reader) joins(ctx context.Context, dir string) {
	r.Helper()
	sums := exec.CommandContext(ctx, "/bin/sh", "-ec", "sha256sum -c SHA256SUMS >&2; . ./settings.sh; echo $NAME $ADDRESS; cat join.sh")
	sums.Dir = dir
	out, err := sums.Output()
	if err != nil {
		r.Fatalf("the bundle: %v\n%s", err, out)
	}
	d := &r.device
	settings, script, _ := strings.Cut(string(out), "\n")
	d.name, d.address, _ = strings.Cut(settings, " ")
	d.joinScript = script
	at, stop := r.stream(ctx, d.address, edged)
	r.until("the device is registered", func() error { return r.register(ctx, d.name) })
	now := time.Now().UTC().Format(time.RFC3339)
	status := fmt.Sprintf(`{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}},"nodeInfo":{"kubeletVersion":"v1.30.7-kubeedge-v1.20.0"},"capacity":{"cpu":"4","memory":"2Gi"},
		"addresses":[{"type":"InternalIP","address":%q}],"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%[3]q,"lastTransitionTime":%[3]q}]}}`, at.Port, d.address, now)
	if err := patch(ctx, r.forNode(d.name), d.name, status, "status"); err != nil {
		r.Fatal(err)
	}
	end := r.live(ctx, d.name, d.address, false)
	d.off = func() { end(); stop() }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "camera"}, Spec: corev1.PodSpec{NodeName: d.name, Containers: []corev1.Container{{Name: "app", Image: "none"}}}}
	pods := r.kube.CoreV1().Pods("default")
	if pod, err = pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://1", Ready: true, State: running}}}
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// edged answers as the kubelet in edgecore does.
func edged(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/containerLogs/default/camera/app") {
		fmt.Fprint(w, "frame 1\nframe 2\n")
		return
	}
	uses := fmt.Sprintf(`"startTime":%[1]q,"cpu":{"time":%[1]q,"usageNanoCores":240000000,"usageCoreNanoSeconds":1},
		"memory":{"time":%[1]q,"usageBytes":734003200,"workingSetBytes":524288000,"availableBytes":1572864000}`, time.Now().UTC().Format(time.RFC3339))
	fmt.Fprintf(w, `{"node":{"nodeName":"camera-7",%[1]s},"pods":[{"podRef":{"name":"camera","namespace":"default","uid":"u"},%[1]s,"containers":[{"name":"app",%[1]s}]}]}`, uses)
}
