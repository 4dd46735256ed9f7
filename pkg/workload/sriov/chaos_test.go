package sriov

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"

	"github.com/zedkube/zedkube/test/seeds"
)

// chaos is a stage on which everything happens in random order.
type chaos struct {
	*stage
	r        *rand.Rand
	restarts int             // seen so far
	drops    int             // likewise
	parts    map[string]part // at the last sight
	older    map[string]string
}

// happen is one thing.
func (c *chaos) happen() {
	a := c.agents[fmt.Sprint("n", 1+c.r.IntN(3))]
	switch c.r.IntN(10) {
	case 0, 1:
		vfs := cluster(c.r, 1)[0]
		a.give(vfs...)
		for _, v := range vfs {
			if resource := resourcePrefix + "/" + v.name(); c.cluster.Networks()[v.name()].UID == "" {
				c.cluster.SetNetwork(v.name(), resource)
			}
		}
	case 2, 3:
		if a.stop != nil {
			a.stop()
		} else {
			a.start()
		}
	case 4:
		c.cluster.SetFault([]kubetest.Fault{kubetest.None, kubetest.None, kubetest.Refused, kubetest.Hung}[c.r.IntN(4)])
	case 5:
		c.cluster.LoseAnswer([]string{"setsriovconfig", "markplugin", "restartplugin", "deletenetwork"}[c.r.IntN(4)])
	case 6:
		c.cluster.StartPlugin(a.name)
	case 7:
		if three := c.agents["n3"]; three.stop == nil {
			three.eve()
		}
	case 8:
		c.cluster.SetLatency(time.Duration(c.r.IntN(3)) * time.Second)
	case 9:
		vfs, ran := a.has, a.stop != nil
		if a.reboot(); ran {
			a.start()
		}
		c.elapse([]time.Duration{0, time.Second, 30 * time.Second, 3 * time.Minute}[c.r.IntN(4)])
		a.give(vfs...)
	}
}

// elapse lets d pass and judges every moment of it.
func (c *chaos) elapse(d time.Duration) {
	c.t.Helper()
	for step := pace(d); d > 0; d -= step {
		c.older = map[string]string{}
		for name := range c.agents {
			pod, _ := c.cluster.Plugin(name)
			if p, ok := c.parts[name]; ok && pod.Part != "" && pod.Part == p.fingerprint() {
				c.older[pod.UID] = name
			}
		}
		before := c.parts
		c.pass(step)
		c.parts = parts(c.cluster.SRIOV().Data)
		calls := c.cluster.Calls("restartplugin")
		for _, call := range calls[c.restarts:] {
			if name, read := c.older[call.Object]; read && before[name].fingerprint() == c.parts[name].fingerprint() {
				c.t.Errorf("the plug-in of %s was restarted, and its part had not changed", name)
			}
		}
		c.restarts = len(calls)
		drops := c.cluster.Calls("deletenetwork")
		for _, call := range drops[c.drops:] {
			for name, p := range before {
				for _, v := range p.VFs {
					if v.name() == call.Object {
						c.t.Errorf("the attachment of %s of %s was removed", v.name(), name)
					}
				}
			}
		}
		c.drops = len(drops)
	}
}

func play(t *testing.T, seed uint64, steps int) {
	synctest.Test(t, func(t *testing.T) {
		c := &chaos{stage: newStage(t, "n1", "n2", "n3"), r: rand.New(rand.NewPCG(seed, 7))}
		defer c.end()
		for _, a := range c.agents {
			a.give()
		}
		c.cluster.Pods = &c.pods
		c.agents["n1"].start()
		for range steps {
			c.happen()
			c.elapse([]time.Duration{0, time.Second, 10 * time.Second, 3 * time.Minute, 15 * time.Minute}[c.r.IntN(5)])
		}
		c.cluster.SetFault(kubetest.None)
		c.cluster.SetLatency(0)
		for _, a := range c.agents {
			if a.stop == nil {
				a.start()
			}
		}
		c.elapse(2*time.Hour + 30*time.Minute)
		c.settled("n1", "n2", "n3")
		if read := readConfig(c.cluster.SRIOV().Data[configKey]); c.cluster.SRIOV().Version != "" && (read.broken || len(read.others) > 0) {
			t.Errorf("in the end the configuration is %+v", c.cluster.SRIOV())
		}
		c.quiet()
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
}

func TestWhateverHappensEveryPluginOffersItsOwnInTheEnd(t *testing.T) {
	for seed := range seeds.Each(t, 5) {
		if play(t, seed, 40); t.Failed() {
			return
		}
	}
}
