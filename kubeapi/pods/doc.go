// Package pods has the verbs on pods, and the rows of their tables.
//
//	pods.go        lists, evictions, deletions
//	situations.go  why the pods of a node do not move
//	fit.go         which other nodes would take a pod
//	rows.go        a pod's row
package pods
