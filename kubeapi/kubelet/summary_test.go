package kubelet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// measuredAt is a moment after the samples of testdata were taken.
var measuredAt = time.Date(2026, 11, 21, 12, 48, 18, 0, time.UTC)

func u(n uint64) *uint64 { return &n }

func clock(text string) time.Time {
	t, _ := time.Parse("15:04:05", text)
	return measuredAt.Truncate(24 * time.Hour).Add(t.Sub(t.Truncate(24 * time.Hour)))
}

func TestASummaryOfARealKubeletIsRead(t *testing.T) {
	f, err := os.Open("testdata/kubelet-summary.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := decodeSummary(f, "node-1", measuredAt)
	if err != nil {
		t.Fatal(err)
	}
	want := types.KubeletStats{
		Node: types.NodeMetrics{
			CPU: u(1997587078), CPUSeconds: u(55586034120356), MemoryUsage: u(8118366208), MemoryWorking: u(4785938432), MemoryAvailable: u(20488855552),
			NetworkReceived: u(1237660), NetworkSent: u(4639801),
			FS: &types.FSMetrics{Available: u(72532430848), Capacity: u(270553174016), Used: u(25260863488)},
		},
		NodeAt: clock("12:48:10"),
		Pods: []types.PodStats{{
			Namespace: "eve-kube-app", Name: "speaker-wbt4n", UID: "ac1e4223-f0b2-4932-9acb-7709b13f5dc0",
			Sample: types.PodSample{
				At: clock("12:48:04"), CPU: u(9886636), CPUSeconds: u(128724821), MemoryUsage: u(2441216), MemoryWorking: u(2441216),
				NetworkReceived: u(1080), NetworkSent: u(612),
			},
			Ephemeral: &types.FSMetrics{Available: u(72532430848), Capacity: u(270553174016), Used: u(2011136)},
			Containers: []types.ContainerStats{{Name: "app", Started: clock("12:47:52"), Sample: types.ContainerSample{
				At: clock("12:48:10"), CPU: u(7977027), CPUSeconds: u(152473275), MemoryUsage: u(1581056), MemoryWorking: u(1581056), Swap: u(0), FSUsed: u(1953792),
				FileSystems: []types.DeviceUsage{{Device: "rootfs", Used: 1953792}, {Device: "logs", Used: 53248}},
			}}},
		}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

const minimal = `{"node":{"nodeName":"n1"},"pods":[%s]}`

// pod is one of a summary, with more fields.
func podJSON(namespace, name, uid, more string) string {
	return fmt.Sprintf(`{"podRef":{"namespace":%q,"name":%q,"uid":%q}%s}`, namespace, name, uid, more)
}

func summaryOf(t *testing.T, pods ...string) types.KubeletStats {
	t.Helper()
	stats, err := decodeSummary(strings.NewReader(fmt.Sprintf(minimal, strings.Join(pods, ","))), "n1", measuredAt)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

func TestWhatAKubeletDoesNotSayIsAbsent(t *testing.T) {
	got := summaryOf(t, podJSON("a", "b", "c", `,"containers":[{"name":"d"}],"volume":[{"name":"v"}]`))
	want := types.KubeletStats{NodeAt: measuredAt, Pods: []types.PodStats{{
		Namespace: "a", Name: "b", UID: "c", Sample: types.PodSample{At: measuredAt}, Volumes: []types.VolumeMetrics{{Name: "v"}},
		Containers: []types.ContainerStats{{Name: "d", Sample: types.ContainerSample{At: measuredAt}}},
	}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestNumbersThatCannotBeAreLeftOut(t *testing.T) {
	for _, n := range []string{"-1", "1e300", "1.5", `"12"`, "null", "true", "{}", "[1]", "18446744073709551615", "99999999999999999999999"} {
		got := summaryOf(t, podJSON("a", "b", "c", `,"cpu":{"usageNanoCores":`+n+`,"usageCoreNanoSeconds":7}`)).Pods[0].Sample
		if got.CPU != nil || got.CPUSeconds == nil || *got.CPUSeconds != 7 {
			t.Errorf("%s: %+v", n, got)
		}
	}
}

func TestTimesThatCannotBeAreThoseOfTheAnswer(t *testing.T) {
	for _, at := range []string{`"1970-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"0000-01-01T00:00:00Z"`, `"yesterday"`, "7", "null", "{}"} {
		got := summaryOf(t, podJSON("a", "b", "c", `,"cpu":{"time":`+at+`},"containers":[{"name":"d","startTime":`+at+`}]`)).Pods[0]
		if !got.Sample.At.Equal(measuredAt) {
			t.Errorf("%s: measured at %s", at, got.Sample.At)
		}
		if s := got.Containers[0].Started; !s.IsZero() {
			t.Errorf("%s: started at %s", at, s)
		}
	}
}

func TestPodsThatCannotBeAreLeftOut(t *testing.T) {
	long := strings.Repeat("x", 300)
	got := summaryOf(t,
		podJSON("a", "first", "1", ""), podJSON("a", "again", "1", ""),
		podJSON("", "b", "2", ""), podJSON("a", "", "3", ""), podJSON("a", "b", "", ""), podJSON("a", long, "4", ""),
		`7`, `{"podRef":{"namespace":"a","name":"b","uid":"5"},"cpu":"much"}`,
		podJSON("a", "last", "6", `,"containers":[{"name":"d"},{"name":"d"},{"name":""}]`))
	if len(got.Pods) != 2 || got.Pods[0].Name != "first" || got.Pods[1].Name != "last" || len(got.Pods[1].Containers) != 1 {
		t.Errorf("%+v", got.Pods)
	}
}

func TestOfTooManyPodsThoseOfApplicationsStay(t *testing.T) {
	var pods []string
	for i := range maxOtherPods + 10 {
		pods = append(pods, podJSON("kube-system", fmt.Sprint("p", i), fmt.Sprint("other", i), ""))
	}
	for i := range maxAppPods + 10 {
		pods = append(pods, podJSON(access.Namespace, fmt.Sprint("p", i), fmt.Sprint("app", i), `,"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]`))
	}
	got := summaryOf(t, pods...)
	apps, containers := 0, 0
	for _, p := range got.Pods {
		if p.Namespace == access.Namespace {
			apps++
		}
		containers += len(p.Containers)
	}
	if apps != maxAppPods || len(got.Pods)-apps != maxOtherPods || containers != maxAppContainers || got.Omitted != 20+3*maxAppPods-maxAppContainers {
		t.Errorf("%d pods of applications of %d, %d containers, %d left out", apps, len(got.Pods), containers, got.Omitted)
	}
}

func TestAnAnswerThatIsNoSummaryIsRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing": "", "a page": "<html>no</html>", "null": "null", "a list": "[]", "cut in a pod": `{"node":{"nodeName":"n1"},"pods":[{"podRef":{"na`,
		"cut after a pod": `{"node":{"nodeName":"n1"},"pods":[` + podJSON("a", "b", "c", ""), "cut at the end": `{"node":{"nodeName":"n1"},"pods":[]`,
		"NaN": `{"node":{"nodeName":"n1","cpu":{"usageNanoCores":NaN}},"pods":[]}`, "no node": `{"pods":[]}`, "another node": `{"node":{"nodeName":"n2"},"pods":[]}`,
		"a node that is none": `{"node":7,"pods":[]}`, "pods that are none": `{"node":{"nodeName":"n1"},"pods":{}}`,
		"deep": strings.Repeat(`{"a":`, 100000),
	} {
		if stats, err := decodeSummary(strings.NewReader(answer), "n1", measuredAt); err == nil || stats.Pods != nil {
			t.Errorf("%s: %+v, %v", name, stats, err)
		}
	}
	if _, err := decodeSummary(strings.NewReader(minimal[:20]), "n1", measuredAt); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut answer is %v", err)
	}
}

func TestTheNetworkOfANodeIsTheMainInterfaceElseAll(t *testing.T) {
	for text, want := range map[string]*uint64{
		`{"rxBytes":5,"interfaces":[{"rxBytes":5},{"rxBytes":6}]}`:                  u(5),
		`{"interfaces":[{"rxBytes":5},{"rxBytes":6},{"txBytes":1},{"rxBytes":-1}]}`: u(11),
		`{"interfaces":[]}`: nil,
		`{"interfaces":[{"rxBytes":9223372036854775807},{"rxBytes":1}]}`: u(9223372036854775807),
	} {
		got := summaryOf(t, podJSON("a", "b", "c", `,"network":`+text)).Pods[0].Sample.NetworkReceived
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func FuzzSummary(f *testing.F) {
	sample, err := os.ReadFile("testdata/kubelet-summary.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sample))
	f.Add(fmt.Sprintf(minimal, podJSON("a", "b", "c", `,"cpu":{"time":"9999-12-31T23:59:59Z","usageNanoCores":1e300}`)))
	f.Fuzz(func(t *testing.T, text string) {
		stats, err := decodeSummary(strings.NewReader(text), "node-1", measuredAt)
		if err != nil && stats.Pods != nil {
			t.Error("an error, and pods")
		}
		uids := map[string]bool{}
		for _, p := range stats.Pods {
			if uids[p.UID] || p.Name == "" || measuredAt.Sub(p.Sample.At).Abs() > skew {
				t.Errorf("%+v", p)
			}
			uids[p.UID] = true
		}
	})
}
