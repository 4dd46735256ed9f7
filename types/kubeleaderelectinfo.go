package types

import "time"

// KubeLeaderElectInfo says who reports for the cluster, under key "global".
type KubeLeaderElectInfo struct {
	InLeaderElection bool
	IsStatsLeader    bool
	ElectionRunning  bool
	LeaderIdentity   string
	LatestChange     time.Time
}
