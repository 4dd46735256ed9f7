package kubelet

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

var someContainer = types.ContainerID{Namespace: "a", Pod: "b", Container: "c"}

func line(name, more, value string) string {
	return fmt.Sprintf(`%s{container="c",id="/x"%s,namespace="a",pod="b"} %s`, name, more, value) + "\n"
}

func cadvisorOf(t *testing.T, lines ...string) map[types.ContainerID]types.ContainerSample {
	t.Helper()
	got, err := decodeCadvisor(strings.NewReader(strings.Join(lines, "")), measuredAt)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTheMeasurementsOfARealKubeletAreRead(t *testing.T) {
	f, err := os.Open("testdata/kubelet-cadvisor.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := decodeCadvisor(f, measuredAt)
	if err != nil {
		t.Fatal(err)
	}
	pod := types.ContainerID{Namespace: access.Namespace, Pod: "speaker-wbt4n"}
	app := pod
	app.Container = "app"
	want := map[types.ContainerID]types.ContainerSample{
		pod: {At: time.UnixMilli(1795265286812).UTC(), NetworkReceived: u(1080), NetworkSent: u(612)},
		app: {At: time.UnixMilli(1795265290210).UTC(), CPUSeconds: u(152473275), MemoryWorking: u(1581056), Swap: u(0)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWhatIsMeasuredForEachDeviceIsAddedUp(t *testing.T) {
	got := cadvisorOf(t,
		"# HELP container_fs_reads_bytes_total text\n", "# TYPE container_fs_reads_bytes_total counter\n", "\n",
		line("container_fs_reads_bytes_total", `,device="/dev/a"`, "1e3 1795265290210"), line("container_fs_reads_bytes_total", `,device="/dev/b\"}"`, "24"),
		line("container_fs_writes_bytes_total", "", "5"), line("container_fs_reads_total", "", "6"), line("container_fs_writes_total", "", "7"),
		line("container_fs_usage_bytes", `,device="/dev/a"`, "8"), line("container_fs_usage_bytes", `,device="/dev/b"`, "9"), line("container_memory_cache", "", "9"))[someContainer]
	want := types.ContainerSample{At: time.UnixMilli(1795265290210).UTC(), ReadBytes: u(1024), WrittenBytes: u(5), Reads: u(6), Writes: u(7), FSUsed: u(17), FileSystems: []types.DeviceUsage{{Device: "/dev/a", Used: 8}, {Device: "/dev/b", Used: 9}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestOfTwoInstancesOfAContainerTheNewestCounts(t *testing.T) {
	old := strings.NewReplacer(`id="/x"`, `id="/old"`)
	for range 20 { // whatever the order of a map
		got := cadvisorOf(t,
			line("container_memory_swap", "", "1"), old.Replace(line("container_memory_swap", "", "2")),
			line("container_start_time_seconds", "", "20"), old.Replace(line("container_start_time_seconds", "", "10")))
		if s := got[someContainer].Swap; len(got) != 1 || s == nil || *s != 1 {
			t.Fatalf("%+v", got)
		}
	}
}

func TestLinesThatCannotBeAreLeftOut(t *testing.T) {
	for _, l := range []string{
		line("container_memory_swap", "", "NaN"), line("container_memory_swap", "", "-1"), line("container_memory_swap", "", "+Inf"), line("container_memory_swap", "", "1e300"),
		line("container_memory_swap", "", ""), line("container_memory_swap", "", "1 2 3"), line("container_memory_swap", "", "1 x"), line("container_memory_swap", "", "one"),
		line("container_memory_swap", `,x="`+strings.Repeat("x", 2*lineSize)+`"`, "1"),
		`container_memory_swap{container="c",namespace="a"} 1` + "\n", `container_memory_swap{container="c",pod="b"} 1` + "\n",
		`container_memory_swap{container="",namespace="a",pod="b"} 1` + "\n", `container_memory_swap{container="POD",namespace="a",pod="b"} 1` + "\n",
		`container_memory_swap{container="c",namespace="a",pod="b` + "\n", `container_memory_swap{container` + "\n", "container_memory_swap 1\n", "{} 1\n", "\n",
		`container_network_receive_bytes_total{container="c",namespace="a",pod="b"} 1` + "\n",
	} {
		if got := cadvisorOf(t, l); len(got) != 0 {
			t.Errorf("%.100s: %+v", l, got)
		}
		got := cadvisorOf(t, l, line("container_memory_working_set_bytes", "", "1"))[someContainer]
		if got.Swap != nil || got.MemoryWorking == nil {
			t.Errorf("%.100s: %+v", l, got)
		}
	}
}

func TestATextThatIsNoneIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a page": "<html>\n</html>\n", "cut in a line": line("container_memory_swap", "", "123")[:60], "cut in a long line": strings.Repeat("x", 2*lineSize),
	} {
		if got, err := decodeCadvisor(strings.NewReader(text), measuredAt); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOfTooManyContainersNoMoreAreHeld(t *testing.T) {
	var text strings.Builder
	for i := range 2 * maxCgroups {
		fmt.Fprintf(&text, "container_memory_swap{container=\"c\",id=\"/%d\",namespace=\"a\",pod=\"p%d\"} 1\n", i, i)
	}
	if got := cadvisorOf(t, text.String()); len(got) != maxCgroups {
		t.Errorf("%d are held", len(got))
	}
}

func FuzzCadvisor(f *testing.F) {
	sample, err := os.ReadFile("testdata/kubelet-cadvisor.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sample))
	f.Add(line("container_cpu_usage_seconds_total", `,cpu="total"`, "9e18 99999999999999999"))
	f.Add(`container_fs_usage_bytes{container="c\\",namespace="a",pod="b",} 1 1` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, _ := decodeCadvisor(strings.NewReader(text), measuredAt)
		for id, s := range got {
			if id.Namespace == "" || id.Pod == "" || measuredAt.Sub(s.At).Abs() > skew {
				t.Errorf("%+v: %+v", id, s)
			}
		}
	})
}
