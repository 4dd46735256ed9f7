package types

import "time"

// NodeDrainJournal is what the drain has to remember over a restart and over a
// reboot, under key "global" of a persistent topic of zedkube's own. Durations
// count from the boot (CLOCK_BOOTTIME): no wall clock moves them, and they mean
// nothing in another boot.
type NodeDrainJournal struct {
	BootID  string
	Serial  uint64        // grows with every change
	Uptime  time.Duration // when this was written
	Adopted bool          // a cordon from before the first start has been looked for

	Phase    DrainPhase
	Reason   string
	Status   NodeDrainStatus             // as decided, published right after
	Requests map[string]NodeDrainRequest // by DEVICEOP, UPDATE, OPERATOR, LEAVE
	Failed   []time.Time                 // RequestedAt of the requests whose drain failed
	Told     []DrainRequester            // who has been told of the final state
	Standing time.Duration               // since when the requester sees a drain under way
	Said     time.Duration               // when Status last changed
	Asked    time.Duration               // when the drain was asked for
	Cordoned time.Duration               // when the node was cordoned for it; 0 for not yet
	Ended    time.Duration               // when it completed or failed
	Attempt  int
	Losses   int               // of the cordon to someone else
	Refusals int               // of the cordon
	Node     string            // that was cordoned or locked, "" for none
	NodeBoot string            // its boot id then, as the cluster showed it
	Silent   time.Duration     // since when the API server has not answered; 0 while it does
	Locked   bool              // the lock may be ours
	Kept     bool              // an operator forced COMPLETE: the cordon stays until withdrawal or boot
	Dead     bool              // COMPLETE because nothing answered: lock and cordon are made up for
	Left     bool              // the Node was deleted, at the end of a leave
	Rebooted bool              // no drain was seen since the boot: what is given back waits for the Node to be Ready
	Unused   bool              `json:",omitempty"` // COMPLETE was taken back: what it held goes a minute later
	Spent    map[string]string `json:",omitempty"` // force files that had their effect and could not be removed: path to what identifies one writing of it
	Markers  map[string]string `json:",omitzero"`  // nil for not known; what the markers of a device that goes down were when COMPLETE was decided on: path to what identifies one writing of it
	Total    int               // pods chosen so far

	Ends bool         `json:",omitempty"` // COMPLETE although nothing was evicted: the cluster ends with this node
	Look *StorageLook `json:",omitempty"` // the last one at what a leave would take along; nil for none
}
