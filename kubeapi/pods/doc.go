// Package pods has the verbs on pods, and the rows of their tables.
//
//	pods.go        lists, evictions, deletions; a pod's row
//	situations.go  why the pods of a node are not evicted
//	fit.go         which other nodes a pod would fit on
package pods
