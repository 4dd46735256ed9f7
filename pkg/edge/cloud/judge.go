package cloud

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

// soon is how long before its end a certificate that was not renewed is a problem: it is due months before.
const soon = 30 * 24 * time.Hour

// Report is how KubeEdge's cloud side is.
type Report struct {
	Enabled   bool
	Settings  settings.Settings
	Wanted    int        // cloudcores
	Available int        // of them
	Addresses []string   // that edge nodes dial
	Stream    *time.Time // when the certificate of the stream ends; nil for none
	Nodes     []string   // of edge nodes, sorted
	Ready     []string   // of those
	Edge      []EdgeNode // and the names that were asked to join, or were edge nodes
	Problems  []string   // in sentences, what cannot be undone first
}

// Judge says how KubeEdge's cloud side is, by what is seen of Views.
func Judge(seen map[object.Ref]object.Object, now time.Time) (r Report) {
	s, on, err := read(seen)
	r.Enabled, r.Settings = on, s
	r.Nodes, r.Ready = edgeNodes(seen)
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	record, err := RecordOf(seen, now)
	if r.Edge = people(seen, record); err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	if !on {
		return r
	}
	if text := lostCA(seen); text != "" {
		r.Problems = append(r.Problems, text)
	}
	addresses, why := advertised(s, seen)
	if r.Addresses = addresses; why != "" {
		r.Problems = append(r.Problems, why)
	}
	r.Wanted, r.Available = cloudcores(s, seen), seen[refDeployment].Number("status", "availableReplicas")
	if r.Available < r.Wanted {
		r.Problems = append(r.Problems, fmt.Sprintf("%d of %d cloudcores are available", r.Available, r.Wanted))
	}
	if s.HA && r.Wanted < 2 {
		r.Problems = append(r.Problems, "ha has no effect: only one server may have a cloudcore")
	}
	if seen[refController].Number("status", "availableReplicas") == 0 {
		r.Problems = append(r.Problems, "the controller has no available pod, without which nothing is made or kept as the settings say: kubectl -n kubeedge describe deployment zedkube-edge")
	}
	for _, pod := range allPods(seen) {
		if text := hinders(pod); text != "" && !slices.Contains(r.Problems, text) {
			r.Problems = append(r.Problems, text)
		}
	}
	if s.CloudStream {
		wanted, ready := seen[refPath].Number("status", "desiredNumberScheduled"), seen[refPath].Number("status", "numberReady")
		if ready < wanted || wanted == 0 {
			r.Problems = append(r.Problems, fmt.Sprintf("logs and metrics of edge nodes can be read on %d of %d servers: kubectl -n kubeedge get pods -o wide", ready, wanted))
		}
		until, why := stream(seen[refStreamKey], s.EdgeBlock, now)
		if !until.IsZero() {
			r.Stream = &until
		}
		if until.IsZero() || now.After(until.Add(-soon)) {
			r.Problems = append(r.Problems, "the stream has no certificate that serves, so that there are no logs and metrics of edge nodes: "+why)
		}
	}
	if pod, _ := withoutServing(seen, replacedOf(seen[refDeployment]), now); pod != "" {
		r.Problems = append(r.Problems, "Secret kubeedge/cloudcoresecret is gone, by which cloudcore serves edge nodes. cloudcore makes it when it starts, "+
			"and is restarted for that by the controller, unless kubeedge/casecret is gone or another one")
	}
	if serving := seen[RefServing]; serving != nil && !serves(serving, addresses) {
		r.Problems = append(r.Problems, "the certificate of cloudcore does not name all addresses that edge nodes dial yet")
	}
	return r
}

// lostCA says that the authority is another one than edge nodes trust.
func lostCA(seen map[object.Ref]object.Object) string {
	was := seen[RefSettings].Annotation(caAnnotation)
	if was == "" {
		return ""
	}
	const again = ": no edge node trusts cloudcore any more once it restarts, and each has to join again. "
	switch now := seen[RefCA]; {
	case now == nil:
		return "Secret kubeedge/casecret is gone" + again + "Restore it from a backup; cloudcore makes another one when it restarts"
	case now.UID() != was:
		return "Secret kubeedge/casecret is another one than before" + again + "To go on with the new one: " +
			"kubectl -n kubeedge annotate configmap zedkube-edge " + caAnnotation + "-"
	}
	return ""
}

// hinders says why a pod does not run.
func hinders(pod object.Object) string {
	node := pod.Text("spec", "nodeName")
	for _, c := range append(pod.List("status", "initContainerStatuses"), pod.List("status", "containerStatuses")...) {
		reason := c.Text("state", "waiting", "reason")
		switch {
		case reason == "":
		case strings.Contains(reason, "Image"):
			return fmt.Sprintf("image %s is missing on node %s", c.Text("image"), node)
		case reason == "PodInitializing":
		default:
			return fmt.Sprintf("%s does not run on node %s: container %s is in %s", pod.Ref(object.Pod), node, c.Text("name"), reason)
		}
	}
	for _, c := range pod.List("status", "conditions") {
		if c.Text("type") == "PodScheduled" && c.Text("status") == "False" {
			return fmt.Sprintf("no node takes %s: %s", pod.Ref(object.Pod), c.Text("message"))
		}
	}
	return ""
}

// edgeNodes are the names of the edge nodes, and of those that are Ready.
func edgeNodes(seen map[object.Ref]object.Object) (all, ready []string) {
	for r, o := range seen {
		if r.Kind != object.Node || !isEdge(o) {
			continue
		}
		if all = append(all, r.Name); o.Condition("Ready") == "True" {
			ready = append(ready, r.Name)
		}
	}
	slices.Sort(all)
	slices.Sort(ready)
	return all, ready
}
