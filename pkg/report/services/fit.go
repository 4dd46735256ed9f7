package services

import (
	"fmt"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// cut counts what a value leaves out.
type cut struct{ services, ingresses, addresses int }

func (c cut) any() bool { return c != cut{} }

// fit cuts v to what one message can carry: one that is too large would be
// refused as a whole, and nim would go on by an old one. First come the entries
// that nim needs, which are those it makes a rule of that no entry before makes,
// ingresses before services; then the pool's addresses; then the others. Of each
// the first ones by name stay, and all stay in their order.
func fit(v *types.KubeUserServices) cut {
	if size(*v) <= pubsub.MaxMessage {
		return cut{}
	}
	whole := *v
	v.UserService, v.UserIngress = nil, nil
	if whole.LBPoolStatus != nil {
		p := *whole.LBPoolStatus
		v.LBPoolStatus, p.AllocatedIPs = &p, nil
	}
	room := pubsub.MaxMessage - size(*v)
	ingresses, services := choose(whole.UserIngress, ingressRules), choose(whole.UserService, serviceRules)
	addresses := choose(addressesOf(whole.LBPoolStatus), func(string) []string { return nil })
	ingresses.fill(true, &room)
	services.fill(true, &room)
	addresses.fill(false, &room)
	ingresses.fill(false, &room)
	services.fill(false, &room)
	v.UserIngress, v.UserService = ingresses.chosen(), services.chosen()
	if v.LBPoolStatus != nil {
		v.LBPoolStatus.AllocatedIPs = addresses.chosen()
	}
	return cut{
		services: len(whole.UserService) - len(v.UserService), ingresses: len(whole.UserIngress) - len(v.UserIngress),
		addresses: len(addresses.list) - len(addressesOf(v.LBPoolStatus)),
	}
}

// choice is which entries of a list stay.
type choice[T any] struct {
	list   []T
	needed []bool // nim makes a rule of it that no entry before makes
	stays  []bool
}

func choose[T any](list []T, rules func(T) []string) choice[T] {
	c := choice[T]{list: list, needed: make([]bool, len(list)), stays: make([]bool, len(list))}
	made := map[string]bool{}
	for i, entry := range list {
		for _, rule := range rules(entry) {
			c.needed[i] = c.needed[i] || !made[rule]
			made[rule] = true
		}
	}
	return c
}

// fill takes the entries for which there is room. One that is too large keeps
// none out that comes after it.
func (c choice[T]) fill(needed bool, room *int) {
	for i, entry := range c.list {
		if c.needed[i] != needed {
			continue
		}
		if n := pubsub.EntrySize(entry); n <= *room {
			c.stays[i] = true
			*room -= n
		}
	}
}

func (c choice[T]) chosen() []T {
	var out []T
	for i, entry := range c.list {
		if c.stays[i] {
			out = append(out, entry)
		}
	}
	return out
}

// size is that of a value in JSON, in bytes.
func size(v types.KubeUserServices) int { return pubsub.EntrySize(v) - 1 }

// serviceRules names the rule that nim makes of a service's port, if any
// (docs/wire.md, "nim").
func serviceRules(s types.KubeUserService) []string {
	switch {
	case s.ACEenabled:
		return []string{"ACE"}
	case s.Protocol != "TCP" && s.Protocol != "UDP":
	case s.Type == nodePort && s.NodePort > 0:
		return []string{fmt.Sprint(s.Protocol, " ", s.NodePort)}
	case s.Type == loadBalancer:
		return []string{fmt.Sprint(s.Protocol, " ", s.LoadBalancerIP, " ", s.Port)}
	}
	return nil
}

// ingressRules names the rules that nim makes of an ingress: one for each of its
// addresses if a load balancer serves it, else one for all of its protocol.
func ingressRules(i types.KubeUserIngress) []string {
	if i.ServiceType != loadBalancer {
		return []string{i.Protocol}
	}
	var out []string
	for _, ip := range i.IngressIP {
		out = append(out, i.Protocol+" "+ip)
	}
	return out
}
