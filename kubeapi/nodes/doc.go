// Package nodes has the verbs on Nodes, and the rows of their table.
//
//	cordon.go  cordons, and how a Node is patched
//	stamps.go  the stamps of the nodes' agents, and how old they are
//	marks.go   fences, witnesses, designations, conditions, Events
//	lists.go   lists of Nodes and of their Leases as they are now; the nodes' clocks
//	rows.go    a Node's row
package nodes
