package drain

import "github.com/zedkube/zedkube/types"

// A drain that became complete while no API server answered, or by an operator's word,
// need not have the lock. Its agent says so in the conditions of its Node, and the drains
// of other nodes wait (docs/wire.md, "Drain lock", 7).

// goesUnlocked says for which other node than the lock's holder a drain waits that may
// have no lock, "" for none. completed has the boots in which its drain was seen to be
// complete, by node: it is waited for until it is back from that, as a holder of the lock
// is. One that was never seen Ready like this is not: etcd's quorum and the volumes
// are judged as ever, and a device may be off for good.
func goesUnlocked(nodes []types.Node, own, holder string, completed map[string]string) string {
	for _, n := range nodes {
		if n.Name == own || n.Name == holder || !n.MayReboot() {
			continue
		}
		switch boot, seen := completed[n.Name]; {
		case seen && n.BootID == boot, !seen && n.Ready == types.ConditionTrue:
			return n.NotRebooted()
		case seen: // it may be complete in the new boot, too
			if why := n.NotBack(); why != "" {
				return why
			}
		}
	}
	return ""
}

// updateUnlocked notes in which boot the drains of other nodes are complete, and which
// of them this drain waits for. Of the lock's holder the lock says it, and only
// that it has rebooted since is noted.
func (s *state) updateUnlocked(f *facts) {
	was, completed := s.mem.completed, map[string]string{}
	holder, before := f.lockLease.Holder, f.lockLease.BootID
	if holder == "" { // or the Leases are not watched
		holder, before = s.mem.lock.Holder, s.mem.lock.BootID
	}
	for _, n := range f.nodes {
		boot, seen := was[n.Name]
		switch {
		case !n.MayReboot():
		case n.Name == holder && before != "" && before != n.BootID:
			completed[n.Name] = before
		case n.Name == holder:
		case seen:
			completed[n.Name] = boot
		case n.Ready == types.ConditionTrue:
			completed[n.Name] = n.BootID
		}
	}
	s.mem.completed = completed
	f.goes = goesUnlocked(f.nodes, f.node.Name, holder, completed)
}

// lacksLock reports that a drain which is complete does not have the lock. One that an
// operator has released, or that is gone with a former state of etcd, is missed for a
// change of k3s alone, which does not begin without it.
func (f facts) lacksLock() bool {
	_, k3s := f.requests[byK3s]
	switch {
	case f.rec.Phase != types.PhaseComplete:
		return false
	case f.lockKnown && f.lockLease.Holder == f.node.Name && shared(f.lock, f.node, f.heldFor(f.lock, f.bootWall.Add(f.now))):
		return false
	case f.lockKnown && !ours(f.lock, f.node.Name):
		return true
	case f.lockKnown && (f.device() || !k3s):
		return false
	}
	return f.known && f.synced && !f.lease
}

// waitsForLock reports that a drain is complete, and lacks the lock for what it was
// requested for: a change of k3s. Nor does a leave reboot the device. A person who asks as
// well may reboot it, but to wait for that could be to wait for one another.
func (f facts) waitsForLock() bool {
	_, operator := f.requests[byOperator]
	_, k3s := f.requests[byK3s]
	return f.lacksLock() && !f.device() && (k3s || !operator)
}
