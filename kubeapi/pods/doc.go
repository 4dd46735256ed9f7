// Package pods has the verbs on pods, and the rows of their tables.
//
//	pods.go        lists, evictions, deletions
//	situations.go  why the pods of a node are not evicted
//	fit.go         which other nodes a pod would fit on
//	rows.go        a pod's row
package pods
