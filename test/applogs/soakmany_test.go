//go:build linux && soak

package applogs

import (
	"flag"
	"testing"
	"time"
)

var (
	containers = flag.Int("containers", 100, "containers that print on one node")
	minutes    = flag.Int("minutes", 10, "how long they are watched")
)

const (
	streams = 64 // what the default of fs.inotify.max_user_instances leaves
	// What the logs of one node may cost, and how late lines may be.
	followedAge, followedRequests = 20 * time.Second, 15 // requests a minute, in all
	polledAge, polledRequests     = time.Minute, 3       // requests a minute, for each log without a stream
)

// TestSoakManyLogs has one real node with first as many containers as streams,
// and then more, with logs that are rotated.
func TestSoakManyLogs(t *testing.T) {
	needsPods(t)
	s := newStageOf(t, 1, "32Ki")
	s.limitStreams(t, streams)
	s.boot(t, 0)
	t.Logf("inotify instances without a log: %v", s.inotify(t))
	m := s.newMany(t, min(streams, *containers))
	long := time.Duration(*minutes) * time.Minute
	f := m.watch(t, long)
	t.Log(f)
	if all := f.requests["containerLogs"] + f.requests["logs"]; f.oldest > followedAge || all > followedRequests**minutes {
		t.Errorf("a line was %s old, there were %d requests for logs", f.oldest, all)
	}
	m.isWhole(t)
	if *containers <= streams {
		return
	}
	m.add(t, *containers)
	pause(t, time.Minute) // what they printed before is told
	f = m.watch(t, long)
	t.Log(f)
	if all := f.requests["containerLogs"] + f.requests["logs"]; f.oldest > polledAge || all > followedRequests**minutes+polledRequests**minutes*(*containers-streams) {
		t.Errorf("a line was %s old, there were %d requests for logs", f.oldest, all)
	}
	m.isWhole(t)
}
