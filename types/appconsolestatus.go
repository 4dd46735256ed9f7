package types

import (
	"time"

	"github.com/google/uuid"
)

// AppConsoleStatus says whether the remote console of an application is open on
// this node, keyed by the application's UUID, for every application that asks
// for one (docs/wire.md, "AppConsoleStatus"). It is for people.
type AppConsoleStatus struct {
	AppUUID uuid.UUID
	Open    bool
	VMIName string // "" while it is not known
	VNCPort uint32
	Why     string    // why it is not open, a sentence; "" while it is
	Since   time.Time // when that began, wall clock
}
