// Package storage has the verbs on volumes: Longhorn's objects and
// VolumeAttachments, and the rows of their tables.
//
//	storage.go  the verbs: volumes and attachments as they are now, and what zedkube
//	            configures in Longhorn
//	volumes.go  a volume, joined from four kinds of object
//	join.go     the same, kept up to date by four watches
//	clients.go  clients that decode only what is read of Longhorn's objects, and the
//	            rows of all other tables
package storage
