package types

import "github.com/google/uuid"

// UUIDandVersion is EVE's identity of a configured object.
type UUIDandVersion struct {
	UUID    uuid.UUID
	Version string
}
