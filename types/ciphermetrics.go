package types

import "time"

// CipherMetrics counts decryptions, under key "global". TypeCounters has eight
// entries (docs/wire.md, "Cipher topics").
type CipherMetrics struct {
	AgentName    string
	FailureCount uint64
	SuccessCount uint64
	LastFailure  time.Time
	LastSuccess  time.Time
	TypeCounters []uint64
}
