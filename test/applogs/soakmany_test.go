//go:build linux && soak

package applogs

import (
	"flag"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/rig"
)

var (
	containers = flag.Int("containers", 100, "containers that print on one node")
	minutes    = flag.Int("minutes", 10, "how long they are watched")
)

const (
	streams = 40 // what the default of fs.inotify.max_user_instances leaves
	// What the logs of one node may cost, and how late lines may be.
	followedAge, followedRequests = 20 * time.Second, 15 // requests a minute, in all
	polledAge, polledRequests     = time.Minute, 3       // requests a minute, for each log without a stream
)

// TestSoakAsManyLogsAsStreams has one real node with as many containers as logs
// may be followed.
func TestSoakAsManyLogsAsStreams(t *testing.T) {
	f := soakLogs(t, min(streams, *containers))
	if all := f.requests["containerLogs"] + f.requests["logs"]; f.oldest > followedAge || all > followedRequests**minutes {
		t.Errorf("a line was %s old, there were %d requests for logs", f.oldest, all)
	}
}

// TestSoakMoreLogsThanStreams has more.
func TestSoakMoreLogsThanStreams(t *testing.T) {
	f := soakLogs(t, *containers)
	most := followedRequests**minutes + polledRequests**minutes*max(0, *containers-streams)
	if all := f.requests["containerLogs"] + f.requests["logs"]; f.oldest > polledAge || all > most {
		t.Errorf("a line was %s old, there were %d requests for logs", f.oldest, all)
	}
}

// soakLogs watches so many containers on one node, whose logs are rotated every
// three and a half minutes.
func soakLogs(t *testing.T, containers int) figures {
	rig.NeedsPods(t)
	s := newStageOf(t, 1, "32Ki")
	s.limitStreams(t, streams)
	s.bootNode(t, 0)
	t.Logf("inotify instances without a log: %v", s.inotify(t))
	m := s.newMany(t, containers)
	rig.Pause(t, time.Minute) // what they printed at the start is told
	f := m.watch(t, time.Duration(*minutes)*time.Minute)
	t.Log(f)
	m.isWhole(t)
	return f
}
