// Package turns plays, on several nodes of one cluster, all components that take the drain lock:
// drains, changes and restarts of k3s, restarts for volumes that are not mounted. What happens is
// written down as one history, and the rules of the lock (docs/decisions/0015-drain-lock.md) judge it.
package turns
