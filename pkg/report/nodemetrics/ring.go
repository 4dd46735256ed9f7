package nodemetrics

import (
	"slices"

	"github.com/zedkube/zedkube/pkg/base/samples"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// brief is what of m goes into the topic, which is a file: the newest sample of each, and
// while someone watches all of the node and of applications.
func brief(m types.KubeNodeMetrics, watched bool) types.KubeNodeMetrics {
	most := 1
	if watched {
		most = samples.Depth
	}
	m.Samples = samples.Newest(m.Samples, most)
	pods := slices.Clone(m.Pods)
	for i, p := range pods {
		if most > 1 && p.Namespace == types.NamespaceApps {
			continue
		}
		pods[i].Samples, pods[i].Containers = samples.Newest(p.Samples, 1), slices.Clone(p.Containers)
		for j, c := range pods[i].Containers {
			pods[i].Containers[j].Samples = samples.Newest(c.Samples, 1)
		}
	}
	omitted := 0
	m.Pods, omitted = fit(pods)
	m.Omitted += omitted
	return m
}

// fit keeps as many first pods as fit, and says how many do not.
func fit(pods []types.PodMetrics) (kept []types.PodMetrics, omitted int) {
	if bound(pods) <= pubsub.MaxLarge {
		return pods, 0
	}
	return pubsub.FitLarge(pods)
}

// bound is more than the JSON of the pods has: to encode them twice, every five
// seconds, only to know that they fit would cost more than to add up.
func bound(pods []types.PodMetrics) (size int) {
	const entry, sample, escaped = 400, 720, 6 // bytes; a character takes at most six
	for _, p := range pods {
		size += entry + escaped*(len(p.Namespace)+len(p.Name)+len(p.UID)) + sample*len(p.Samples)
		for _, v := range p.Volumes {
			size += entry + escaped*(len(v.Name)+len(v.Claim))
		}
		for _, c := range p.Containers {
			size += entry + escaped*len(c.Name)
			for _, s := range c.Samples {
				size += sample
				for _, f := range s.FileSystems {
					size += entry + escaped*len(f.Device)
				}
			}
		}
	}
	return size
}
