// Package types holds the data types: those of the pubsub topics, JSON as EVE's
// (docs/wire.md), and the plain view of the cluster that the components reason
// about. It imports nothing but the standard library and google/uuid.
package types

// Global is the key of every topic that holds one value.
const Global = "global"
