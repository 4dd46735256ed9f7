//go:build linux

package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// summary is what a kubelet says under /stats/summary, as far as it is compared.
type summary struct {
	Node struct {
		CPU    *cpuStats
		Memory *memoryStats
	}
	Pods []podStats
}

type podStats struct {
	PodRef     struct{ Name, Namespace, UID string }
	CPU        *cpuStats
	Memory     *memoryStats
	Containers []struct {
		Name      string
		StartTime time.Time
		CPU       *cpuStats
		Memory    *memoryStats
		Swap      *struct{ SwapUsageBytes *uint64 }
		Rootfs    *fsStats
		Logs      *fsStats
	}
	EphemeralStorage *fsStats `json:"ephemeral-storage"`
}

type cpuStats struct {
	Time                 time.Time
	UsageNanoCores       *uint64
	UsageCoreNanoSeconds *uint64
}

type memoryStats struct {
	Time            time.Time
	UsageBytes      *uint64
	WorkingSetBytes *uint64
}

type fsStats struct{ UsedBytes *uint64 }

// kubeletSays asks a node's kubelet as an administrator does.
func (s *stage) kubeletSays(t *testing.T, i int) (v summary, err error) {
	t.Helper()
	raw, err := s.Cluster.Client().CoreV1().RESTClient().Get().
		AbsPath("/api/v1/nodes", s.Fleet.Members[i].Name, "proxy/stats/summary").DoRaw(t.Context())
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	return v, err
}

// compared is how many values of a kubelet's answer the agent had of the very
// same moment, and what was different.
type compared struct {
	same  map[string]bool
	wrong map[string]bool
	was   map[string]bool // what the kubelet left out
}

// moment says whether two readings of a counter, of the same second, are one:
// the kubelet tells times in seconds, and may measure twice in one. In a second
// an application of one thread uses one at most, as after it had to wait.
func (c *compared) moment(what string, kubelet, agent *uint64) bool {
	if kubelet == nil || agent == nil || *kubelet == *agent {
		c.value(what, kubelet, agent)
		return true
	}
	if math.Abs(float64(*kubelet)-float64(*agent)) > 1e9 {
		c.value(what, kubelet, agent)
	}
	return false
}

func (c *compared) value(what string, kubelet, agent *uint64) {
	switch {
	case kubelet == nil && agent == nil:
		c.was[what] = true
	case kubelet == nil && strings.HasSuffix(what, " CPU"): // which the agent makes of two readings
	case kubelet == nil || agent == nil || *kubelet != *agent:
		c.wrong[fmt.Sprintf("%s: the kubelet says %s, the agent %s", what, text(kubelet), text(agent))] = true
	default:
		c.same[what] = true
	}
}

// rate compares what is used at one moment: of a container that rests the kubelet
// has the same counter again, and measures its rate anew: then it is 0.
func (c *compared) rate(what string, kubelet, agent *uint64) {
	if kubelet != nil && agent != nil && (*kubelet == 0 || math.Abs(float64(*kubelet)-float64(*agent)) <= float64(*kubelet)/4) {
		agent = kubelet
	}
	c.value(what, kubelet, agent)
}

func text(v *uint64) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprint(*v)
}

// compare holds what the agent has said of applications' pods against an answer
// of the kubelet: samples of one moment have to be the same.
func (c *compared) compare(k summary, agent []types.KubeNodeMetrics) {
	for _, p := range k.Pods {
		for _, m := range agent {
			for _, a := range m.Pods {
				if a.UID == p.PodRef.UID && p.CPU != nil && p.PodRef.Namespace == "eve-kube-app" {
					c.pod(p, a)
				}
			}
		}
	}
}

func (c *compared) pod(p podStats, a types.PodMetrics) {
	app, _, _ := strings.Cut(p.PodRef.Name, "-")
	for _, s := range a.Samples {
		if s.At.Equal(p.CPU.Time) && c.moment(app+" CPUSeconds", p.CPU.UsageCoreNanoSeconds, s.CPUSeconds) {
			c.value(app+" CPU", p.CPU.UsageNanoCores, s.CPU)
		}
	}
	for _, pc := range p.Containers {
		for _, ac := range a.Containers {
			if ac.Name != pc.Name || pc.CPU == nil {
				continue
			}
			for _, s := range ac.Samples {
				// In the second in which a container starts again either of both may have
				// measured the one before.
				if s.At.Before(pc.StartTime.Add(time.Second)) {
					continue
				}
				if !s.At.Equal(pc.CPU.Time) || !c.moment(app+"/"+pc.Name+" CPUSeconds", pc.CPU.UsageCoreNanoSeconds, s.CPUSeconds) {
					continue
				}
				c.rate(app+"/"+pc.Name+" CPU", pc.CPU.UsageNanoCores, s.CPU)
				if pc.Memory != nil && pc.Memory.Time.Equal(pc.CPU.Time) {
					c.value(app+"/"+pc.Name+" MemoryWorking", pc.Memory.WorkingSetBytes, s.MemoryWorking)
				}
			}
		}
	}
}
