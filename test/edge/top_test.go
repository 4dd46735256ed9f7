//go:build linux && soak

package edge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/rig"
)

// tops has metrics-server measure all nodes, by its own manifest, which trusts no kubelet without a certificate of the
// cluster. kubectl top shows the devices, and one that is cut off takes nothing from the others.
func (s *stage) tops() {
	defer s.step("top")()
	archive, manifests := s.MetricsServer()
	for i := range servers {
		if err := s.ImportImage(i, archive); err != nil {
			s.Fatal(err)
		}
	}
	s.kubectl(0, "apply", "-k", manifests)
	took := rig.Within(s.T, 3*time.Minute, func() string { return s.unmeasured(0, 1) })
	s.Logf("kubectl top shows servers and devices %s after metrics-server was applied", took)
	if err := s.CutEdge(1); err != nil {
		s.Fatal(err)
	}
	took = rig.Within(s.T, 2*time.Minute, func() string {
		if s.unready(device(1)) == "" {
			return device(1) + " is Ready"
		}
		return s.unmeasured(0)
	})
	s.Logf("kubectl top shows all but %s, and that is not Ready, %s after its cable was cut", device(1), took)
	if err := s.HealEdge(1); err != nil {
		s.Fatal(err)
	}
	s.served(3 * time.Minute)
	took = rig.Within(s.T, 2*time.Minute, func() string { return s.unmeasured(0, 1) })
	s.Logf("kubectl top shows all %s after both devices are served again", took)
}

// unmeasured is why kubectl top does not show, from each server, all servers, these devices and their pods, and no others.
func (s *stage) unmeasured(of ...int) string {
	var nodes, pods []string
	for _, i := range of {
		nodes, pods = append(nodes, device(i)), append(pods, "on-"+device(i))
	}
	for _, n := range s.Nodes {
		nodes = append(nodes, n.Name)
	}
	for from := range servers {
		if why := cmp.Or(s.top(from, "nodes", 3, nodes), s.top(from, "pods", 2, pods)); why != "" {
			return why
		}
	}
	return ""
}

// top is why kubectl top has other names with CPU and memory above zero than are wanted. The memory is in one of its columns.
func (s *stage) top(from int, what string, memory int, want []string) string {
	ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
	defer cancel()
	out, err := s.try(ctx, append(slices.Clone(s.kube[from]), "top", what, "--no-headers")...)
	var names []string
	for line := range strings.Lines(out) {
		columns := strings.Fields(line)
		if len(columns) > memory && above(columns[1], "m") && above(columns[memory], "Mi") {
			names = append(names, columns[0])
		}
	}
	slices.Sort(names)
	slices.Sort(want)
	if err != nil || !slices.Equal(names, want) {
		return fmt.Sprintf("kubectl top %s from %s has not %q: %v: %s", what, s.Nodes[from].Name, want, err, out)
	}
	return ""
}

// above says whether a number of this unit is above zero.
func above(number, unit string) bool {
	n, err := strconv.Atoi(strings.TrimSuffix(number, unit))
	return err == nil && n > 0
}
