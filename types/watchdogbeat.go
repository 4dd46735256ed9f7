package types

// WatchdogBeat is zedkube's own topic, under key "global": the watchdog
// publishes it and reads it back through its socket, which proves that pubsub
// works in both directions. Nobody else reads it.
type WatchdogBeat struct {
	Count uint64 // grows by one at every beat
}
